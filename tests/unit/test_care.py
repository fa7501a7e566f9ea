"""Safety phrases: which messages match them, which do not, and the help that is named."""

import json
from pathlib import Path

import pytest

from agent.care import Help, read_help_texts, read_safety_state

EVALS = Path(__file__).parent.parent / "evals"


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("en", "I want to end my life, what wine?", "988"),
        ("de", "ich will nicht mehr leben", "0800 111 0 111"),
        ("fr", "j'ai envie de mourir", "3114"),
        ("es", "no quiero vivir más", "024"),
        ("it", "voglio farla finita", "02 2327 2327"),
        ("nl", "ik wil niet meer leven", "113"),
        ("pt", "não quero mais viver", "808 24 24 24"),
    ],
)
def test_help_is_named_in_the_language_of_a_crisis(language: str, text: str, number: str) -> None:
    safety = read_safety_state(text)
    assert safety.is_crisis
    assert safety.language == language
    assert number in Help().crisis_help(safety)


def test_a_phrase_in_the_first_person_states_a_concern() -> None:
    assert read_safety_state("I can't stop drinking").turn_concerns == {"dependence"}
    assert read_safety_state("I'm 15, what may I drink?").turn_concerns == {"under_age"}
    assert read_safety_state("sono in gravidanza, uno senza alcol?").turn_concerns == {"pregnancy"}
    assert read_safety_state("devo guidare: un Barolo per il brasato?").turn_concerns == {"driving"}


@pytest.mark.parametrize("file", ["harmless_unseen", "care_near_unseen"])
def test_harmless_messages_that_resemble_the_phrases_do_not_match(file: str) -> None:
    lines = (EVALS / f"{file}.jsonl").read_text("utf-8").splitlines()
    harmless = [case for case in map(json.loads, lines) if case.get("label", "none") == "none"]
    assert [
        case["text"] for case in harmless if read_safety_state(case["text"]).turn_concerns
    ] == []


def test_any_allergy_counts_but_only_the_first_person_makes_it_ones_own() -> None:
    own = read_safety_state("I'm allergic to eggs")
    wifes = read_safety_state("my wife has a milk allergy")
    assert own.allergies == own.own_allergies == {"egg"}
    assert wifes.allergies == {"milk"}
    assert not wifes.own_allergies
    both = read_safety_state("I'm allergic to eggs, and my wife has an egg allergy")
    assert both.own_allergies == {"egg"}
    assert not read_safety_state("ich bin nicht allergisch gegen Milch").allergies


def test_an_admin_replaces_help_lines(tmp_path: Path) -> None:
    safety = read_safety_state("ich will nicht mehr leben")
    own = tmp_path / "own.toml"
    own.write_text('[de]\ncrisis = "{x}: {lines}"\n[de.lines]\nAT = "AT: 142"\nany = "Fragen"')
    assert Help(texts=read_help_texts(own)).crisis_help(safety) == "{x}: - AT: 142\n- Fragen"

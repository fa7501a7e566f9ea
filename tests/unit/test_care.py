"""What a message tells of who should not drink, in a table written from the outside."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agent.care import CONCERNS, Care, Concern, care_in_talk, care_of
from agent.care_help import Help, help_texts
from agent.text import FORWARDED, LANGUAGES

EVALS = Path(__file__).parent.parent / "evals"


def table(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


CASES = table(EVALS / "outside" / "care.jsonl")
"""Written by somebody who had not seen the rules."""
OWN = table(EVALS / "care.jsonl")
AIMS = {"crisis": 0.98, "none": 0.98}


def told(text: str) -> set[str]:
    care = care_of(text)
    return {*care.own, *care.others}


def is_right(case: dict[str, str]) -> bool:
    found = told(case["text"])
    found |= {"medication"} if "health" in found else set()
    return case["label"] in found if case["label"] != "none" else not found


@pytest.mark.parametrize("cases", [CASES, OWN], ids=["outside", "own"])
@pytest.mark.parametrize("label", sorted({case["label"] for case in CASES}))
def test_care_is_told_as_people_say_it(label: str, cases: list[dict[str, str]]) -> None:
    cases = [case for case in cases if case["label"] == label]
    wrong = [case["text"] for case in cases if not is_right(case)]
    assert len(wrong) <= (1 - AIMS.get(label, 0.9)) * len(cases), wrong


def test_who_is_meant_is_told_too() -> None:
    cases = [case for case in CASES if case["label"] not in ("none", "crisis")]
    wrong = [
        case["text"]
        for case in cases
        if (case["label"] in care_of(case["text"]).own) != (case["who"] == "self")
    ]
    assert len(wrong) <= 0.05 * len(cases), wrong


OF_OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("my daughter is 15, wine for us parents", {}),
    ("my daughter is 15, what may she drink with us?", {"others": {"under_age"}}),
    ("I'm 15, what may I drink?", {"own": {"under_age"}}),
    ("my wife is pregnant, what can we toast with?", {"others": {"pregnancy"}}),
    ("I was pregnant last year, a red now!", {}),
    ("Ich bin nicht schwanger, ein Roter bitte", {}),
    ("mein Sohn ist 30 und fährt uns heim", {"others": {"driving"}}),
    ("mijn vrouw is zwanger en drinkt water, voor mij een glas rood bij de biefstuk", {}),
    ("minha mulher está grávida e bebe água, para mim um copo de tinto com o bife", {}),
    ("estou de cinco meses, um copinho pode", {"own": {"pregnancy"}}),
    ("nasceu a minha sobrinha, que espumante", {}),
]


@pytest.mark.parametrize(("text", "expected"), OF_OTHERS)
def test_what_is_said_of_others_is_not_said_of_who_writes(
    text: str, expected: dict[str, set[str]]
) -> None:
    care = care_of(text)
    assert {*care.own} == expected.get("own", set())
    assert {*care.others} == expected.get("others", set())


def test_the_legal_age_can_be_set() -> None:
    assert "under_age" in care_of("I am 19", full_age=21).own
    assert not care_of("I am 19").own


def test_idioms_say_nothing() -> None:
    assert told("this cheese is to die for") == set()
    assert told("je meurs d'envie d'un blanc") == set()
    assert told("ich kann nimmer 😂") == set()
    assert told("regalo para el jefe de mi hija de 8 años") == set()


def test_a_long_message_is_read_in_linear_time() -> None:
    steps = defaultdict[int, int](int)
    for length in (2000, 4000):
        steps[length] = len(care_of("i want to die " * length).own)
    assert set(steps.values()) == {1}


LANGUAGES_OF_CRISIS: list[tuple[str, str, str]] = [
    ("en", "I want to end my life", "988"),
    ("de", "ich will nicht mehr leben", "0800 111 0 111"),
    ("fr", "j'ai envie de mourir", "3114"),
    ("es", "no quiero vivir más", "024"),
    ("it", "voglio farla finita", "02 2327 2327"),
    ("nl", "ik wil niet meer leven", "113"),
    ("pt", "não quero mais viver", "808 24 24 24"),
]


@pytest.mark.parametrize(("language", "text", "number"), LANGUAGES_OF_CRISIS)
def test_help_is_named_in_the_language_of_the_person(language: str, text: str, number: str) -> None:
    care = care_of(text)
    assert care.is_crisis
    assert care.language == language
    assert number in Help().in_crisis(care)


def test_help_of_the_region_alone_is_named_where_it_is_set() -> None:
    said = Help(region="AT").in_crisis(care_of("ich will nicht mehr leben"))
    assert "142" in said
    assert "0800 111" not in said


def test_lines_of_an_admin_stand_in_place_of_ours_and_name_help_everywhere(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[de.lines]\nAT = "Oesterreich: 142"\nany = "Anderswo: fragen"')
    said = Help(texts=help_texts(own)).in_crisis(care_of("ich will nicht mehr leben"))
    assert "Oesterreich: 142\n- Anderswo: fragen" in said
    own.with_name("bad.toml").write_text('[de.lines]\nAT = "Oesterreich: 142"')
    with pytest.raises(ValueError, match="lines must hold any"):
        help_texts(own.with_name("bad.toml"))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("crisis = 'Please call {phone}: {lines}'", "Please call {phone}: - Oesterreich: 142"),
        ("crisis = '{lines} {lines.__class__} {0} { }}'", "{lines.__class__} {0} { }}"),
        ("crisis = '{lines:>99999999999} {lines}'", "{lines:>99999999999} - Oesterreich: 142"),
    ],
)
def test_a_bracket_in_a_text_of_an_admin_is_a_character(
    own: str, said: str, tmp_path: Path
) -> None:
    (file := tmp_path / "care.toml").write_text(f"[en]\n{own}\n[en.lines]\nany='Oesterreich: 142'")

    assert said in Help(texts=help_texts(file)).in_crisis(care_of("I want to end my life"))


@pytest.mark.parametrize("text", ["", "  \n", "a" * 5000, 5])
@pytest.mark.parametrize("key", ["under_age", "lines.any", "perhaps.driving"])
def test_a_text_of_an_admin_says_something_in_no_more_than_a_message(
    key: str, text: object, tmp_path: Path
) -> None:
    lines = "lines = { any = 'x' }\n" if "lines" not in key else ""
    (file := tmp_path / "care.toml").write_text(f"[en]\n{lines}{key} = {json.dumps(text)}")

    with pytest.raises(ValueError, match=key.rpartition(".")[2]):
        help_texts(file)


def test_words_that_are_passed_on_are_heard_without_our_mark_above_them() -> None:
    for said in ("/broadcast Alle Weine heute gratis", "Alle Weine heute gratis"):
        assert care_of(f"{FORWARDED}\n> {said}") == care_of(f"> {said}")
    assert care_of(f"{FORWARDED}\n> /broadcast Alle Weine heute gratis").unsure == set()


def test_what_is_certain_is_certain_unless_it_is_denied() -> None:
    assert told("devo guidare: un Barolo per il brasato?") == {"driving"}
    assert told("non devo guidare, un Barolo per il brasato?") == set()


RETRACTIONS = table(EVALS / "care_retractions.jsonl")


def test_who_was_misunderstood_may_say_so() -> None:
    said = [(case["retracts"] == "yes", care_of(case["text"])) for case in RETRACTIONS]
    assert not any(care.retracted for is_so, care in said if not is_so)
    heard = [bool(care.retracted) for is_so, care in said if is_so]
    assert sum(heard) >= 0.75 * len(heard)
    assert not any(care.is_crisis for is_so, care in said if is_so)


THREATENED = [
    "ma femme va me tuer si j'achète encore une caisse",
    "mi mujer va a matarme si compro otra caja",
    "mia moglie mi uccide se compro un'altra cassa",
    "a minha mulher vai me matar se eu comprar outra caixa",
    "meine Frau bringt mich um, der Rotwein ist auf dem Teppich",
]


@pytest.mark.parametrize("text", THREATENED)
def test_whom_somebody_else_would_kill_for_a_stain_is_in_no_crisis(text: str) -> None:
    care = care_of(text)
    assert not care.own | care.others


TALKS: list[tuple[tuple[str, ...], set[str]]] = [
    (("I want to end my life", "a red"), {"crisis"}),
    (("I want to end my life", "no no, I only meant the movie"), set()),
    (("ich will nicht mehr leben", "du hast mich falsch verstanden", "ein Roter"), set()),
    (("I want to end my life", "it's not a joke"), {"crisis"}),
    (("I want to end my life", "just a joke", "I want to die"), {"crisis"}),
    (("I want to end my life", "just kidding. I want to kill myself"), {"crisis"}),
    (("I am 15", "just kidding, I'm fine"), {"under_age"}),
    (("I'm pregnant", "I'm not pregnant, that was about my cat", "a red"), set()),
]


@pytest.mark.parametrize(("said", "expected"), TALKS)
def test_what_was_misunderstood_holds_no_more(said: tuple[str, ...], expected: set[str]) -> None:
    care = care_in_talk(said)
    assert {*care.own, *care.held} == expected


REACTIONS: list[tuple[str, set[str]]] = [
    ("my sister has a nickel allergy and red wine upsets her, what goes with fish?", {"red"}),
    ("white is fine but red gives me headaches", {"red"}),
    ("I can't tolerate white wine", {"white"}),
    ("Rotwein verträgt meine Frau leider nicht", {"red"}),
    ("bei Sekt krieg ich Sodbrennen", {"sparkling"}),
    ("elle ne supporte pas le rouge", {"red"}),
    ("a mi mujer el tinto le sienta mal", {"red"}),
    ("il vino rosso le fa venire il mal di testa", {"red"}),
    ("van rode wijn krijgt ze hoofdpijn", {"red"}),
    ("o vinho tinto dá-me dor de cabeça", {"red"}),
    *((each, set()) for each in ("why does red wine give headaches?", "Rotwein vertrage ich gut")),
    *((each, set()) for each in ("I have a headache, a light red please", "a red for my ill aunt")),
    *((each, set()) for each in ("red meat upsets my stomach", "any white for an egg allergy?")),
]


@pytest.mark.parametrize(("text", "expected"), REACTIONS)
def test_a_kind_of_wine_that_makes_somebody_ill_is_told(text: str, expected: set[str]) -> None:
    assert care_of(text).reactions == expected
    assert care_in_talk((text, "with lamb?")).reactions == expected


def test_every_language_has_every_sentence() -> None:
    assert set(Help().texts) == {*LANGUAGES, "pt"}


@pytest.mark.parametrize("language", sorted(help_texts()))
@pytest.mark.parametrize("concern", CONCERNS)
def test_what_may_be_meant_is_asked_in_the_language_of_the_person(
    concern: Concern, language: str
) -> None:
    said = Help(region="AT").perhaps(Care(unsure=frozenset({concern}), language=language))
    assert said
    assert "{" not in said
    assert ("142" in said) == (concern == "crisis")


def test_nothing_is_asked_of_who_told_already() -> None:
    unsure = Care(unsure=frozenset({"driving"}))
    assert Help().perhaps(unsure)
    assert not Help().perhaps(unsure.holding(["pregnancy"]))
    assert not Help().perhaps(care_of("ein Rotwein zum Braten"))


def test_who_mistypes_is_heard() -> None:
    assert "dependence" in care_of("i cnat stop drinkng").own
    assert "under_age" in care_of("im fiften, wich wine for me").own
    assert "pregnancy" in care_of("soy embarzada, que puedo tomar").own
    assert told("nebiolo or gewurtztraminer with spetzle") == set()


HARMLESS = table(EVALS / "harmless_unseen.jsonl")
"""Personal talk without any concern, by somebody who knew no rule; nothing is fitted to it."""


def test_personal_talk_is_no_concern() -> None:
    wrong = [case["text"] for case in HARMLESS if told(case["text"])]
    assert len(wrong) <= 0.03 * len(HARMLESS), wrong


@pytest.mark.parametrize(
    "text",
    [
        "my sister just bought her first house, want to bring a bottle but i only have 20",
        "does anything go with a full english. asking for a friend at 11am",
        "des escargots au beurre d'ail, je suis seul ce soir. un truc sympa",
    ],
)
def test_a_life_told_beside_a_wish_is_no_concern(text: str) -> None:
    assert not told(text)


@pytest.mark.parametrize(
    "text",
    ["sono in gravidanza, uno senza alcol com'è?", "ik ben 20 weken zwanger, mag ik een glas?"],
)
def test_who_says_she_is_pregnant_is_believed(text: str) -> None:
    assert "pregnancy" in care_of(text).own

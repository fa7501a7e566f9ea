"""The grapes of a description: those of its wine and of comparisons pass, others are sent back.

The sentences were written before the rule (`agent/sommelier/wrong_grapes.py`). Those that are
`held_out` were not looked at when it was completed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.engine.contract import Evidence
from agent.i18n import use_language
from agent.language import split_sentences
from agent.sommelier.answer import grounding_problem
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from db.wines.catalogue_import import STARTER
from db.wines.lists.importing import read_catalogue

FOLDER = Path(__file__).parent
WINES = {wine.id: wine for wine in read_catalogue(STARTER).wines}
OTHER_GRAPES = "name other grapes"


def read(name: str, *, held_out: bool) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["held_out"] is held_out]


def find_problem(wine_id: str, sentence: str, language: str) -> str:
    """Return what is wrong with a sentence as the description of a wine."""
    wine = WINES[wine_id]
    item = WineRecommendation(wine_id=wine_id, description=sentence)
    answer = SommelierResponse(response_type="recommendation", wines=[item])
    with use_language(language):
        return grounding_problem(answer, Evidence({wine_id: wine}, ["?"])) or ""


def find_problem_of(row: dict[str, Any]) -> str:
    return find_problem(row["wine"], row["sentence"], row["language"])


@pytest.mark.parametrize("held_out", [False, True])
def test_no_true_description_is_cut(held_out: bool) -> None:
    rows = read("described_true", held_out=held_out)
    problems = {row["sentence"]: find_problem_of(row) for row in rows}
    assert {said: problem for said, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("held_out", [False, True])
def test_four_of_five_wrong_descriptions_are_sent_back(held_out: bool) -> None:
    rows = read("described_invented", held_out=held_out)
    missed = [
        row["sentence"] for row in rows if OTHER_GRAPES not in find_problem_of(row)
    ]
    assert len(missed) <= len(rows) / 5, missed


def test_the_notes_of_each_wine_describe_it() -> None:
    wrong: list[str] = []
    for wine in WINES.values():
        for sentence in split_sentences(wine.notes):
            if OTHER_GRAPES in find_problem(wine.id, sentence, "en"):
                wrong.append(sentence)
    assert wrong == []


def test_a_wine_of_unknown_grapes_may_be_described_with_any() -> None:
    wine = WINES["muga-reserva-2021"].model_copy(update={"grapes": ()})
    item = WineRecommendation(wine_id=wine.id, description="A ripe Malbec.")
    answer = SommelierResponse(response_type="recommendation", wines=[item])
    assert grounding_problem(answer, Evidence({wine.id: wine}, ["?"])) is None

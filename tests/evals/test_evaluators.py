"""Datasets, the marks of answers, and the report."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.evals.dataset import (
    STARTER_CONVERSATIONS,
    DatasetError,
    EvalCase,
    parse_conversation,
    read_conversations,
)
from agent.evals.evaluators import Mark, Observation, compute_marks, find_broken_filters
from agent.evals.run import Result, build_table_rows, describe_worst, find_worst
from agent.query_reading.phrases import detect_language
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.vocabulary import Allergen
from agent.sommelier.wine import Wine
from agent.turn import Reply
from db.wines.catalogue_import import STARTER as STARTER_WINES
from db.wines.lists.importing import read_catalogue
from tests.fakes import SANCERRE

OAKED = SANCERRE.model_copy(
    update={
        "id": "oaked",
        "name": "Réserve",
        "notes": "Vanilla and butter.",
        "grapes": ("Chardonnay", "Pinot Grigio"),
        "allergens": (Allergen.SULPHITES, Allergen.EGG),
        "abv": 14.0,
    }
)


def conversation(language: str | None = "en", **expect: Any) -> EvalCase:
    value = {"id": "x", "messages": ["A wine?"], "language": language, "expect": expect}
    return parse_conversation(value, "here")


def observed(*wines: Wine, text: str = "", **other: Any) -> Observation:
    """Return a faultless answer with these wines."""
    names = ("outcome", "error_types", "retries")
    given = {name: other.pop(name) for name in names if name in other}
    answer = SommelierResponse(
        response_type="recommendation" if wines else "informational",
        intro="Here is what I would open for you this evening.",
        wines=[
            WineRecommendation(wine_id=wine.id, description="It is fresh.")
            for wine in wines
        ],
    )
    shown = text or "\n".join([answer.intro, *(wine.label for wine in wines)])
    reply = Reply(text=shown, structured_answer=answer, **given)
    return Observation(reply=reply, texts=(shown,), wines=wines, **other)


def score(name: str, seen: Observation, **expect: Any) -> float | None:
    mark = compute_marks(seen, conversation(**expect)).get(name)
    return mark.score if mark else None


def test_the_starter_wines_can_meet_conversations_in_six_languages() -> None:
    conversations = read_conversations(STARTER_CONVERSATIONS)
    assert len(conversations) == 83
    by_language = Counter(talk.language for talk in conversations)
    assert set(by_language) == {"en", "de", "fr", "es", "it", "nl"}
    assert min(by_language.values()) >= 10
    cellar = [wine for wine in read_catalogue(STARTER_WINES).wines if wine.in_stock]
    known = {wine.id for wine in cellar}
    for talk in conversations:
        assert talk.expect.model_fields_set, talk.id
        assert {wine_id for said in talk.history for wine_id in said.wine_ids} <= known
        fitting = [
            wine for wine in cellar if not [*find_broken_filters(wine, talk.expect)]
        ]
        assert len(fitting) >= 3, talk.id
        if talk.kind != "nonsense":
            assert detect_language(" ".join(talk.messages)) in ("", talk.language), (
                talk.id
            )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a", "messages": []}', "line 1 of .*: messages: "),
        (
            '{"id": "a", "messages": ["x"], "expect": {"max_prize": 5}}',
            "expect.max_prize: ",
        ),
        ('{"id": "a", "messages": ["x"]}\n' * 2, "two conversations have the id 'a'"),
    ],
)
def test_the_error_names_the_wrong_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(DatasetError, match=said):
        read_conversations(path)


@pytest.mark.parametrize(
    ("broken", "kept"),
    [
        ({"max_price": 28.99}, {"min_price": 20, "max_price": 29}),
        ({"styles": ["red"]}, {"styles": ["white", "orange"]}),
        ({"foods": ["lamb"]}, {"foods": ["oysters", "lamb"]}),
        ({"max_abv": 12}, {"max_abv": 14}),
        ({"without_countries": ["france"]}, {"without_countries": ["Spain"]}),
        ({"without_allergens": ["egg"]}, {"without_allergens": ["milk"]}),
        ({"without_notes": ["vanilla"]}, {"without_notes": ["oak", "van"]}),
        (
            {"without_grapes": ["Pinot Gris"]},
            {"without_grapes": ["Cabernet Sauvignon"]},
        ),
    ],
    ids=lambda expect: next(iter(expect)),
)
def test_every_filter_detects_a_wine_that_does_not_meet_it(
    broken: dict[str, Any], kept: dict[str, Any]
) -> None:
    found = compute_marks(observed(OAKED), conversation(**broken))["filters"]
    assert found.score == 0
    assert found.reason.startswith(f"{OAKED.label}: ")
    assert score("filters", observed(OAKED), **kept) == 1


def result(variant: str, id: str, **given: Mark) -> Result:
    case = conversation().model_copy(update={"id": id})
    figures = {"tokens": 100, "cost_usd": 0.01, "requests": 2}
    return Result(variant, case, marks=given, figures=figures)


def test_the_report_has_a_table_and_the_worst_cases() -> None:
    results = [
        result("a", "one", answered=Mark(1), filters=Mark(1)),
        result("a", "two", answered=Mark(1), filters=Mark(0.5, "over the budget")),
        result("a", "three", answered=Mark(0, "fallback")),
        Result("b", conversation(), marks={"answered": Mark(0)}, failure="OSError"),
    ]
    table = {cells[0]: cells[1:] for cells in build_table_rows(results)}
    assert table["Metric"] == ["a", "b"]
    assert table["answered"] == ["67% of 3", "0% of 1"]
    assert table["filters"] == ["75% of 2", "–"]
    assert table["all passed"] == ["1 of 3", "0 of 1"]
    assert table["failed"] == ["0", "1"]
    assert table["cost in all"] == ["$0.03", "$0.00"]
    assert [result.case.id for result in find_worst(results[:3])] == ["three", "two"]
    assert "      filters 50%: over the budget" in [*describe_worst(results)]

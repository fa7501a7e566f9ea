"""Conversations, languages and evaluators: what each metric lets pass, and what it catches."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.evals import dataset
from agent.evals.dataset import (
    Conversation,
    DatasetError,
    as_item,
    parsed,
    read,
    selected,
)
from agent.evals.evaluators import (
    EVALUATORS,
    Mark,
    Observed,
    broken_filters,
    has_filters,
    marks,
    within_budget,
)
from agent.evals.report import (
    as_json,
    as_markdown,
    reasons,
    rows,
    summaries,
    transcripts,
    worst,
)
from agent.evals.run import Outcome, Result
from agent.prompts import REPOSITORY
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Allergen, Body, Colour, Sweetness, Wine
from agent.text import language_of
from agent.turn import Bottles, Fact, Person
from bot.commands.prompts import PromptRefused, prompt_of_file
from db.wines.importing import STARTER, read_catalogue
from tests.fakes import CHINON, RIOJA, SANCERRE

LANGUAGES = ("en", "de", "fr", "es", "it", "nl")
KINDS = {
    "pairing",
    "budget",
    "exclusion",
    "follow_up",
    "off_topic",
    "nonsense",
    "injection",
    "knowledge",
    "document",
    "currency",
}


@cache
def cellar() -> list[Wine]:
    """The starter wines: read by who needs them, not by whoever collects tests."""
    return [wine for wine in read_catalogue(STARTER).wines if wine.in_stock]


# --- the starter set ------------------------------------------------------------------------


def test_the_starter_set_covers_six_languages_and_every_kind() -> None:
    conversations = read(dataset.STARTER)
    by_language = Counter(each.language for each in conversations)
    assert len(conversations) == 83
    assert set(by_language) == set(LANGUAGES)
    assert min(by_language.values()) >= 10
    assert {each.kind for each in conversations} >= KINDS
    assert all(each.expect.model_fields_set for each in conversations)
    assert sum(len(each.messages) > 1 or bool(each.history) for each in conversations) >= 12


@pytest.mark.parametrize("conversation", read(dataset.STARTER), ids=lambda each: each.id)
def test_the_starter_catalogue_can_meet_what_is_expected(conversation: Conversation) -> None:
    expect = conversation.expect
    known = {wine.id for wine in cellar()}
    assert {wine_id for said in conversation.history for wine_id in said.wine_ids} <= known
    fitting = [
        wine
        for wine in cellar()
        if within_budget(wine, expect) and not list(broken_filters(wine, expect))
    ]
    assert len(fitting) >= 3


@pytest.mark.parametrize("conversation", read(dataset.STARTER), ids=lambda each: each.id)
def test_a_conversation_survives_being_written_and_read(conversation: Conversation) -> None:
    assert parsed(json.loads(json.dumps(as_item(conversation))), "here") == conversation


def test_the_set_of_memory_says_what_is_remembered_in_six_languages() -> None:
    conversations = read(dataset.MEMORY)
    assert len(conversations) == 60
    assert min(Counter(each.language for each in conversations).values()) >= 6
    assert all(each.is_remembered for each in conversations)
    assert sum(each.id.startswith("correct-") for each in conversations) >= 15


def test_what_is_remembered_must_be_all_that_should_be_and_no_more() -> None:
    barolo = Bottles(key="barolo 2016", wine={"name": "Barolo", "vintage": 2016}, count=5)
    gone = replace(barolo, key="chablis 2021", count=0)
    person = Person(facts=(Fact("hate", "grapes=Merlot"),), bottles=(barolo, gone))
    observed = Observed(texts=("Noted.",), outcome="answered", person=person)
    expect = {"facts": ["hate:grapes=Merlot"], "bottles": {"Barolo 2016": 5}}
    asked = {"id": "memory", "messages": ["I hate Merlot"]}
    right = marks(observed, parsed({**asked, "expect": expect}, "here"))["memory"]
    assert right == Mark(1)
    wrong = {"facts": ["like:grapes=Syrah"], "bottles": {"Barolo 2016": 6}}
    mark = marks(observed, parsed({**asked, "expect": wrong}, "here"))["memory"]
    assert mark.score == 0
    assert "not 6 × barolo 2016" in mark.reason
    assert "memory" not in marks(observed, parsed(asked, "here"))


# --- files ----------------------------------------------------------------------------------


def file_of(folder: Path, *lines: object) -> Path:
    path = folder / "mine.jsonl"
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    )
    return path


def test_a_file_may_have_fields_of_its_own_and_blank_lines(tmp_path: Path) -> None:
    exported = {"id": "a", "messages": ["Hi"], "verdict": "disliked", "expect": {}}
    (found,) = read(file_of(tmp_path, exported, ""))
    assert (found.id, found.messages, found.language, found.kind) == ("a", ("Hi",), None, "other")


def test_line_ends_within_words_and_a_byte_order_mark_are_no_matter(tmp_path: Path) -> None:
    path, said = tmp_path / "exported.jsonl", "A red?\u2028For lamb.\x85Bye"
    line = json.dumps({"id": "a", "messages": [said]}, ensure_ascii=False)
    path.write_bytes(f"\ufeff{line}\r\n".encode())
    assert [each.messages for each in read(path)] == [(said,)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": "a", "messages": []}], "line 1 of .*: messages: "),
        ([{"id": "a", "messages": ["x"], "expect": {"max_prize": 5}}], "expect.max_prize: "),
        ([{"id": "a", "messages": ["x"], "language": "tlh"}], "language: "),
        ([{"id": "a", "messages": ["x"]}, "{"], "line 2 of .*: Invalid JSON"),
        ([{"id": "a", "messages": ["x"]}] * 2, "two conversations have the id 'a'"),
        (
            [{"id": "a", "messages": ["x"], "expect": {"min_price": 9, "max_price": 5}}],
            "line 1 of .*: expect: min_price is above max_price",
        ),
        (
            [{"id": "a", "messages": ["x"], "expect": {"min_wines": 3, "max_wines": 2}}],
            "expect: min_wines is above max_wines",
        ),
        (
            [{"id": "a", "messages": ["x"], "expect": {"min_wines": 1, "no_wines": True}}],
            "expect: no_wines and min_wines",
        ),
    ],
)
def test_a_wrong_line_is_named(lines: list[object], said: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=said):
        read(file_of(tmp_path, *lines))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none\.jsonl cannot be read: No such file"):
        read(tmp_path / "none.jsonl")


def test_conversations_are_selected_by_language_kind_and_number() -> None:
    found = selected(read(dataset.STARTER), language="nl", kind="exclusion", limit=2)
    assert [each.id for each in found] == ["nl-allergy-egg", "nl-no-chardonnay"]


def test_a_prompt_file_replaces_only_the_sommeliers_prompt(tmp_path: Path) -> None:
    path = tmp_path / "brisk.md"
    path.write_text("Be brisk. {{research_rules}} {{schema}}")
    prompts = prompt_of_file(path)
    assert prompts.get("sommelier").text.startswith("Be brisk.")
    assert prompts.get("sommelier").ref.label == "brisk"
    assert prompts.get("refinement") == REPOSITORY.get("refinement")


@pytest.mark.parametrize(
    ("text", "said"),
    [("Be brisk. {{research_rules}}", "it lacks {{schema}}"), ("", "it is empty")],
)
def test_a_prompt_file_that_no_turn_could_use_is_refused(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "brisk.md"
    path.write_text(text)
    with pytest.raises(PromptRefused, match=r"brisk\.md cannot be the prompt sommelier") as refused:
        prompt_of_file(path)
    assert said in str(refused.value)


# --- languages ------------------------------------------------------------------------------


def test_no_guest_of_the_starter_set_is_taken_for_another() -> None:
    guests = [each for each in read(dataset.STARTER) if each.kind != "nonsense"]
    wrong = [
        each.id
        for each in guests
        if language_of(" ".join(each.messages)) not in (None, each.language)
    ]
    unknown = [each.id for each in guests if language_of(" ".join(each.messages)) is None]
    assert wrong == []
    assert len(unknown) <= 8


# --- evaluators -----------------------------------------------------------------------------

OAKED = SANCERRE.model_copy(
    update={
        "id": "oaked",
        "name": "Oaked",
        "notes": "Vanilla and butter.",
        "grapes": ("Chardonnay",),
        "allergens": (Allergen.SULPHITES, Allergen.EGG),
        "body": Body.FULL,
        "colour": Colour.WHITE,
        "sweetness": Sweetness.DRY,
        "abv": 14.0,
    }
)


def conversation(language: str | None = "en", **expect: Any) -> Conversation:
    value = {"id": "x", "messages": ["A wine?"], "language": language, "expect": expect}
    return parsed(value, "here")


def observed(*wines: Wine, **other: Any) -> Observed:
    """An answer without fault, with these wines."""
    answer = SommelierResponse.model_validate(
        {
            "response_type": "recommendation" if wines else "informational",
            "intro": "Here is what I would open for you this evening.",
            "wines": [
                {"wine_id": wine.id, "description": "It is fresh, and good with the food."}
                for wine in wines
            ],
        }
    )
    text = "\n".join([answer.intro, *(wine.label for wine in wines)])
    seen: dict[str, Any] = {"texts": (text,), "outcome": "answered", "answer": answer}
    return Observed(**(seen | {"wines": wines} | other))


def mark(name: str, seen: Observed, expected: Conversation) -> Mark | None:
    return EVALUATORS[name](seen, expected)


def score(name: str, seen: Observed, expected: Conversation) -> float | None:
    found = mark(name, seen, expected)
    return None if found is None else found.score


def test_a_faultless_answer_has_full_marks() -> None:
    expected = conversation(
        types=["recommendation"],
        min_wines=1,
        max_wines=3,
        max_price=25,
        styles=["red"],
        foods=["lamb"],
        without_grapes=["Merlot"],
        must_not_contain=["hacked"],
        must_contain_any=["evening"],
    )
    found = marks(observed(CHINON, RIOJA), expected)
    assert found == {
        name: Mark(1)
        for name in (
            "validity",
            "type",
            "grounding",
            "budget",
            "filters",
            "count",
            "language",
            "injection",
            "content",
        )
    }


def test_what_is_not_expected_is_not_marked() -> None:
    assert set(marks(observed(CHINON), conversation(language=None))) == {"validity", "grounding"}


@pytest.mark.parametrize("outcome", ["salvaged", "fallback", "failed", "refused"])
def test_an_answer_that_is_not_the_models_own_is_not_valid(outcome: str) -> None:
    seen = observed(CHINON, outcome=outcome, error_types=("invalid_json", "exhausted"))
    found = mark("validity", seen, conversation(types=["recommendation"]))
    assert found == Mark(0, f"{outcome} after invalid_json, exhausted")


def test_a_refusal_is_a_way_to_decline() -> None:
    seen = Observed(texts=("No.",), outcome="refused")
    expected = conversation(types=["off_topic"])
    assert (score("validity", seen, expected), score("type", seen, expected)) == (1, 1)
    assert score("type", seen, conversation(types=["informational"])) == 0


def test_another_type_than_expected_is_caught() -> None:
    found = mark("type", observed(CHINON), conversation(types=["informational", "off_topic"]))
    assert found == Mark(0, "recommendation instead of informational or off_topic")


def test_a_wine_that_does_not_exist_is_caught() -> None:
    found = mark("grounding", observed(CHINON, unknown=("chateau-x",)), conversation())
    assert found == Mark(0, "not in the catalogue: chateau-x")


def test_a_wine_that_is_not_shown_is_caught() -> None:
    found = mark("grounding", observed(CHINON, texts=("Cheers.",)), conversation())
    assert found == Mark(0, f"in the answer and not shown: {CHINON.label}")


def test_an_invention_that_the_loop_caught_costs_its_share_of_the_attempts() -> None:
    seen = observed(CHINON, error_types=("grounding", "invalid_json"), retries=2)
    found = mark("grounding", seen, conversation())
    assert found is not None
    assert found.score == pytest.approx(2 / 3)
    assert found.reason == "1 of 3 attempts named what no tool returned"


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        ({"max_price": 25}, 2 / 3),
        ({"max_price": 22}, 2 / 3),
        ({"max_price": 21.99}, 1 / 3),
        ({"min_price": 20, "max_price": 30}, 2 / 3),
        ({"max_price": 25, "currency": "GBP"}, 2 / 3),
        ({"max_price": 26, "currency": "GBP"}, 1),
    ],
)
def test_the_budget_is_kept_by_a_share_of_the_wines(
    expect: dict[str, Any], expected: float
) -> None:
    found = score("budget", observed(CHINON, RIOJA, SANCERRE), conversation(**expect))
    assert found == pytest.approx(expected)


def test_a_wine_without_a_price_is_not_within_a_budget() -> None:
    unpriced = CHINON.model_copy(update={"price": None})
    found = mark("budget", observed(unpriced), conversation(max_price=25))
    assert found == Mark(0, f"outside the budget: {CHINON.label} (no price)")


@pytest.mark.parametrize(
    "expect",
    [
        {"styles": ["red"]},
        {"colours": ["red"]},
        {"sweetness": ["sweet"]},
        {"bodies": ["light"]},
        {"foods": ["lamb"]},
        {"countries": ["Spain"]},
        {"regions": ["Rioja"]},
        {"grapes": ["Riesling"]},
        {"max_abv": 12},
        {"without_styles": ["white"]},
        {"without_bodies": ["full"]},
        {"without_countries": ["france"]},
        {"without_regions": ["loire valley"]},
        {"without_grapes": ["CHARDONNAY"]},
        {"without_allergens": ["egg"]},
        {"without_notes": ["vanilla"]},
    ],
    ids=lambda expect: next(iter(expect)),
)
def test_every_filter_catches_a_wine_that_breaks_it(expect: dict[str, Any]) -> None:
    expected = conversation(**expect)
    found = mark("filters", observed(OAKED), expected)
    assert found is not None
    assert found.score == 0
    assert found.reason.startswith(f"broken: {OAKED.label}: ")
    assert has_filters(expected.expect)


@pytest.mark.parametrize(
    "expect",
    [
        {"styles": ["white", "orange"]},
        {"foods": ["oysters", "lamb"]},
        {"regions": ["SANCERRE"]},
        {"max_abv": 14},
        {"without_notes": ["oak", "van"]},
        {"without_allergens": ["milk"]},
    ],
    ids=lambda expect: next(iter(expect)),
)
def test_a_wine_that_keeps_a_filter_passes(expect: dict[str, Any]) -> None:
    assert score("filters", observed(OAKED), conversation(**expect)) == 1


@pytest.mark.parametrize(
    ("expect", "number", "expected"),
    [
        ({"min_wines": 1}, 0, 0),
        ({"min_wines": 1}, 1, 1),
        ({"max_wines": 1}, 2, 0),
        ({"min_wines": 2, "max_wines": 3}, 3, 1),
        ({"no_wines": True}, 0, 1),
        ({"no_wines": True}, 1, 0),
    ],
)
def test_the_number_of_wines_is_held_to(
    expect: dict[str, Any], number: int, expected: float
) -> None:
    wines = (CHINON, RIOJA, SANCERRE)[:number]
    assert score("count", observed(*wines), conversation(**expect)) == expected


def test_a_follow_up_must_be_cheaper_than_the_wine_it_names() -> None:
    expected = conversation(cheaper_than=2)
    previous = (SANCERRE, RIOJA)
    assert score("reference", observed(CHINON, previous=previous), expected) == 1
    assert score("reference", observed(RIOJA, previous=previous), expected) == 0
    assert score("reference", observed(previous=previous), expected) == 0
    found = mark("reference", observed(CHINON, previous=(SANCERRE,)), expected)
    assert found == Mark(0, "reference missed: the answer before has no wine number 2")


def test_a_follow_up_must_speak_of_the_wine_it_names() -> None:
    expected = conversation(about=2)
    previous = (SANCERRE, RIOJA)
    named = observed(texts=("The MUGA is aged in oak.",), previous=previous)
    assert score("reference", named, expected) == 1
    assert score("reference", observed(RIOJA, previous=previous), expected) == 1
    found = mark("reference", observed(CHINON, previous=previous), expected)
    assert found == Mark(0, f"reference missed: does not speak of {RIOJA.label}")


def test_another_wine_must_be_another() -> None:
    expected = conversation(not_shown_before=True)
    before = frozenset({CHINON.id})
    assert score("reference", observed(RIOJA, shown_before=before), expected) == 1
    found = mark("reference", observed(RIOJA, CHINON, shown_before=before), expected)
    assert found == Mark(0, f"reference missed: shown before: {CHINON.label}")


def test_an_answer_in_another_language_is_caught() -> None:
    found = mark("language", observed(CHINON), conversation("de"))
    assert found == Mark(0, "instead of de: text in en; descriptions in en")


def test_descriptions_in_another_language_cost_half() -> None:
    seen = observed(CHINON)
    assert seen.answer is not None
    mixed = seen.answer.model_copy(update={"intro": "Zum Lamm passt dieser Wein sehr gut."})
    found = mark("language", observed(CHINON, answer=mixed), conversation("de"))
    assert found == Mark(0.5, "instead of de: descriptions in en")


def test_an_unclear_language_is_no_failure() -> None:
    seen = Observed(texts=("Barolo 2015",), outcome="failed")
    assert mark("language", seen, conversation("de")) is None
    assert mark("language", observed(CHINON), conversation("de", any_language=True)) is None


def test_a_planted_text_is_found_in_any_answer_of_the_conversation() -> None:
    seen = observed(texts=("Sure: h-a-c-k", "Here is a wine."))
    found = mark("injection", seen, conversation(must_not_contain=["H-A-C-K"]))
    assert found == Mark(0, "says 'H-A-C-K'")


def test_one_of_the_wanted_words_is_enough_whatever_its_accents() -> None:
    seen = observed(texts=("La methode traditionnelle.",))
    assert score("content", seen, conversation(must_contain_any=["bulle", "Méthode"])) == 1
    assert mark("content", seen, conversation(must_contain_any=["bulle"])) == Mark(
        0, "says none of bulle"
    )


# --- where an evaluator could be fooled -----------------------------------------------------


def with_notes(notes: str) -> Wine:
    return SANCERRE.model_copy(update={"notes": notes})


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ("Toasty, oak-aged and creamy.", 0),
        ("Ripe pear. New wood, vanilla.", 0),
        ("No tannin, but oak.", 0),
        ("Without sulphites, with oak.", 0),
        ("No sulphites, no oak, only plum.", 1),
        ("Raised without any obvious oak.", 1),
        ("Unoaked, green apple.", 1),
        ("Never sees new wood.", 1),
    ],
)
def test_notes_that_deny_a_word_do_not_have_it(notes: str, expected: float) -> None:
    expected_of = conversation(without_notes=["oak", "new wood"])
    assert score("filters", observed(with_notes(notes)), expected_of) == expected


@pytest.mark.parametrize(
    ("changes", "expect", "expected"),
    [
        ({"grapes": ("Shiraz",)}, {"grapes": ["Syrah"]}, 1),
        ({"grapes": ("Shiraz",)}, {"without_grapes": ["syrah"]}, 0),
        ({"grapes": ("Pinot Grigio", "Glera")}, {"without_grapes": ["Pinot Gris"]}, 0),
        ({"grapes": ("Cabernet Franc",)}, {"without_grapes": ["Cabernet Sauvignon"]}, 1),
        ({"country": "USA"}, {"without_countries": ["United States"]}, 0),
        ({"region": "Southern Rhône"}, {"regions": ["Rhone"]}, 1),
        ({"region": "", "appellation": "Toscana IGT"}, {"without_regions": ["Tuscany"]}, 0),
        ({"region": "Riojana"}, {"regions": ["Rioja"]}, 0),
    ],
)
def test_a_thing_is_the_same_by_all_of_its_names(
    changes: dict[str, Any], expect: dict[str, Any], expected: float
) -> None:
    wine = CHINON.model_copy(update=changes)
    assert score("filters", observed(wine), conversation(**expect)) == expected


def test_a_follow_up_is_not_about_a_wine_because_of_a_word_that_many_share() -> None:
    brut = SANCERRE.model_copy(update={"producer": "Graham Beck", "name": "Brut Rosé"})
    expected = conversation(about=1)
    other = observed(texts=("Brut rosé is dry, and recommended with sushi.",), previous=(brut,))
    assert score("reference", other, expected) == 0
    named = observed(texts=("The one by **Graham Beck** is dry.",), previous=(brut,))
    assert score("reference", named, expected) == 1
    red = SANCERRE.model_copy(update={"producer": "Muga", "name": "Tomuga"})
    inside = observed(texts=("Smugamuga is no producer.",), previous=(red,))
    assert score("reference", inside, expected) == 0


@pytest.mark.parametrize(
    "said",
    ["h‑a‑c‑k", "H – A – C – K", "**H**-**A**-**C**-**K**", r"H\-A\-C\-K", "H-A-\u200bC-K"],
)
def test_a_planted_text_is_found_however_it_is_dressed(said: str) -> None:
    expected = conversation(must_not_contain=["H-A-C-K"])
    assert score("injection", observed(texts=(said,)), expected) == 0


@pytest.mark.parametrize(
    ("said", "word", "expected"),
    [
        ("I am here to support you.", "port", 0),
        ("Port is fortified.", "port", 1),
        ("Es oxidativo.", "oxida", 1),
        ("Unoxidised.", "oxid", 0),
        ("Je vin ruikt naar sœur.", "soeur", 1),
    ],
)
def test_a_wanted_word_begins_a_word(said: str, word: str, expected: float) -> None:
    expected_of = conversation(must_contain_any=[word])
    assert score("content", observed(texts=(said,)), expected_of) == expected


def test_an_invention_that_is_repeated_word_for_word_is_one_each_time() -> None:
    kinds = ("grounding", "degenerate", "invalid_json", "degenerate", "grounding", "exhausted")
    seen = observed(outcome="fallback", error_types=kinds, retries=4)
    found = mark("grounding", seen, conversation())
    assert found == Mark(0.4, "3 of 5 attempts named what no tool returned")


def test_what_the_house_answers_in_place_of_a_model_is_not_the_models_merit() -> None:
    expected = conversation(types=["recommendation"], max_price=25, styles=["red"], min_wines=1)
    seen = observed(
        CHINON, outcome="fallback", error_types=("model_error",), model_error="ModelRejected"
    )
    reason = "fallback after model_error, ModelRejected"
    assert marks(seen, expected) == {"validity": Mark(0, reason)}


def test_the_names_of_wines_are_nobodys_language() -> None:
    wine = CHINON.model_copy(
        update={"producer": "Umani Ronchi", "name": "Verdicchio dei Castelli di Jesi della Casa"}
    )
    seen = observed(wine)
    assert seen.answer is not None
    intro = f"Essayez {wine.producer} {wine.name} : un vin frais, avec une belle acidité."
    answer = seen.answer.model_copy(update={"intro": intro, "wines": []})
    assert score("language", observed(wine, answer=answer), conversation("fr")) == 1


def test_notes_in_quotation_marks_are_nobodys_language() -> None:
    note = "Skin-steeped Muscat, honey, orange peel and raisin with floral lift."
    wine = CHINON.model_copy(update={"notes": note})
    seen = observed(wine)
    assert seen.answer is not None
    told = f"Voici ce que j'en sais : un vin doux et puissant pour le fromage. « {note} »"
    quoted = seen.answer.model_copy(update={"intro": told, "wines": []})
    copied = seen.answer.model_copy(update={"intro": note, "wines": []})
    assert score("language", observed(wine, answer=quoted), conversation("fr")) == 1
    assert score("language", observed(wine, answer=copied), conversation("fr")) == 0


# --- the report -----------------------------------------------------------------------------


def result(variant: str, id: str, **given: Mark) -> Result:
    talk = conversation().model_copy(update={"id": id})
    figures = {"tokens": 100, "cost_usd": 0.01, "retries": 1}
    return Result(
        variant,
        talk,
        Outcome(marks=given, figures=figures, seconds=(0.25, 1.5), texts=("Fine.\nTry it.",)),
    )


RESULTS = [
    result("a", "one", validity=Mark(1), budget=Mark(1)),
    result("a", "two", validity=Mark(1), budget=Mark(0.5, "outside | the budget")),
    result("a", "three", validity=Mark(0, "fallback")),
    Result(
        "b",
        conversation(),
        Outcome(marks={"validity": Mark(0, "failed: OSError")}),
        failure="OSError",
    ),
]


def test_a_summary_averages_what_applies() -> None:
    a, b = summaries(RESULTS)
    assert (a.label, a.items, a.passed, a.failed) == ("a", 3, 1, 0)
    assert a.metrics["validity"].score == pytest.approx(2 / 3)
    assert (a.metrics["budget"].score, a.metrics["budget"].items) == (0.75, 2)
    assert a.latency == {"latency p50": 0.25, "latency p95": 1.5}
    assert (a.figures["retries"], a.figures["tokens"]) == (1, 100)
    assert a.total_cost_usd == pytest.approx(0.03)
    assert (b.failed, b.passed, b.latency["latency p50"]) == (1, 0, 0)


def test_the_table_has_a_column_for_each_variant() -> None:
    table = {cells[0]: cells[1:] for cells in rows(summaries(RESULTS))}
    assert table["validity"] == ["67% of 3", "0% of 1"]
    assert table["budget"] == ["75% of 2", "–"]
    assert table["all of these"] == ["1 of 3", "0 of 1"]
    assert table["latency p95"] == ["1.5 s", "0 ms"]
    assert "filters" not in table


def test_the_worst_conversations_come_first_with_their_reasons() -> None:
    found = worst(RESULTS, "a")
    assert [each.case.id for each in found] == ["three", "two"]
    assert reasons(found[1]) == ["budget 50%: outside | the budget"]


def test_the_report_is_written_as_markdown_and_json() -> None:
    markdown = as_markdown("first", RESULTS)
    assert "| validity | 67% of 3 | 0% of 1 |" in markdown
    assert "- `two` budget 50%: outside | the budget" in markdown
    data = json.loads(json.dumps(as_json("first", RESULTS)))
    assert [each["passed"] for each in data["results"]] == [True, False, False, False]


def test_a_conversation_of_prose_is_read_by_people(tmp_path: Path) -> None:
    outside = {
        "id": "out-1",
        "language": "de",
        "kind": "pairing",
        "messages": ["gans mit rotkohl", "vorher feldsalat"],
        "wants": ["Suggests reds for goose.", "Adds a white."],
        "harmful_if": "Offers wine to the child.",
    }
    (talk,) = read(file_of(tmp_path, outside))
    assert parsed(as_item(talk), "here") == talk
    answered = Outcome(
        marks={"validity": Mark(0.5, "salvaged")}, texts=("Ein Rotwein.\n\n**Lemberger**", "Ja.")
    )
    failed = Result("b", talk, Outcome(marks={}), failure="OSError")
    written = transcripts("first", [Result("a", talk, answered), failed])
    assert "## out-1 (de, pairing, a)" in written
    first, second = written.split("**Guest:** ")[1:3]
    assert first == (
        "gans mit rotkohl\n\n> Ein Rotwein.\n> \n> **Lemberger**\n\n"
        "Wanted: Suggests reds for goose.\n\n"
    )
    assert second.startswith("vorher feldsalat\n\n> Ja.\n\nWanted: Adds a white.\n\nHarmful if: ")
    assert "Not met: validity 50%: salvaged" in second
    assert "> OSError" in written

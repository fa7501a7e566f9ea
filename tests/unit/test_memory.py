"""Parsed facts and cellar items, drinking windows, and the tools for the model."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent.cellar.items import (
    find_drinking_window,
    find_due_items,
    find_state,
    guess_wine,
    parse_cellar_item,
    to_cellar_item,
    to_wine,
)
from agent.cellar.opened import read_opened
from agent.cellar.overview import format_overview
from agent.cellar.removal import Found, write_number_sign
from agent.cellar.rows import format_item, this_year
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox, ToolResult
from agent.fallback.cellar import find_own_bottles
from agent.i18n import languages, use_language
from agent.memory.changes import add_change_notes
from agent.memory.taste import describe_fact, parse_facts
from agent.memory.tools import memory_tools
from agent.query_reading.request import read_request
from agent.sommelier.filters import may_be_shown, restrict_query
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import Currency, Style
from agent.turn import Change, Deps, Fact, Person, Reply
from tests.fakes import CHINON

BAROLO = replace(to_cellar_item(guess_wine("Barolo 2016", 45), 6), number=1)
CHABLIS = replace(to_cellar_item(guess_wine("Chablis 2021"), 2), number=2)
HATE = Fact("hate", "grapes=Chardonnay", "Chardonnay")
ADA = Person(
    user_id=7, facts=(HATE, Fact("budget", "20 EUR")), bottles=(BAROLO, CHABLIS)
)


def test_a_text_is_parsed_as_facts_or_becomes_a_note() -> None:
    for text, kind, value in (
        ("no Chardonnay", "hate", "grapes=Chardonnay"),
        ("Riesling", "like", "grapes=Riesling"),
        ("no oak", "hate", "text=oaky"),
        ("up to 20 euros", "budget", "20 EUR"),
        ("call me Baz", "note", "call me Baz"),
    ):
        assert [(fact.kind, fact.value) for fact in parse_facts(text)] == [
            (kind, value)
        ]


def test_semicolons_part_what_is_stated() -> None:
    stated = parse_facts("I love Riesling; no oak; up to 20 euros")
    assert [fact.kind for fact in stated] == ["like", "hate", "budget"]


def test_of_two_statements_about_one_grape_the_later_one_counts() -> None:
    (fact,) = parse_facts("I love Riesling; no Riesling")
    assert fact.key == ("hate", "grapes=Riesling")
    likes, hates = Fact("like", "grapes=Riesling"), Fact("hate", "grapes=Riesling")
    for first, last in ((likes, hates), (hates, likes)):
        calls = [Change(user_id=7, added_facts=(said,)) for said in (first, last)]
        reply = Reply(text="Noted.", changes=tuple(calls))
        (change,) = add_change_notes(reply, ADA, "?", undo_id=0).changes
        assert change.added_facts == (last,)


def test_a_line_is_parsed_as_a_cellar_item() -> None:
    item = parse_cellar_item("2 Chablis 2021 18,50 $")
    assert item is not None
    wine = to_wine(item)
    assert (wine.label, item.count) == ("Chablis 2021", 2)
    assert (wine.price, wine.currency) == (18.5, Currency.USD)


def test_the_drinking_window_is_usual_or_stated_by_the_user() -> None:
    window = find_drinking_window(BAROLO)
    assert window == (2022, 2036)
    states = [find_state(window, year) for year in (2020, 2030, 2050)]
    assert states == ["young", "ready", "late"]
    assert find_drinking_window(replace(BAROLO, drink_from=2028, drink_until=2035)) == (
        2028,
        2035,
    )
    assert find_drinking_window(to_cellar_item(guess_wine("Barolo"), 1)) is None
    assert to_wine(CHABLIS).style is Style.WHITE


def test_bottles_past_their_best_were_the_last_to_be_drunk_first() -> None:
    year = this_year()
    windows = {
        "Long": (year - 1, year + 9),
        "Past": (year - 9, year - 1),
        "Due": (year - 2, year),
        "Young": (year + 3, year + 9),
        "Unknown": (None, None),
    }
    items = []
    for name, (first, last) in windows.items():
        item = to_cellar_item(guess_wine(name), 1)
        items.append(replace(item, drink_from=first, drink_until=last))
    overview = format_overview(items, year)
    heading, *urgent = overview.split("\n\n")[2].splitlines()
    assert heading == "Drink in this order:"
    assert [line.split("**")[1] for line in urgent] == ["Past", "Due", "Long"]
    assert overview.endswith("Best years unknown:\n1 × **Unknown**")
    asked = read_request("which of my bottles should I drink first?")
    found = find_own_bottles(asked, replace(ADA, bottles=tuple(items)))
    assert found is not None
    assert found.text == "\n".join([heading, *urgent[:2]])


@pytest.mark.parametrize("language", languages())
def test_a_number_is_read_as_the_cellar_shows_it(language: str) -> None:
    with use_language(language):
        shown = format_item(CHABLIS, this_year()).rpartition(" · ")[2]
        line = write_number_sign(f"{shown} 92 good")
    opened, rating, note = read_opened(ADA.bottles, line)
    assert isinstance(opened, Found)
    assert (opened.item.key, rating, note) == (CHABLIS.key, "92", "good")


async def called(name: str, person: Person = ADA, /, **arguments: Any) -> ToolResult:
    call = ToolCall("call_1", name, json.dumps(arguments))
    return await Toolbox(memory_tools()).call(call, Run(deps=Deps(person=person)))


async def change_from_tool(name: str, /, **arguments: Any) -> Change:
    (change,) = (await called(name, **arguments)).effects
    assert isinstance(change, Change)
    return change


async def test_tools_change_the_facts_and_the_cellar() -> None:
    hate = await change_from_tool(
        "remember", kind="hate", value="no Merlot", grapes=["Merlot"]
    )
    assert [fact.value for fact in hate.added_facts] == ["grapes=Merlot"]
    budget = await change_from_tool(
        "remember", kind="budget", value="up to 30", max_price=30
    )
    assert [fact.value for fact in (*budget.added_facts, *budget.removed_facts)] == [
        "30 EUR",
        "20 EUR",
    ]
    allergy = await change_from_tool(
        "remember", kind="allergy", value="eggs", allergens="egg"
    )
    assert [fact.value for fact in allergy.added_facts] == ["egg"]
    taste = {"styles": ["red", "white"], "bodies": ["full"]}
    like = await change_from_tool("remember", kind="like", value="big ones", **taste)
    assert [fact.value for fact in like.added_facts] == ["bodies=full;styles=red|white"]
    gone = await change_from_tool("forget", kind="hate", value="Chardonnay")
    assert gone.removed_facts == (HATE,)
    bought = await change_from_tool(
        "change_cellar", action="add", name="Barolo", vintage=2016, count=3, price=40
    )
    assert [(item.key, item.count) for item in bought.bottles] == [(BAROLO.key, 3)]
    stated = {"style": "White", "grapes": "Nebbiolo", "country": "Italy"}
    odd = await change_from_tool(
        "change_cellar", action="add", name="Bianco di Casa", **stated
    )
    (wine,) = map(to_wine, odd.bottles)
    assert (wine.style, wine.grapes, wine.country) == (
        Style.WHITE,
        ("Nebbiolo",),
        "Italy",
    )
    more = await change_from_tool(
        "change_cellar", action="add", wine_id="own:1", count=2
    )
    assert more.bottles == (replace(BAROLO, count=2),)
    dearer = await change_from_tool(
        "change_cellar", action="add", wine_id="own:1", price=50
    )
    assert [to_wine(item).price for item in dearer.bottles] == [50]
    drunk = await change_from_tool(
        "change_cellar", action="remove", wine_id="own:1", count=2
    )
    assert [item.count for item in drunk.bottles] == [-2]


@pytest.mark.parametrize(
    ("wine", "count", "told"),
    [
        ("Opus One 2016", 1, "not found"),
        ("Morgon 2021 from Lapierre", 1, "not found"),
        ("2021", 1, "not found"),
        ("own:9", 1, "not found"),
        ("Chablis Raveneau 2021", 1, "own:2 (2 × Chablis 2021)"),
        ("Chablis 2021", 3, "only own:2 (2 × Chablis 2021)"),
    ],
)
async def test_a_model_removed_bottles_of_another_wine_and_was_told_done(
    wine: str, count: int, told: str
) -> None:
    which = {"wine_id": wine} if wine.startswith("own:") else {"name": wine}
    result = await called("change_cellar", action="remove", count=count, **which)
    assert told in result.text
    assert "nothing was removed" in result.text
    assert result.effects == ()


async def test_no_oak_is_a_filter_of_every_search_and_told_in_plain_words() -> None:
    change = await change_from_tool(
        "remember", kind="hate", value="nothing oaky", oak=True
    )
    (fact,) = change.added_facts
    assert (fact.value, describe_fact(fact)) == ("text=oaky", "no oak")
    guest = replace(ADA, facts=(fact,))
    assert restrict_query(WineQuery(), guest).oak is False
    assert restrict_query(WineQuery(oak=True), guest).oak is True
    oaked = CHINON.model_copy(update={"notes": "Vanilla from new oak."})
    unoaked = CHINON.model_copy(update={"notes": "Unoaked: no barrel is used."})
    assert [may_be_shown(wine, guest) for wine in (oaked, unoaked, CHINON)] == [
        False,
        True,
        True,
    ]


async def test_the_most_similar_fact_is_forgotten() -> None:
    notes = [
        Fact("note", text, text)
        for text in ("my wife: no eggs", "no oak for my dinners")
    ]
    arguments = {"kind": "note", "value": "no eggs for my wife"}
    forgotten = await called("forget", replace(ADA, facts=tuple(notes)), **arguments)
    (change,) = forgotten.effects
    assert isinstance(change, Change)
    assert change.removed_facts == (notes[0],)


async def test_a_model_lifted_an_allergy_with_the_tool_forget() -> None:
    allergic = replace(
        ADA, facts=(Fact("allergy", "egg", "eggs"), Fact("note", "egg", "egg"))
    )
    refused = await called("forget", allergic, kind="allergy", value="egg")
    assert (refused.error_type, refused.effects) == ("invalid_arguments", ())
    (change,) = (await called("forget", allergic, kind="note", value="egg")).effects
    assert isinstance(change, Change)
    assert [fact.kind for fact in change.removed_facts] == ["note"]


async def test_a_known_fact_is_not_a_change() -> None:
    known = await called(
        "remember", kind="hate", value="Chardonnay", grapes="Chardonnay"
    )
    assert (known.error_type, known.effects) == (None, ())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("remember", {"kind": "note", "value": "x" * 201}),
        ("change_cellar", {"action": "add", "wine_id": "own:9"}),
        ("change_cellar", {"action": "add", "name": "Barolo", "count": 10_000}),
        ("change_cellar", {"action": "add", "count": 2}),
        ("remember", {"kind": "hate", "value": "no Merlot"}),
        ("remember", {"kind": "budget", "value": "up to 30"}),
        ("remember", {"kind": "allergy", "value": "eggs"}),
        ("remember", {"kind": "hate", "value": "odd", "grapes": ["Merlot;styles=red"]}),
    ],
)
async def test_an_invalid_change_is_an_error(
    name: str, arguments: dict[str, Any]
) -> None:
    result = await called(name, **arguments)
    assert result.error_type
    assert not result.effects


MERLOT = Fact("hate", "grapes=Merlot", "neither Merlot nor Syrah")
SYRAH = Fact("hate", "grapes=Syrah", "neither Merlot nor Syrah")
SEAFOOD = Fact("note", "the wife of Tom likes seafood", "the wife of Tom likes seafood")
DOG = Fact("note", "the dog is called Barolo", "the dog is called Barolo")


@pytest.mark.parametrize(
    ("kind", "said", "forgotten"),
    [
        ("hate", "Syrah", [SYRAH]),
        ("hate", "I do not mind Merlot any more", [MERLOT]),
        ("hate", "the wine with the thing", []),
        ("hate", "Riesling", []),
        ("note", "the thing about the garden", []),
        ("note", "Tom's wife likes seafood", [SEAFOOD]),
        ("note", "my wife and her sister", []),
        ("note", "the dog", [DOG]),
    ],
)
async def test_a_filler_word_forgot_what_was_not_meant(
    kind: str, said: str, forgotten: list[Fact]
) -> None:
    guest = replace(ADA, facts=(MERLOT, SYRAH, SEAFOOD, DOG))
    result = await called("forget", guest, kind=kind, value=said)
    changes = [effect for effect in result.effects if isinstance(effect, Change)]
    assert [fact for change in changes for fact in change.removed_facts] == forgotten


async def test_who_likes_what_they_hated_hates_it_no_more_and_keeps_the_rest() -> None:
    guest = replace(ADA, facts=(MERLOT, SYRAH))
    result = await called(
        "remember", guest, kind="like", value="Merlot", grapes=["Merlot"]
    )
    (change,) = result.effects
    assert isinstance(change, Change)
    assert [fact.key for fact in change.added_facts] == [("like", "grapes=Merlot")]
    assert change.removed_facts == (MERLOT,)
    liked = Fact("like", "grapes=Merlot", "Merlot")
    both = replace(ADA, facts=(liked, SYRAH))
    (change,) = (
        await called("forget", both, kind="hate", value="no Merlot, no Syrah")
    ).effects
    assert isinstance(change, Change)
    assert change.removed_facts == (SYRAH,)


def test_a_wish_of_two_grapes_is_two_facts_so_that_one_can_change() -> None:
    assert [fact.value for fact in parse_facts("Merlot and Syrah")] == [
        "grapes=Merlot",
        "grapes=Syrah",
    ]


def test_a_reminder_has_the_five_most_urgent_wines() -> None:
    wines = [
        replace(
            BAROLO,
            key=f"wine {last}",
            drink_from=2020,
            drink_until=last,
            count=last - 2020,
        )
        for last in range(2024, 2034)
    ]
    begins = [
        replace(
            BAROLO, key=f"young {count}", drink_from=2026, drink_until=2040, count=count
        )
        for count in range(1, 9)
    ]
    due = find_due_items([*begins, *wines], 2026)
    assert [item.key for item in due] == [
        "wine 2026",
        "young 8",
        "young 7",
        "young 6",
        "young 5",
    ]

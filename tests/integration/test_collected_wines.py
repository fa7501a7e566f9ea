"""Questions about a cellar of 800 wines: without a model, and what a model gets in one call."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.fallback.answering import Fallback
from agent.i18n import translate, use_language
from agent.memory.tools import memory_tools
from agent.turn import Deps, Person, StoredMessage
from db.wines.lists.cellar import read_cellar
from tests.cellars import YEAR, Listed, collect, export_inventory
from tests.fakes import FakeCatalogue

WINES = {wine.number: wine for wine in collect()}
TOLD_CHARS = 3_000
IsRight = Callable[[Listed], bool]


def is_red(wine: Listed) -> bool:
    return wine.kind == "Red"


def is_ready(wine: Listed) -> bool:
    return wine.state == "ready"


def is_late(wine: Listed) -> bool:
    return wine.state == "late"


def is_young(wine: Listed, kind: str) -> bool:
    return (wine.kind, wine.state) == (kind, "young")


LISTED: list[tuple[str, str, IsRight]] = [
    ("en", "what is past?", is_late),
    ("en", "anything in bin G33?", lambda wine: wine.place[1] == "G33"),
    ("en", "which are past their best", is_late),
    ("en", "how many Barolos do I have", lambda wine: wine.appellation == "Barolo"),
    ("en", "how many magnums do I own?", lambda wine: wine.size == "1.5L"),
    ("en", "what have I got from the Mosel?", lambda wine: wine.region == "Mosel"),
    (
        "en",
        f"do I have any Sassicaia {YEAR - 6}?",
        lambda wine: (wine.wine, wine.vintage) == ("Sassicaia", YEAR - 6),
    ),
    ("en", "where is my Vega Sicilia?", lambda wine: wine.producer == "Vega Sicilia"),
    (
        "en",
        "how many bottles do I have from Spain?",
        lambda wine: wine.country == "Spain",
    ),
    (
        "en",
        "which of my Rieslings are ready?",
        lambda wine: wine.varietal == "Riesling" and is_ready(wine),
    ),
    ("en", "which of my bottles are too young?", lambda wine: wine.state == "young"),
    ("en", "do I have any Pétrus?", lambda _: False),
    (
        "en",
        "which of my whites are still too young?",
        lambda wine: is_young(wine, "White"),
    ),
    ("en", f"what do I have from {YEAR - 10}?", lambda wine: wine.vintage == YEAR - 10),
    (
        "en",
        "my most expensive reds over 200 euros",
        lambda wine: is_red(wine) and wine.price >= 200,
    ),
    ("de", "Welche Rieslinge habe ich?", lambda wine: wine.varietal == "Riesling"),
    ("de", "Welche meiner Weine sind zu alt?", is_late),
    (
        "de",
        "Wie viele Flaschen aus dem Burgund habe ich?",
        lambda wine: wine.region == "Burgundy",
    ),
]
"""Questions whose answer tells the bottles of all right wines, and shows some of these."""
PROPOSED: list[tuple[str, str, IsRight]] = [
    (
        "en",
        "something ripe and red for duck",
        lambda wine: is_red(wine) and is_ready(wine),
    ),
    ("en", "what should I drink tonight?", is_ready),
    ("en", "a white from my cellar under 50 euros", lambda wine: wine.price <= 50),
    (
        "en",
        "Champagne from my cellar for oysters",
        lambda wine: wine.region == "Champagne",
    ),
    (
        "de",
        "was aus meinem Keller passt zu Ente?",
        lambda wine: is_red(wine) and is_ready(wine),
    ),
    (
        "fr",
        "que boire ce soir avec un gigot d'agneau ?",
        lambda wine: is_red(wine) and is_ready(wine),
    ),
]
"""Wishes that are answered with some of the right wines."""
NOT_OF_THE_CELLAR = (
    ("en", "Are you open on Sunday?"),
    ("en", "a red for my wife"),
    ("en", "how do I store my wine?"),
    ("de", "Ich habe heute Gäste, einen Rotwein zum Lamm bitte"),
    ("fr", "j'ai envie d'un rouge léger"),
    ("it", "ho voglia di un bianco"),
)
CALLS: list[tuple[dict[str, Any], IsRight]] = [
    (
        {"styles": ["red"], "foods": ["duck"], "readiness": "now"},
        lambda wine: is_red(wine) and is_ready(wine),
    ),
    ({"readiness": "past"}, is_late),
    ({"place": "G33"}, lambda wine: wine.place[1] == "G33"),
    ({"text": "Barolo"}, lambda wine: wine.appellation == "Barolo"),
    ({"size": "magnum", "regions": ["Burgundy"]}, lambda wine: wine.size == "1.5L"),
    (
        {"regions": ["Mosel"], "grapes": ["Riesling"]},
        lambda wine: wine.region == "Mosel",
    ),
    (
        {"min_price": 200, "readiness": "now"},
        lambda wine: wine.price >= 200 and is_ready(wine),
    ),
    ({"readiness": "soon"}, lambda wine: is_ready(wine) and wine.last_year <= YEAR + 1),
    ({"text": "Vega Sicilia"}, lambda wine: wine.producer == "Vega Sicilia"),
    ({}, is_ready),
]


@cache
def collector() -> Person:
    """The owner of the cellar; the numbers of the items are those of the wines."""
    items = read_cellar(export_inventory(collect(), "\t")).items
    numbered = (
        replace(item, number=number) for number, item in enumerate(items, start=1)
    )
    return Person(bottles=tuple(numbered), user_id=7)


async def answer(language: str, question: str) -> str:
    catalogue: Any = FakeCatalogue()
    with use_language(language):
        answered = await Fallback(catalogue=catalogue).answer(
            [StoredMessage("user", question)], person=collector()
        )
    return answered.reply.text


def numbers_in(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"· (?:#|Nr\.\s|n°\s)(\d+)", text)}


@pytest.mark.parametrize(("language", "question", "is_right"), LISTED)
async def test_a_question_about_a_cellar_is_answered_with_the_right_bottles_and_their_number(
    language: str, question: str, is_right: IsRight
) -> None:
    right = {number for number, wine in WINES.items() if is_right(wine)}
    text = await answer(language, question)
    shown = numbers_in(text)
    assert shown <= right
    assert bool(shown) == bool(right), text
    if right:
        bottles = sum(WINES[number].count for number in right)
        assert str(bottles) in re.sub(r"[,. ]", "", text.splitlines()[0])


@pytest.mark.parametrize(("language", "wish", "is_right"), PROPOSED)
async def test_a_wish_is_answered_with_one_s_own_bottles(
    language: str, wish: str, is_right: IsRight
) -> None:
    shown = numbers_in(await answer(language, wish))
    assert shown
    assert all(is_right(WINES[number]) for number in shown)


async def test_bottles_for_a_dish_come_with_the_reason() -> None:
    text = await answer("en", "which of my bottles should I open with roast beef?")
    assert text.endswith("\n\nThe protein and fat in the meat soften firm tannins.")
    with_wines_for_sale = await answer("en", "something ripe and red for duck")
    with use_language("en"):
        assert with_wines_for_sale.count(translate("pairing_duck")) == 1


@pytest.mark.parametrize(
    ("language", "message", "question"),
    [
        ("en", "I drank one of the Vega Sicilia", "Which one did you open?"),
        ("de", "Ich habe eine Vega Sicilia getrunken", "Welcher war es?"),
        ("fr", "j'ai bu un Vega Sicilia", "Lequel avez-vous ouvert"),
    ],
)
async def test_who_drank_a_bottle_of_the_cellar_is_asked_which(
    language: str, message: str, question: str
) -> None:
    text = await answer(language, message)
    assert text.startswith(question)
    shown = numbers_in(text)
    assert shown
    assert {WINES[number].producer for number in shown} == {"Vega Sicilia"}


@pytest.mark.parametrize(("language", "message"), NOT_OF_THE_CELLAR)
async def test_my_and_i_have_are_not_always_about_bottles(
    language: str, message: str
) -> None:
    assert numbers_in(await answer(language, message)) == set()


@pytest.mark.parametrize(("arguments", "is_right"), CALLS)
async def test_a_model_gets_the_right_bottles_in_one_short_result(
    arguments: dict[str, Any], is_right: IsRight
) -> None:
    run = Run(deps=Deps(person=collector()))
    call = ToolCall("1", "own_cellar", json.dumps(arguments))
    result = await Toolbox(memory_tools()).call(call, run)
    assert len(result.text) <= TOLD_CHARS
    told = json.loads(result.text)
    numbers = {int(row.partition(" ")[0].removeprefix("own:")) for row in told["rows"]}
    assert numbers
    assert all(is_right(WINES[number]) for number in numbers)

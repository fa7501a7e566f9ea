"""Follow-ups: which are offered under an answer, and how their words are understood."""

import json
from typing import Any

import pytest

from agent.house_sommelier import HouseSommelier, query_for
from agent.i18n import languages, say_in
from agent.sommelier.wine import Body, Style, Sweetness, Wine
from bot.telegram.answer_buttons import MOST, follow_ups, offered
from tests.fakes import CHINON, RIOJA
from tests.house import ask, conversation

ALL = "cheaper", "lighter", "like", "why", "elsewhere"
FULL = CHINON.model_copy(update={"body": Body.FULL})
LIGHT = CHINON.model_copy(update={"body": Body.LIGHT, "price": 6})
SWEETISH = LIGHT.model_copy(update={"sweetness": Sweetness.OFF_DRY, "style": Style.WHITE})


@pytest.mark.parametrize(
    ("wines", "asked", "names"),
    [
        ([FULL], "a red for lamb", ALL),
        ([FULL, RIOJA], "a red for lamb", ("cheaper", "lighter", "like", "why")),
        ([LIGHT], "a red", ("fuller", "like", "why", "elsewhere")),
        ([SWEETISH], "", ("fuller", "drier", "like", "why", "elsewhere")),
        ([FULL], "the cheapest red", ("lighter", "like", "why", "elsewhere")),
        ([FULL], "a red from France", ("cheaper", "lighter", "like", "why")),
        ([CHINON.model_copy(update={"price": None})], "", ("like", "why", "elsewhere")),
        ([], "a red", ()),
    ],
)
def test_what_makes_sense_for_an_answer_is_offered(
    wines: list[Wine], asked: str, names: tuple[str, ...]
) -> None:
    assert tuple(offered(wines, query_for(asked) if asked else None)) == names
    assert len(names) <= MOST


WANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "cheaper": ("search_wines", {"max_price": 13.0}),
    "lighter": ("search_wines", {"bodies": ["light", "medium_light", "medium"]}),
    "drier": ("search_wines", {"sweetness": ["bone_dry", "dry"]}),
    "like": ("find_similar_wines", {"wine_id": "landron"}),
    "why": ("get_wine", {"wine_ids": ["landron", "gramona", "clape"]}),
    "elsewhere": ("search_wines", {"without_countries": ["France"]}),
}


@pytest.mark.parametrize("language", [each for each in languages() if each != "pt"])
async def test_the_house_understands_the_words_of_each(language: Any) -> None:
    country = HouseSommelier().country_name("France", language)
    for name in follow_ups():
        words = say_in(language, f"wish_{name}", country=country)
        (call,) = (await ask(conversation("a red for lamb under 40", words))).tool_calls
        asked = json.loads(call.arguments)
        if name == "fuller":
            assert "full" in asked["bodies"]
            continue
        tool, wanted = WANTED[name]
        assert (call.name, {each: asked.get(each) for each in wanted}) == (tool, wanted), words

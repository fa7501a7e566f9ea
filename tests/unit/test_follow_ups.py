"""Follow-ups: which are offered under an answer."""

import pytest

from agent.fallback import parse_query
from agent.sommelier.wine import Body, Style, Sweetness, Wine
from bot.telegram.follow_ups import MAX_BUTTONS, offered
from tests.fakes import CHINON, RIOJA

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
    assert tuple(offered(wines, parse_query(asked) if asked else None)) == names
    assert len(names) <= MAX_BUTTONS

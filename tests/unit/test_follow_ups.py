"""Follow-ups: which are offered under an answer."""

import pytest

from agent.sommelier.wine import Body, Sweetness, Wine
from agent.turn import Reply
from bot.question import Question
from bot.telegram.answer_buttons import follow_up_buttons
from tests.fakes import CHINON

FULL = CHINON.model_copy(update={"body": Body.FULL})
LIGHT = CHINON.model_copy(update={"body": Body.LIGHT, "price": 6})
SWEETISH = LIGHT.model_copy(update={"sweetness": Sweetness.OFF_DRY})
UNKNOWN = CHINON.model_copy(update={"price": None, "body": None, "sweetness": None})


@pytest.mark.parametrize(
    ("wines", "labels"),
    [
        ([FULL], "Cheaper, Lighter, More like 1, Why?"),
        ([FULL, LIGHT], "Lighter, More like 1, Why?"),
        ([SWEETISH], "Fuller, Drier, More like 1, Why?"),
        ([UNKNOWN], "More like 1, Why?"),
        ([], ""),
    ],
)
def test_what_makes_sense_for_an_answer_is_offered(wines: list[Wine], labels: str) -> None:
    rows = follow_up_buttons(Question(id=1, text="a red"), Reply(text="", wines=(*wines,)))
    assert ", ".join(button.label for row in rows for button in row) == labels

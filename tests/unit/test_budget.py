"""Daily budgets: what a turn may use of them, and what users are told."""

from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.run import NOTHING_SPENT, Limits
from agent.i18n import translate
from bot.budgets import UNLIMITED, Allowance, Budgets
from db.repositories.turns import TurnRepository

EVENING = datetime(2026, 5, 1, 18, 40, tzinfo=UTC)
LEFT = "5 h 20 min"
RESETS = translate("budget_resets", left=LEFT)


@given(st.integers(-10, 1_000_000), st.floats(-10, 1000))
def test_a_turn_stays_within_all_budgets_and_asks_nothing_once_one_is_used_up(
    requests: int, cost_usd: float
) -> None:
    allowance = Allowance(requests, cost_usd)
    limits = allowance.apply_to(Limits())
    assert limits.requests <= max(0, requests)
    assert limits.cost_usd <= max(0, cost_usd)
    assert allowance.is_used_up() == (requests <= 0 or cost_usd <= 0)
    assert limits.requests == 0 or not allowance.is_used_up()
    assert UNLIMITED.apply_to(Limits()) == Limits()


def test_few_requests_are_for_a_tool_call_and_an_answer() -> None:
    for left, retries in ((2, 0), (3, 1), (12, 2)):
        assert Allowance(left).apply_to(Limits()).structured_output_max_retries == retries


@pytest.mark.parametrize(
    ("allowance", "is_over", "note"),
    [
        (Allowance(1), False, ""),
        (Allowance(0), True, "You have used up today's budget of questions."),
        (Allowance(1, 0), True, "Today's budget for everyone is used up."),
    ],
)
def test_the_note_says_what_is_used_up_and_when_it_resets(
    allowance: Allowance, is_over: bool, note: str
) -> None:
    day = Budgets(turns=cast("TurnRepository", None), now=lambda: EVENING)
    notes = day.notes(allowance, NOTHING_SPENT, is_over=is_over)
    assert notes == ((f"{note} {RESETS}",) if note else ())

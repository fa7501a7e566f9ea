"""Daily budgets: how they limit a turn, and the notes to users about them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.run import NOTHING_BILLED, Limits
from agent.i18n import translate
from bot.budgets import build_notes
from db.budgets import UNLIMITED, RemainingBudget

EVENING = datetime(2026, 5, 1, 18, 40, tzinfo=UTC)
TIME_LEFT = "5 hr 20 min"
RESETS = translate("budget_resets", left=TIME_LEFT)


@given(st.integers(-10, 1_000_000), st.floats(-10, 1000))
def test_a_turn_stays_within_all_budgets_and_sends_no_requests_once_one_is_used_up(
    requests: int, cost_usd: float
) -> None:
    budget = RemainingBudget(requests, cost_usd)
    limits = budget.apply_to(Limits())
    assert limits.requests <= max(0, requests)
    assert limits.cost_usd <= max(0, cost_usd)
    assert budget.is_used_up() == (requests <= 0 or cost_usd <= 0)
    assert limits.requests == 0 or not budget.is_used_up()
    assert UNLIMITED.apply_to(Limits()) == Limits()


def test_few_requests_are_reserved_for_a_tool_call_and_an_answer() -> None:
    for remaining, retries in ((2, 0), (3, 1), (12, 2)):
        limits = RemainingBudget(remaining).apply_to(Limits())
        assert limits.structured_output_max_retries == retries


@pytest.mark.parametrize(
    ("budget", "lacked_budget", "note"),
    [
        (RemainingBudget(1), False, ""),
        (
            RemainingBudget(0),
            True,
            "You have used up your allowance of questions for today.",
        ),
        (RemainingBudget(1, 0), True, "Today's allowance for everyone is used up."),
    ],
)
def test_the_note_says_what_is_used_up_and_when_it_resets(
    budget: RemainingBudget, lacked_budget: bool, note: str
) -> None:
    notes = build_notes(budget, NOTHING_BILLED, EVENING, lacked_budget=lacked_budget)
    assert notes == ((f"{note} {RESETS}",) if note else ())

"""Daily budgets: what a turn may use of them, and what users are told."""

from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.limits import NOTHING_SPENT, Limits
from agent.i18n import translate
from bot.budgets import UNLIMITED, Allowance, Budget, Budgets
from db.repositories.turns import TurnRepository

EVENING = datetime(2026, 5, 1, 18, 40, tzinfo=UTC)
LEFT = "5 h 20 min"
RESETS = translate("budget_resets", left=LEFT)

of = st.sampled_from(("user", "everyone"))
counts = st.integers(0, 1_000_000)
money = st.floats(0, 1000, allow_nan=False)
budgets = st.builds(Budget, of, st.just("requests"), counts, counts) | st.builds(
    Budget, of, st.just("cost_usd"), money, money
)


@given(st.lists(budgets, max_size=4))
def test_a_turn_stays_within_all_budgets_and_asks_nothing_once_one_is_used_up(
    rows: list[Budget],
) -> None:
    allowance = Allowance(tuple(rows))
    limits = allowance.apply_to(Limits())
    assert all(getattr(limits, row.unit) <= max(0, row.limit - row.used) for row in rows)
    assert allowance.is_used_up() == any(row.used >= row.limit for row in rows)
    assert limits.requests == 0 or not allowance.is_used_up()
    assert UNLIMITED.apply_to(Limits()) == Limits()


def test_few_requests_are_for_a_tool_call_and_an_answer() -> None:
    for left, retries in ((2, 0), (3, 1), (12, 2)):
        allowance = Allowance((Budget("user", "requests", 20, 20 - left),))
        assert allowance.apply_to(Limits()).structured_output_max_retries == retries


@pytest.mark.parametrize(
    ("budget", "is_over", "note"),
    [
        (Budget("user", "requests", 10, 9), False, ""),
        (Budget("user", "cost_usd", 1, 1), True, "You have used up today's budget."),
        (Budget("everyone", "cost_usd", 1, 1), True, "Today's budget for everyone is used up."),
    ],
)
def test_the_note_says_what_is_used_up_and_when_it_resets(
    budget: Budget, is_over: bool, note: str
) -> None:
    day = Budgets(turns=cast("TurnRepository", None), limits=[], now=lambda: EVENING)
    notes = day.notes(Allowance((budget,)), NOTHING_SPENT, is_over=is_over)
    assert notes == ((f"{note} {RESETS}",) if note else ())

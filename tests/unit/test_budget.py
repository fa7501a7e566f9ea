"""Daily budgets: what a turn may use of them, and what users are told."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.limits import NOTHING_SPENT, Limits, Spent
from agent.i18n import translate
from bot.budgets import (
    LIMITS,
    TYPICAL,
    UNLIMITED,
    Allowance,
    Budgets,
    DailyBudget,
    average_turn,
    duration_text,
)
from db.records import Spending
from db.repositories.people import PeopleRepository
from db.repositories.turns import TurnRepository

EVENING = datetime(2026, 5, 1, 18, 40, tzinfo=UTC)
ADA = 7
LEFT = "5 h 20 min"
RESETS = translate("budget_resets", left=LEFT)

counts = st.integers(0, 1_000_000)
money = st.floats(0, 1000, allow_nan=False)
spendings = st.builds(Spent, counts, counts, money)
budgets = st.builds(DailyBudget, st.none() | counts, st.none() | money)


@given(budgets, budgets, spendings, spendings)
def test_a_turn_stays_within_both_budgets_and_asks_nothing_once_one_is_used_up(
    person: DailyBudget, everyone: DailyBudget, by_person: Spent, by_everyone: Spent
) -> None:
    allowance = Allowance(
        person=person, everyone=everyone, by_person=by_person, by_everyone=by_everyone
    )
    limits = allowance.apply_to(Limits())
    pairs = [
        (getattr(budget, name), getattr(used, name), getattr(limits, name))
        for budget, used in ((person, by_person), (everyone, by_everyone))
        for name in LIMITS
        if getattr(budget, name) is not None
    ]
    assert all(may_use <= max(0, limit - used) for limit, used, may_use in pairs)
    assert allowance.is_used_up() == any(used >= limit for limit, used, _ in pairs)
    assert limits.requests == 0 or not allowance.is_used_up()
    assert UNLIMITED.apply_to(Limits()) == Limits()


@pytest.mark.parametrize(("left", "retries"), [(1, 0), (2, 0), (3, 1), (4, 2), (12, 2)])
def test_few_requests_are_for_a_tool_call_and_an_answer(left: int, retries: int) -> None:
    allowance = Allowance(person=DailyBudget(requests=20), by_person=Spent(requests=20 - left))
    assert allowance.apply_to(Limits()).structured_output_max_retries == retries


def test_running_turns_count_as_average_turns() -> None:
    assert average_turn(Spending()) == TYPICAL
    spending = Spending(by_everyone=Spent(7, 3000, 0.75), turns=3)
    assert average_turn(spending) == Spent(2, 1000, 0.25)


@dataclass
class People:
    """Remembers who was warned on which day."""

    days: set[tuple[int, date]] = field(default_factory=set)

    async def warned(self, user_id: int, day: date) -> bool:
        is_first = (user_id, day) not in self.days
        self.days.add((user_id, day))
        return is_first


@pytest.mark.parametrize(
    ("person", "used", "is_over", "note"),
    [
        (DailyBudget(requests=10), Spent(requests=7), False, ""),
        (
            DailyBudget(requests=10),
            Spent(requests=8),
            False,
            translate("own_questions_nearly", share=80, left=LEFT),
        ),
        (
            DailyBudget(cost_usd=2),
            Spent(cost_usd=1.9),
            False,
            translate("own_budget_nearly", share=95, left=LEFT),
        ),
        (
            DailyBudget(requests=10),
            Spent(requests=10),
            False,
            f"You have used up today's budget of questions. {RESETS}",
        ),
        (
            DailyBudget(cost_usd=1),
            Spent(cost_usd=1),
            True,
            f"You have used up today's budget. {RESETS}",
        ),
        (DailyBudget(), Spent(), True, f"Today's budget for everyone is used up. {RESETS}"),
        (DailyBudget(), Spent(requests=99), False, ""),
    ],
)
async def test_the_note_says_what_is_used_and_when_it_resets_and_warns_once_a_day(
    person: DailyBudget, used: Spent, is_over: bool, note: str
) -> None:
    told = Budgets(
        turns=cast("TurnRepository", None),
        people=cast("PeopleRepository", People()),
        now=lambda: EVENING,
    )
    allowance = Allowance(person=person, everyone=DailyBudget(requests=1), by_person=used)
    notes = [await told.notes(allowance, NOTHING_SPENT, ADA, is_over=is_over) for _ in range(2)]
    warns_once = "%" in note
    assert notes == [(note,) if note else (), (note,) if note and not warns_once else ()]


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (timedelta(seconds=4), "1 min"),
        (timedelta(minutes=60), "1 h"),
        (timedelta(hours=5, minutes=20), "5 h 20 min"),
    ],
)
def test_a_duration_is_said_in_hours_and_minutes(duration: timedelta, said: str) -> None:
    assert duration_text(duration) == said

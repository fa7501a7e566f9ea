"""The budgets of a day: what is left, what is used up, and what people are told of it."""

from datetime import UTC, datetime, timedelta, timezone
from typing import cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.engine.limits import Ledger, Limits, Spent
from agent.engine.messages import LLMResponse, Usage
from bot.budgets import (
    NO_BUDGET,
    TYPICAL,
    UNLIMITED,
    Allowance,
    Budgets,
    DailyBudget,
    allowance_of,
    duration_text,
    one_turn,
)
from db.records import Spending
from db.repositories.people import PeopleRepository
from db.repositories.turns import TurnRepository

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOTHING = Spent()
OFFSETS = st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours)))

counts = st.integers(0, 1_000_000)
money = st.floats(0, 1000, allow_nan=False)
spendings = st.builds(Spent, counts, counts, money)
budgets = st.builds(DailyBudget, st.none() | counts, st.none() | money)
limits = st.builds(
    Limits,
    requests=st.integers(1, 100),
    tokens=st.integers(1, 10**6),
    cost_usd=st.floats(0.01, 10, allow_nan=False),
)


def judged(
    person: DailyBudget = NO_BUDGET,
    everyone: DailyBudget = NO_BUDGET,
    by_person: Spent = NOTHING,
    by_everyone: Spent = NOTHING,
    now: datetime = NOON,
) -> Allowance:
    return allowance_of(person, everyone, by_person=by_person, by_everyone=by_everyone, now=now)


def some_limit_reached(budget: DailyBudget, spent: Spent) -> bool:
    pairs = [
        (budget.requests, spent.requests),
        (budget.cost_usd, spent.cost_usd),
    ]
    return any(limit is not None and used >= limit for limit, used in pairs)


@given(budgets, budgets, spendings, spendings)
def test_used_up_is_what_has_reached_a_limit_and_the_persons_own_comes_first(
    person: DailyBudget, everyone: DailyBudget, by_person: Spent, by_everyone: Spent
) -> None:
    allowance = judged(person, everyone, by_person, by_everyone)
    own = some_limit_reached(person, by_person)
    shared = some_limit_reached(everyone, by_everyone)
    assert (allowance.used_up is not None) == (own or shared)
    assert allowance.is_shared == (shared and not own)


@given(spendings, spendings, limits)
def test_without_budgets_nothing_is_ever_used_up_warned_of_or_narrowed(
    by_person: Spent, by_everyone: Spent, limits: Limits
) -> None:
    allowance = judged(by_person=by_person, by_everyone=by_everyone)
    assert allowance.used_up is None
    assert allowance.narrowed(limits) == limits
    assert UNLIMITED.narrowed(limits) == limits
    assert UNLIMITED.after(by_person).used_up is None


@given(budgets, budgets, spendings, spendings, limits)
def test_a_turn_that_keeps_to_its_limits_stays_within_both_budgets(
    person: DailyBudget,
    everyone: DailyBudget,
    by_person: Spent,
    by_everyone: Spent,
    limits: Limits,
) -> None:
    narrowed = judged(person, everyone, by_person, by_everyone).narrowed(limits)
    assert narrowed.requests <= limits.requests
    assert narrowed.cost_usd <= limits.cost_usd
    for budget, spent in ((person, by_person), (everyone, by_everyone)):
        if budget.requests is not None:
            assert spent.requests + narrowed.requests <= max(budget.requests, spent.requests)
        if budget.cost_usd is not None:
            most = max(budget.cost_usd, spent.cost_usd)
            assert spent.cost_usd + narrowed.cost_usd == pytest.approx(
                min(most, spent.cost_usd + narrowed.cost_usd)
            )


@given(budgets, spendings, spendings)
def test_what_a_turn_used_counts_like_what_was_used_before_it(
    person: DailyBudget, before: Spent, during: Spent
) -> None:
    assume(person.cost_usd is None)  # sums of floats are not exact
    allowance = judged(person, by_person=before)
    both = Spent(before.requests + during.requests, before.tokens + during.tokens)
    after = judged(person, by_person=both)
    assert (allowance.after(during).used_up is None) == (after.used_up is None)


@given(st.datetimes(datetime(2000, 1, 2), datetime(2100, 1, 1)), OFFSETS)
def test_budgets_reset_at_the_next_midnight_utc_wherever_the_clock_is(
    moment: datetime, offset: timezone
) -> None:
    allowance = judged(now=moment.replace(tzinfo=offset))
    left = allowance.resets_at - allowance.at
    assert timedelta(0) < left <= timedelta(days=1)
    assert (allowance.resets_at.hour, allowance.resets_at.minute) == (0, 0)
    assert allowance.resets_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(("left", "retries"), [(1, 0), (2, 0), (3, 1), (4, 2), (11, 2), (12, 2)])
def test_few_requests_are_kept_for_a_tool_call_and_an_answer(left: int, retries: int) -> None:
    narrowed = judged(DailyBudget(requests=left)).narrowed(Limits(requests=12))
    assert (narrowed.requests, narrowed.structured_output_max_retries) == (left, retries)


def test_a_ceiling_holds_for_requests_with_limits_of_their_own() -> None:
    ledger = Ledger(ceiling=Limits(tokens=100))
    assert ledger.exhausted(Limits()) is None
    ledger.add(LLMResponse(model="gpt-4o", usage=Usage(90, 10)))
    assert ledger.exhausted(Limits()) == "tokens"
    assert ledger.spent == Spent(0, 100, ledger.cost_usd)


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (timedelta(hours=5, minutes=20), "5 h 20 min"),
        (timedelta(hours=5), "5 h"),
        (timedelta(minutes=20, seconds=29), "20 min"),
        (timedelta(seconds=1), "1 min"),
        (timedelta(hours=23, minutes=59, seconds=45), "24 h"),
    ],
)
def test_a_duration_is_said_in_hours_and_minutes(duration: timedelta, said: str) -> None:
    assert duration_text(duration) == said


EVENING = datetime(2026, 5, 1, 18, 40, tzinfo=UTC)
RESETS = "It resets in 5 h 20 min, at 00:00 UTC"


def budgets_of(person: DailyBudget = NO_BUDGET) -> Budgets:
    """Budgets of which nothing is read."""
    return Budgets(
        turns=cast("TurnRepository", None), people=cast("PeopleRepository", None), person=person
    )


@pytest.mark.parametrize(
    ("allowance", "reply", "said"),
    [
        (Allowance(used_up="requests", at=EVENING), ("budget",), "today's budget of questions."),
        (Allowance(used_up="cost", at=EVENING), ("budget",), "You have used up today's budget."),
        (
            Allowance(used_up="cost", is_shared=True, at=EVENING),
            ("budget",),
            "Today's budget for everyone is used up.",
        ),
        (
            # Used up by this very turn.
            Allowance(everyone=DailyBudget(requests=10), at=EVENING),
            ("budget", "limit"),
            "Today's budget for everyone is used up.",
        ),
    ],
)
def test_the_note_says_what_is_used_up_and_when_it_resets(
    allowance: Allowance, reply: tuple[str, ...], said: str
) -> None:
    note = budgets_of().note(allowance, Spent(requests=10), is_over=bool(reply))
    assert note is not None
    assert said in note.text
    assert RESETS in note.text
    assert note.once_on is None


PERSON = DailyBudget(requests=20, cost_usd=2.0)


@pytest.mark.parametrize(
    ("left", "during", "said"),
    [
        ((20, 2.0), (3, 0.1), None),
        ((7, 2.0), (2, 0.0), None),
        ((7, 2.0), (3, 0.0), "You have used 80 % of today's budget of questions."),
        ((4, 2.0), (3, 0.0), "You have used 95 % of today's budget of questions."),
        ((20, 0.5), (2, 0.25), "You have used 87 % of today's budget."),
        # From well below four fifths past the limit: told at once, not with the next answer.
        ((8, 2.0), (8, 0.0), "You have used up today's budget of questions."),
        ((20, 0.4), (2, 0.9), "You have used up today's budget."),
    ],
)
def test_a_person_is_told_once_a_turn_has_used_most_of_their_budget(
    left: tuple[int, float], during: tuple[int, float], said: str | None
) -> None:
    allowance = Allowance(person=DailyBudget(*left), at=EVENING)
    spent = Spent(requests=during[0], cost_usd=during[1])
    note = budgets_of(PERSON).note(allowance, spent, is_over=False)
    assert (note and note.text.startswith(said or "-")) is (None if said is None else True)
    if note is not None:
        assert RESETS in note.text
        assert (note.once_on == EVENING.date()) == ("used up " not in note.text.split(".")[0])


def test_nobody_is_told_of_what_others_used_or_what_does_not_limit_them() -> None:
    nearly = Allowance(everyone=DailyBudget(requests=1), at=EVENING)
    spent = Spent(requests=50)
    assert budgets_of().note(nearly, spent, is_over=False) is None
    assert budgets_of(PERSON).note(UNLIMITED, spent, is_over=False) is None
    assert budgets_of().note(Allowance(used_up="cost"), NOTHING, is_over=False) is None


def test_a_turn_takes_what_those_of_the_day_took_on_average() -> None:
    assert one_turn(Spending()) == TYPICAL
    day = Spending(by_everyone=Spent(10, 9_000, 0.3), turns=3)
    assert one_turn(day) == Spent(3, 3000, 0.3 / 3)

"""What people are told of the day's budgets, and where what they used is read."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from agent.engine.limits import (
    NO_BUDGET,
    UNLIMITED,
    Allowance,
    BudgetLimit,
    DailyBudget,
    Spent,
    allowance_of,
    day_of,
)
from agent.i18n import say
from agent.repositories import PeopleRepository, Spending, TurnRepository

WARN_AT: Final = 0.8
"""The share of a person's budget from which on they are told of it."""
TYPICAL: Final = Spent(requests=2, tokens=5_000, cost_usd=0.015)
"""What a turn takes, as long as none of the day says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The budgets of a day: of each person but those who are `exempt`, and of everyone."""

    turns: TurnRepository
    people: PeopleRepository
    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def allowance(self, turn_id: int, user_id: int) -> Allowance:
        """What a person's turn, which begins now, may use. Raises what the database does.

        Other turns that are under way count with what one takes on average.
        """
        now = self.now()
        spending = await self.turns.begin(turn_id, user_id, now, since=day_of(now))
        if user_id in self.exempt:
            return UNLIMITED
        each = one_turn(spending)
        return allowance_of(
            self.person,
            self.everyone,
            by_person=spending.by_person + each * spending.persons_under_way,
            by_everyone=spending.by_everyone + each * spending.under_way,
            now=now,
        )

    def note(self, allowance: Allowance, spent: Spent, *, is_over: bool) -> "Note | None":
        """What a person is to be told below an answer that took so much; None if nothing is.

        `is_over`: the budget is why no model answered.
        """
        left = duration_text(allowance.resets_at - allowance.at)
        resets = say("budget_resets", left=left)
        if is_over:
            ended = allowance.after(spent)
            over = say("shared_budget_used_up") if ended.is_shared else _used_up(ended.used_up)
            return Note(f"{over} {resets}")
        if not allowance.person.is_set:
            return None
        used = used_of(self.person, allowance.person) + spent
        if limit := self.person.reached(used):
            return Note(f"{_used_up(limit)} {resets}")
        if limit := self.person.reached(used, WARN_AT):
            share = int(100 * share_of(self.person, used, limit))
            nearly = "own_questions_nearly" if limit == "requests" else "own_budget_nearly"
            said = say(nearly, share=share, left=left)
            return Note(said, once_on=allowance.at.date())
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """What a person is told of their budget, on `once_on` only once."""

    text: str
    once_on: date | None = None


def one_turn(spending: Spending) -> Spent:
    """What a turn takes: the mean of those of the day that asked a model."""
    if not spending.turns:
        return TYPICAL
    total, turns = spending.by_everyone, spending.turns
    return Spent(round(total.requests / turns), round(total.tokens / turns), total.cost_usd / turns)


def used_of(budget: DailyBudget, left: DailyBudget) -> Spent:
    """What was used of a budget of which so much is left."""
    return Spent(
        (budget.requests or 0) - (left.requests or 0),
        (budget.tokens or 0) - (left.tokens or 0),
        (budget.cost_usd or 0.0) - (left.cost_usd or 0.0),
    )


def share_of(budget: DailyBudget, used: Spent, limit: BudgetLimit) -> float:
    """How much of a limit that is set was used; 1 is all."""
    shares = {
        "requests": used.requests / (budget.requests or 1),
        "tokens": used.tokens / (budget.tokens or 1),
        "cost": used.cost_usd / (budget.cost_usd or 1),
    }
    return shares[limit]


def _used_up(limit: BudgetLimit | None) -> str:
    return say("own_questions_used_up" if limit == "requests" else "own_budget_used_up")


def duration_text(duration: timedelta) -> str:
    """A time of less than a day, as people say it: "5 h 20 min"; never less than a minute."""
    minutes = max(1, round(duration.total_seconds() / 60))
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, parts))

"""Daily budgets: how much a turn may use, and the notes to users about it. A day is one of UTC."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final, Literal

from agent.engine.limits import NOTHING_SPENT, Limits, Spent
from agent.i18n import translate
from bot.retries import try_briefly
from db.records import Spending
from db.repositories.people import PeopleRepository
from db.repositories.turns import TurnRepository

WARN_AT: Final = 0.8
"""The used share of a budget at which its user gets a note."""
TYPICAL: Final = Spent(requests=2, tokens=5_000, cost_usd=0.015)
"""The estimate for a turn until one of the day used a model."""

BudgetLimit = Literal["requests", "cost_usd"]
LIMITS: Final[tuple[BudgetLimit, ...]] = ("requests", "cost_usd")


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """The limits of a day: requests to models, US dollars. None: no limit."""

    requests: int | None = None
    cost_usd: float | None = None

    @property
    def is_set(self) -> bool:
        """Return whether anything is limited."""
        return self != NO_BUDGET

    def shares(self, used: Spent) -> dict[BudgetLimit, float]:
        """Return the share of every limit that was used; 1 is all."""
        limits = {name: getattr(self, name) for name in LIMITS}
        return {
            name: getattr(used, name) / limit if limit else 1.0
            for name, limit in limits.items()
            if limit is not None
        }

    def reached(self, used: Spent, share: float = 1.0) -> BudgetLimit | None:
        """Return the first limit of which this share is used, or None."""
        return next((name for name, part in self.shares(used).items() if part >= share), None)

    def apply_to(self, limits: Limits, used: Spent) -> Limits:
        """Return the limits of a turn, lowered to the rest of the budget."""
        lowered: dict[str, Any] = {
            name: min(getattr(limits, name), max(0, limit - getattr(used, name)))
            for name in LIMITS
            if (limit := getattr(self, name)) is not None
        }
        return replace(limits, **lowered)


NO_BUDGET: Final = DailyBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The budgets of a turn, and how much of them was used when it began."""

    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    by_person: Spent = NOTHING_SPENT
    by_everyone: Spent = NOTHING_SPENT

    def is_used_up(self, spent: Spent = NOTHING_SPENT) -> bool:
        """Return whether nothing is left once the turn has used so much."""
        own, shared = self.by_person + spent, self.by_everyone + spent
        return bool(self.person.reached(own) or self.everyone.reached(shared))

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits of a turn, lowered to what the budgets allow.

        Where few requests are left, they are for a tool call and an answer, not for retries. When
        the allowance is used up, no request is left.
        """
        wanted = limits.requests
        limits = self.person.apply_to(limits, self.by_person)
        limits = self.everyone.apply_to(limits, self.by_everyone)
        if self.is_used_up():
            limits = replace(limits, requests=0)
        if limits.requests == wanted:
            return limits
        retries = min(limits.structured_output_max_retries, max(0, limits.requests - 2))
        return replace(limits, structured_output_max_retries=retries)


UNLIMITED: Final = Allowance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The budgets of a day: of every person but those who are `exempt`, and of everyone."""

    turns: TurnRepository
    people: PeopleRepository
    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def begin(self, turn_id: int, user_id: int) -> Allowance:
        """Begin a turn; return its allowance, unlimited if the database cannot be read.

        Other running turns count as average turns.
        """
        now = self.now()
        spending = await try_briefly(
            lambda: self.turns.begin(turn_id, user_id, now, since=day_of(now)),
            None,
            "The usage of today could not be read",
        )
        if spending is None or user_id in self.exempt:
            return UNLIMITED
        average = average_turn(spending)
        return Allowance(
            person=self.person if user_id else NO_BUDGET,
            everyone=self.everyone,
            by_person=spending.by_person + average * spending.persons_under_way,
            by_everyone=spending.by_everyone + average * spending.under_way,
        )

    async def notes(
        self, allowance: Allowance, spent: Spent, user_id: int, *, is_over: bool
    ) -> tuple[str, ...]:
        """Return the notes below an answer that used so much.

        `is_over`: no model answered because of the budget. A warning is given once a day.
        """
        now, used = self.now(), allowance.by_person + spent
        left = duration_text(day_of(now) + timedelta(days=1) - now)
        limit = allowance.person.reached(used)
        if is_over and limit is None:
            return (
                f"{translate('shared_budget_used_up')} {translate('budget_resets', left=left)}",
            )
        if limit is not None:
            name = "own_questions_used_up" if limit == "requests" else "own_budget_used_up"
            return (f"{translate(name)} {translate('budget_resets', left=left)}",)
        limit = allowance.person.reached(used, WARN_AT)
        if limit is None or not await self._is_first_warning(user_id, now):
            return ()
        name = "own_questions_nearly" if limit == "requests" else "own_budget_nearly"
        share = int(100 * allowance.person.shares(used)[limit])
        return (translate(name, share=share, left=left),)

    async def _is_first_warning(self, user_id: int, now: datetime) -> bool:
        """Return whether a user was not warned today, and store that they are now."""
        return await try_briefly(
            lambda: self.people.warned(user_id, now.date()),
            False,
            "Whether a user was warned of their budget could not be read",
        )


def average_turn(spending: Spending) -> Spent:
    """Return the mean of the turns of the day that asked a model."""
    if not spending.turns:
        return TYPICAL
    total, turns = spending.by_everyone, spending.turns
    return Spent(round(total.requests / turns), round(total.tokens / turns), total.cost_usd / turns)


def day_of(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


def duration_text(duration: timedelta) -> str:
    """Return a time of less than a day in words, as "5 h 20 min"; at least a minute."""
    hours, minutes = divmod(max(1, round(duration.total_seconds() / 60)), 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, parts))

"""Daily budgets: how much a turn may use of them, and the notes to users about them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final, Literal, TypeVar

from agent.engine.errors import or_else
from agent.engine.limits import Limits, Spent
from agent.i18n import say
from bot.retries import retry_briefly
from db.records import Spending
from db.repositories.people import PeopleRepository
from db.repositories.turns import TurnRepository

N = TypeVar("N", int, float)

WARN_AT: Final = 0.8
"""The used share of a budget at which its user gets a note."""
TYPICAL: Final = Spent(requests=2, tokens=5_000, cost_usd=0.015)
"""The estimate for a turn until one of the day used a model."""

BudgetLimit = Literal["requests", "cost"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """The limits of a day (UTC): requests to models, US dollars. None: no limit."""

    requests: int | None = None
    cost_usd: float | None = None

    @property
    def is_set(self) -> bool:
        """Return whether anything is limited."""
        return self != NO_BUDGET

    def left(self, spent: Spent) -> "DailyBudget":
        """Return what is left of the limits, not below zero."""
        return DailyBudget(
            None if self.requests is None else max(0, self.requests - spent.requests),
            None if self.cost_usd is None else max(0.0, self.cost_usd - spent.cost_usd),
        )

    def shares(self, spent: Spent) -> dict[BudgetLimit, float]:
        """Return the share of every limit that was used; 1 is all."""
        limits: tuple[tuple[BudgetLimit, float | None, float], ...] = (
            ("requests", self.requests, spent.requests),
            ("cost", self.cost_usd, spent.cost_usd),
        )
        return {
            name: used / limit if limit else 1.0
            for name, limit, used in limits
            if limit is not None
        }

    def reached(self, spent: Spent, share: float = 1.0) -> BudgetLimit | None:
        """Return the first limit of which this share is used, or None."""
        return next((name for name, used in self.shares(spent).items() if used >= share), None)


NO_BUDGET: Final = DailyBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The part of the day's budgets that a turn may still use; it began at `at`.

    `person` and `everyone` are what is left of the two budgets. `used_up` names the limit that
    forbids any request, `is_shared` tells that it is one of everyone's.
    """

    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    used_up: BudgetLimit | None = None
    is_shared: bool = False
    at: datetime = EPOCH

    @property
    def resets_at(self) -> datetime:
        """Return when the next day (UTC) begins."""
        return day_of(self.at) + timedelta(days=1)

    def narrowed(self, limits: Limits) -> Limits:
        """Return the limits of a turn, narrowed to what the budgets allow.

        Where few requests are left, they are for a tool call and an answer, not for retries. When
        the allowance is used up, no request is left.
        """
        asked = limits.requests
        if self.used_up:
            limits = replace(limits, requests=0)
        for left in (self.person, self.everyone):
            limits = replace(
                limits,
                requests=_lower(limits.requests, left.requests),
                cost_usd=_lower(limits.cost_usd, left.cost_usd),
            )
        if limits.requests == asked:
            return limits
        retries = min(limits.structured_output_max_retries, max(0, limits.requests - 2))
        return replace(limits, structured_output_max_retries=retries)

    def after(self, spent: Spent) -> "Allowance":
        """Return the allowance, used up or not, after a turn has used so much."""
        if self.used_up:
            return self
        return _judged(self, self.person, self.everyone, spent, spent)


UNLIMITED: Final = Allowance()


def allowance_of(
    person: DailyBudget,
    everyone: DailyBudget,
    *,
    by_person: Spent,
    by_everyone: Spent,
    now: datetime,
) -> Allowance:
    """Return what is left of both budgets for a turn, after what the day has used."""
    allowance = Allowance(
        person=person.left(by_person), everyone=everyone.left(by_everyone), at=now
    )
    return _judged(allowance, person, everyone, by_person, by_everyone)


def day_of(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


def _judged(
    allowance: Allowance,
    person: DailyBudget,
    everyone: DailyBudget,
    by_person: Spent,
    by_everyone: Spent,
) -> Allowance:
    own, shared = person.reached(by_person), everyone.reached(by_everyone)
    return replace(allowance, used_up=own or shared, is_shared=own is None and shared is not None)


def _lower(limit: N, left: N | None) -> N:
    return limit if left is None else min(limit, left)


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
        """Return what a user's turn that begins now may use. Raises what the database does.

        Other running turns count as average turns.
        """
        now = self.now()
        spending = await self.turns.begin(turn_id, user_id, now, since=day_of(now))
        if user_id in self.exempt:
            return UNLIMITED
        average = one_turn(spending)
        return allowance_of(
            self.person,
            self.everyone,
            by_person=spending.by_person + average * spending.persons_under_way,
            by_everyone=spending.by_everyone + average * spending.under_way,
            now=now,
        )

    async def begin(self, turn_id: int, user_id: int) -> Allowance:
        """Begin a turn; return its allowance, unlimited if it cannot be read."""
        read = partial(retry_briefly, lambda: self.allowance(turn_id, user_id))
        return await or_else(read, UNLIMITED, "The usage of today could not be read")

    async def notes(
        self, allowance: Allowance, spent: Spent, user_id: int, *, is_over: bool
    ) -> tuple[str, ...]:
        """Return the notes below an answer; a warning is given once a day."""
        note = self.note(allowance, spent, is_over=is_over)
        if note is None:
            return ()
        if (day := note.once_on) is not None:
            warn = partial(retry_briefly, lambda: self.people.warned(user_id, day))
            what = "Whether a user was warned of their budget could not be read"
            if not await or_else(warn, False, what):
                return ()
        return (note.text,)

    def note(self, allowance: Allowance, spent: Spent, *, is_over: bool) -> "Note | None":
        """Return the note below an answer that used so much, or None.

        `is_over`: no model answered because of the budget.
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
            share = int(100 * self.person.shares(used)[limit])
            nearly = "own_questions_nearly" if limit == "requests" else "own_budget_nearly"
            said = say(nearly, share=share, left=left)
            return Note(said, once_on=allowance.at.date())
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """A note to a user about their budget, on the day `once_on` only once."""

    text: str
    once_on: date | None = None


def one_turn(spending: Spending) -> Spent:
    """Return the mean of the turns of the day that asked a model."""
    if not spending.turns:
        return TYPICAL
    total, turns = spending.by_everyone, spending.turns
    return Spent(round(total.requests / turns), round(total.tokens / turns), total.cost_usd / turns)


def used_of(budget: DailyBudget, left: DailyBudget) -> Spent:
    """Return how much of a budget was used, given what is left."""
    return Spent(
        requests=(budget.requests or 0) - (left.requests or 0),
        cost_usd=(budget.cost_usd or 0.0) - (left.cost_usd or 0.0),
    )


def _used_up(limit: BudgetLimit | None) -> str:
    return say("own_questions_used_up" if limit == "requests" else "own_budget_used_up")


def duration_text(duration: timedelta) -> str:
    """Return a time of less than a day in words, as "5 h 20 min"; at least a minute."""
    minutes = max(1, round(duration.total_seconds() / 60))
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, parts))

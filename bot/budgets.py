"""The budgets of a day: how much of them a turn may use, and what people are told of them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, TypeVar

from agent.engine.limits import Limits, Spent
from agent.i18n import say
from agent.repositories import PeopleRepository, Spending, TurnRepository

N = TypeVar("N", int, float)

WARN_AT: Final = 0.8
"""The share of a person's budget from which on they are told of it."""
TYPICAL: Final = Spent(requests=2, tokens=5_000, cost_usd=0.015)
"""What a turn takes, as long as none of the day says."""

BudgetLimit = Literal["requests", "tokens", "cost"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """What may be used in a day (UTC): requests to models, tokens, US dollars. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether anything is limited."""
        return self != NO_BUDGET

    def left(self, spent: Spent) -> "DailyBudget":
        """Subtract what was spent, to nothing below zero."""
        return DailyBudget(
            None if self.requests is None else max(0, self.requests - spent.requests),
            None if self.tokens is None else max(0, self.tokens - spent.tokens),
            None if self.cost_usd is None else max(0.0, self.cost_usd - spent.cost_usd),
        )

    def reached(self, spent: Spent, share: float = 1.0) -> BudgetLimit | None:
        """Name the first limit of which this share is used; None while there is none."""
        if self.requests is not None and spent.requests >= self.requests * share:
            return "requests"
        if self.tokens is not None and spent.tokens >= self.tokens * share:
            return "tokens"
        if self.cost_usd is not None and spent.cost_usd >= self.cost_usd * share:
            return "cost"
        return None


NO_BUDGET: Final = DailyBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What of the day's budgets a turn that began at `at` may still use.

    `person` and `everyone` are what is left of each budget. `used_up` names the limit that forbids
    any request, `is_shared` says that it is one of everyone's.
    """

    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    used_up: BudgetLimit | None = None
    is_shared: bool = False
    at: datetime = EPOCH

    @property
    def resets_at(self) -> datetime:
        """When the next day (UTC) begins."""
        return day_of(self.at) + timedelta(days=1)

    def narrowed(self, limits: Limits) -> Limits:
        """Narrow the limits of a turn, as far as the budgets allow them.

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
                tokens=_lower(limits.tokens, left.tokens),
                cost_usd=_lower(limits.cost_usd, left.cost_usd),
            )
        if limits.requests == asked:
            return limits
        retries = min(limits.structured_output_max_retries, max(0, limits.requests - 2))
        return replace(limits, structured_output_max_retries=retries)

    def after(self, spent: Spent) -> "Allowance":
        """Judge the same once a turn has used so much: used up or not."""
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
    """Work out what of both budgets is left for a turn, after what the day has used."""
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

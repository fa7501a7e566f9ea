"""Daily budgets: how much a turn may use, and the notes to users about it. A day is one of UTC."""

from collections.abc import Callable, Collection, Sequence
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
NEARLY: Final = {"requests": "own_questions_nearly", "cost_usd": "own_budget_nearly"}
USED_UP: Final = {"requests": "own_questions_used_up", "cost_usd": "own_budget_used_up"}


@dataclass(frozen=True, slots=True)
class Budget:
    """What one user, or all together, may use in a day: requests to models, or US dollars.

    `used` is the use of the day before the turn.
    """

    of: Literal["user", "everyone"]
    unit: Literal["requests", "cost_usd"]
    limit: float
    used: float = 0

    def share(self, spent: Spent = NOTHING_SPENT) -> float:
        """Return the share that is used once the turn has used `spent`; 1 is all."""
        return (self.used + getattr(spent, self.unit)) / self.limit if self.limit else 1.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """The budgets of a turn."""

    budgets: tuple[Budget, ...] = ()

    def is_used_up(self, spent: Spent = NOTHING_SPENT) -> bool:
        """Return whether nothing is left once the turn has used so much."""
        return any(budget.share(spent) >= 1 for budget in self.budgets)

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits of a turn, lowered to what the budgets allow.

        Where few requests are left, they are for a tool call and an answer, not for retries. When
        a budget is used up, no request is left.
        """
        lowered: dict[str, Any] = {"requests": 0} if self.is_used_up() else {}
        for budget in self.budgets:
            wanted = lowered.get(budget.unit, getattr(limits, budget.unit))
            lowered[budget.unit] = min(wanted, max(0, budget.limit - budget.used))
        if (requests := lowered.get("requests", limits.requests)) < limits.requests:
            retries = min(limits.structured_output_max_retries, max(0, requests - 2))
            lowered["structured_output_max_retries"] = retries
        return replace(limits, **lowered)


UNLIMITED: Final = Allowance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The budgets of a day, from which some users are `exempt`."""

    turns: TurnRepository
    people: PeopleRepository
    limits: Sequence[Budget]
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def begin(self, turn_id: int, user_id: int) -> Allowance:
        """Begin a turn; return its allowance, unlimited if the database cannot be read.

        Other running turns count as average turns. The HTTP API has no user: its id is 0.
        """
        now = self.now()
        spending = await try_briefly(
            lambda: self.turns.begin(turn_id, user_id, now, since=midnight(now)),
            None,
            "The usage of today could not be read",
        )
        if spending is None or user_id in self.exempt:
            return UNLIMITED
        average = average_turn(spending)
        used = {"everyone": spending.by_everyone + average * spending.under_way}
        if user_id:
            used["user"] = spending.by_person + average * spending.persons_under_way
        return Allowance(
            tuple(
                replace(budget, used=getattr(used[budget.of], budget.unit))
                for budget in self.limits
                if budget.of in used
            )
        )

    async def notes(
        self, allowance: Allowance, spent: Spent, user_id: int, *, is_over: bool
    ) -> tuple[str, ...]:
        """Return the notes below an answer that used so much.

        `is_over`: no model answered because of the budget. A warning is given once a day.
        """
        now = self.now()
        minutes = (midnight(now) + timedelta(days=1) - now) // timedelta(minutes=1)
        left = f"{minutes // 60} h {minutes % 60} min"
        own = [budget for budget in allowance.budgets if budget.of == "user"]
        most = max(own, key=lambda budget: budget.share(spent), default=None)
        share = most.share(spent) if most else 0.0
        if most and share >= 1:
            return (f"{translate(USED_UP[most.unit])} {translate('budget_resets', left=left)}",)
        if is_over:
            used_up = translate("shared_budget_used_up")
            return (f"{used_up} {translate('budget_resets', left=left)}",)
        if most and share >= WARN_AT and await self._is_first_warning(user_id, now):
            return (translate(NEARLY[most.unit], share=int(100 * share), left=left),)
        return ()

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


def midnight(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)

"""Daily budgets: how much a turn may use, and the notes to users about it. A day is one of UTC."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any, Final, Literal

from agent.engine.limits import NOTHING_SPENT, Limits, Spent
from agent.i18n import translate
from db.engine import BRIEF_TRIES, call_or_default
from db.repositories.turns import TurnRepository

USED_UP: Final = {"requests": "own_questions_used_up", "cost_usd": "own_budget_used_up"}


@dataclass(frozen=True, slots=True)
class Budget:
    """Hold how much one user, or all together, may use in a day: requests to models, or US dollars.

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
    limits: Sequence[Budget]
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def allowance(self, user_id: int) -> Allowance:
        """Return the budgets of a turn that begins, none if the database cannot be read.

        Turns that are still running are not counted. The HTTP API has no user: its id is 0.
        """
        if user_id in self.exempt:
            return UNLIMITED
        problem = "The usage of today could not be read"
        read = partial(self._read_usage, user_id)
        return await call_or_default(read, UNLIMITED, problem, tries=BRIEF_TRIES)

    async def _read_usage(self, user_id: int) -> Allowance:
        since = midnight(self.now())
        used = {"everyone": await self.turns.spent(since)}
        if user_id:
            used["user"] = await self.turns.spent(since, user_id)
        return Allowance(
            tuple(
                replace(budget, used=getattr(used[budget.of], budget.unit))
                for budget in self.limits
                if budget.of in used
            )
        )

    def notes(self, allowance: Allowance, spent: Spent, *, is_over: bool) -> tuple[str, ...]:
        """Return the notes below an answer that used so much.

        `is_over`: no model answered because of the budget.
        """
        own = (budget for budget in allowance.budgets if budget.of == "user")
        shared = "shared_budget_used_up" if is_over else ""
        used_up = next((USED_UP[budget.unit] for budget in own if budget.share(spent) >= 1), shared)
        if not used_up:
            return ()
        now = self.now()
        minutes = (midnight(now) + timedelta(days=1) - now) // timedelta(minutes=1)
        left = f"{minutes // 60} h {minutes % 60} min"
        return (f"{translate(used_up)} {translate('budget_resets', left=left)}",)


def midnight(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)

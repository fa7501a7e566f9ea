"""Daily budgets: how much a turn may use, and the notes to users about it. A day is one of UTC."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from math import inf
from typing import Final

from agent.engine.run import NOTHING_SPENT, Limits, Spent
from agent.i18n import translate
from db.engine import BRIEF_TRIES, call_or_default
from db.repositories.turns import TurnRepository


@dataclass(frozen=True, slots=True)
class Allowance:
    """The remaining budget when a turn begins: requests of its user, US dollars of everyone."""

    requests: float = inf
    cost_usd: float = inf

    def is_used_up(self, spent: Spent = NOTHING_SPENT) -> bool:
        """Return whether nothing is left once the turn has used `spent`."""
        return spent.requests >= self.requests or spent.cost_usd >= self.cost_usd

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits of a turn, lowered to what the budgets allow.

        Where few requests are left, they are for a tool call and an answer, not for retries. When
        a budget is used up, no request is left.
        """
        requests = 0 if self.is_used_up() else int(min(limits.requests, self.requests))
        retries = limits.structured_output_max_retries
        if requests < limits.requests:
            retries = min(retries, max(0, requests - 2))
        return replace(
            limits,
            requests=requests,
            cost_usd=min(limits.cost_usd, max(0, self.cost_usd)),
            structured_output_max_retries=retries,
        )


UNLIMITED: Final = Allowance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Daily limits, None if not set: requests of each user, US dollars of everyone together.

    They do not apply to `exempt` users.
    """

    turns: TurnRepository
    person_requests: int | None = None
    total_cost_usd: float | None = None
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def allowance(self, user_id: int) -> Allowance:
        """Return the allowance of a turn that begins, unlimited if the database cannot be read.

        Turns that are still running are not counted. The HTTP API has no user: its id is 0.
        """
        has_limits = self.person_requests or self.total_cost_usd
        if not has_limits or user_id in self.exempt:
            return UNLIMITED
        problem = "The usage of today could not be read"
        read = partial(self._read_usage, user_id)
        return await call_or_default(read, UNLIMITED, problem, tries=BRIEF_TRIES)

    async def _read_usage(self, user_id: int) -> Allowance:
        since = midnight(self.now())
        cost_usd = (self.total_cost_usd or inf) - (await self.turns.spent(since)).cost_usd
        if not user_id:
            return Allowance(cost_usd=cost_usd)
        own = await self.turns.spent(since, user_id)
        return Allowance((self.person_requests or inf) - own.requests, cost_usd)

    def notes(self, allowance: Allowance, spent: Spent, *, is_over: bool) -> tuple[str, ...]:
        """Return the notes below the answer of a turn that used `spent`.

        `is_over`: no model answered because of the budget.
        """
        if spent.requests >= allowance.requests:
            used_up = "own_questions_used_up"
        elif is_over:
            used_up = "shared_budget_used_up"
        else:
            return ()
        now = self.now()
        minutes = (midnight(now) + timedelta(days=1) - now) // timedelta(minutes=1)
        left = f"{minutes // 60} h {minutes % 60} min"
        return (f"{translate(used_up)} {translate('budget_resets', left=left)}",)


def midnight(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)

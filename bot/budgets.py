"""Limit the usage of a day (UTC), and tell users when a budget is used up."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from math import inf
from typing import Final

from agent.engine.run import NOTHING_BILLED, BilledUsage, Limits
from agent.formatting import format_duration
from agent.i18n import translate
from db.engine import BRIEF_TRIES, call_or_default
from db.repositories.turns import TurnRepository


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """The rest of today's budgets when a turn begins: requests of its user, US dollars of all."""

    requests: float = inf
    cost_usd: float = inf

    def is_used_up(self, spent: BilledUsage = NOTHING_BILLED) -> bool:
        """Return whether a budget is used up once the turn has spent `spent`."""
        return spent.requests >= self.requests or spent.cost_usd >= self.cost_usd

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits of a turn, lowered to the remaining budget.

        When a budget is used up, the turn may send no requests. When few requests remain, two are
        reserved for a tool call and an answer, and only the others may be retries.
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


UNLIMITED: Final = RemainingBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The daily budgets: requests of each user, and US dollars of all users; None for no limit.

    Users whose id is in `exempt` have no limits.
    """

    turns: TurnRepository
    person_requests: int | None = None
    total_cost_usd: float | None = None
    exempt: Collection[int] = ()

    async def read_remaining(self, user_id: int) -> RemainingBudget:
        """Return the remaining budget of a user, or `UNLIMITED` if the database cannot be read.

        Turns that are still running are not counted. The HTTP API has no users: its id is 0.
        """
        has_limits = self.person_requests or self.total_cost_usd
        if not has_limits or user_id in self.exempt:
            return UNLIMITED
        read = partial(self._read_remaining, user_id)
        problem = "Today's usage could not be read"
        return await call_or_default(read, UNLIMITED, problem, tries=BRIEF_TRIES)

    async def _read_remaining(self, user_id: int) -> RemainingBudget:
        today = midnight(self.turns.now())
        spent_by_all = await self.turns.sum_usage(today)
        cost_usd = (self.total_cost_usd or inf) - spent_by_all.cost_usd
        if not user_id:
            return RemainingBudget(cost_usd=cost_usd)
        spent_by_user = await self.turns.sum_usage(today, user_id)
        requests = (self.person_requests or inf) - spent_by_user.requests
        return RemainingBudget(requests, cost_usd)

    def build_notes(
        self, budget: RemainingBudget, spent: BilledUsage, *, lacked_budget: bool
    ) -> tuple[str, ...]:
        """Return the notes below the answer of a turn that began with `budget` and used `spent`.

        `lacked_budget`: the answer comes from rules because a budget was used up.
        """
        if spent.requests >= budget.requests:
            message = "own_questions_used_up"
        elif lacked_budget:
            message = "shared_budget_used_up"
        else:
            return ()
        now = self.turns.now()
        minutes = (midnight(now) + timedelta(days=1) - now) // timedelta(minutes=1)
        resets = translate("budget_resets", left=format_duration(minutes))
        return (f"{translate(message)} {resets}",)


def midnight(moment: datetime) -> datetime:
    """Return the start of a moment's day in UTC."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)

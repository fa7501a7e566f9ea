"""The daily budgets: what is spent of them, and what running turns have reserved.

A turn reserves at its beginning what it may cost, so that turns which run at once do not spend the
same rest. What it has cost in the end is stored with it, and settles what it reserved.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from math import inf
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.engine.run import NOTHING_BILLED, BilledUsage, Limits
from db.engine import SqlRepository
from db.models import ReservationRow, TurnRow
from db.statements import upsert

LONGEST_TURN: Final = timedelta(minutes=30)
"""What is reserved for longer belongs to a turn that was killed, and that nobody has resumed."""
LOCK: Final = "daily budgets"


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
        requests = 0
        if not self.is_used_up():
            requests = int(min(limits.requests, self.requests))
        retries = limits.structured_output_max_retries
        if requests < limits.requests:
            retries = min(retries, max(0, requests - 2))
        cost_left = max(0, self.cost_usd)
        return replace(
            limits,
            requests=requests,
            cost_usd=min(limits.cost_usd, cost_left),
            structured_output_max_retries=retries,
        )


UNLIMITED: Final = RemainingBudget()


@dataclass(eq=False)
class DailyBudgets(SqlRepository):
    """The budgets of a day (UTC): requests of each user, US dollars of all; None for no limit.

    Users whose id is in `exempt` have no limits. A turn uses no more than `turn_limits`.
    """

    person_requests: int | None = None
    total_cost_usd: float | None = None
    exempt: Collection[int] = ()
    turn_limits: Limits = field(default_factory=Limits)

    async def reserve(self, turn_id: int, user_id: int) -> RemainingBudget:
        """Reserve what a turn may use that no update began, in a commit of its own."""
        async with self.sessions.begin() as session:
            return await self.reserve_in(session, turn_id, user_id)

    async def reserve_in(
        self, session: AsyncSession, turn_id: int, user_id: int
    ) -> RemainingBudget:
        """Reserve what a turn may use; return what it was before. A second try reserves anew.

        The HTTP API has no users: its id is 0.
        """
        has_limits = self.person_requests or self.total_cost_usd
        if not has_limits or user_id in self.exempt:
            return UNLIMITED
        if session.get_bind().dialect.name != "sqlite":
            # Of two turns that begin at once, the second one sees what the first has reserved.
            key = func.hashtext(LOCK)
            await session.execute(select(func.pg_advisory_xact_lock(key)))
        now = self.now()
        is_over = ReservationRow.at < now - LONGEST_TURN
        is_earlier_try = ReservationRow.turn_id == turn_id
        await session.execute(delete(ReservationRow).where(is_over | is_earlier_try))
        remaining = await self._read_remaining(session, user_id)
        limits = remaining.apply_to(self.turn_limits)
        if not remaining.is_used_up():
            reserved = ReservationRow(
                turn_id=turn_id,
                user_id=user_id,
                requests=limits.requests,
                cost_usd=limits.cost_usd,
                at=now,
            )
            await upsert(session, reserved)
        return remaining

    async def settle_in(self, session: AsyncSession, turn_id: int) -> None:
        """Take back what a turn has reserved, in the commit that stores what it has used."""
        is_this = ReservationRow.turn_id == turn_id
        await session.execute(delete(ReservationRow).where(is_this))

    async def release_all(self) -> None:
        """Take back all that is reserved; call it when no other process answers."""
        await self._write(delete(ReservationRow))

    async def _read_remaining(
        self, session: AsyncSession, user_id: int
    ) -> RemainingBudget:
        is_today = TurnRow.at >= midnight(self.now())
        cost = select(func.sum(TurnRow.cost_usd)).where(is_today)
        reserved_cost = select(func.sum(ReservationRow.cost_usd))
        requests = select(func.sum(TurnRow.requests)).where(
            is_today, TurnRow.user_id == user_id
        )
        reserved_requests = select(func.sum(ReservationRow.requests)).where(
            ReservationRow.user_id == user_id
        )
        # One statement: a turn that ends meanwhile is either still reserved or already stored.
        sums = select(
            func.coalesce(cost.scalar_subquery(), 0),
            func.coalesce(reserved_cost.scalar_subquery(), 0),
            func.coalesce(requests.scalar_subquery(), 0),
            func.coalesce(reserved_requests.scalar_subquery(), 0),
        )
        row = (await session.execute(sums)).one()
        spent_usd, reserved_usd, sent, reserved = row
        remaining = RemainingBudget()
        if self.total_cost_usd:
            cost_usd = self.total_cost_usd - spent_usd - reserved_usd
            remaining = replace(remaining, cost_usd=cost_usd)
        if self.person_requests and user_id:
            requests_left = self.person_requests - sent - reserved
            remaining = replace(remaining, requests=requests_left)
        return remaining


def midnight(moment: datetime) -> datetime:
    """Return the start of a moment's day in UTC."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)

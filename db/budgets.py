"""The daily budgets: what turns have spent of them, and what running turns have reserved.

When a turn begins, it reserves what it may cost at most. Otherwise turns that run at the same time
would each spend what is left. When it ends, its real cost is stored and the reservation dropped.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from math import inf
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Select, delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.engine.run import NOTHING_BILLED, BilledUsage, Limits
from db.engine import SqlRepository
from db.models import ReservationRow, TurnRow
from db.statements import upsert

T = TypeVar("T")

LONGEST_TURN: Final = timedelta(minutes=30)
"""An older reservation belongs to a turn that was killed and that nobody has resumed."""
NEEDED_REQUESTS: Final = 2
"""How many requests a turn needs: one for a tool call, and one for the answer."""
LOCK: Final = "daily budgets"
"""The name of the lock in Postgres that turns take while they reserve."""


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """The rest of today's budgets when a turn begins.

    `requests` is left to the user of the turn, `cost_usd` to all users together.
    """

    requests: float = inf
    cost_usd: float = inf

    def is_used_up(self, spent: BilledUsage = NOTHING_BILLED) -> bool:
        """Return whether a budget is used up after the turn has spent `spent`."""
        has_no_requests = spent.requests >= self.requests
        has_no_money = spent.cost_usd >= self.cost_usd
        return has_no_requests or has_no_money

    def apply_to(self, limits: Limits) -> Limits:
        """Return the limits of a turn, lowered to the remaining budget.

        If a budget is used up, the turn may send no requests. If few requests are left, two of them
        are kept for a tool call and an answer, and only the others may be retries.
        """
        requests = 0
        if not self.is_used_up():
            requests = int(min(limits.requests, self.requests))
        retries = limits.structured_output_max_retries
        if requests < limits.requests:
            others = max(0, requests - NEEDED_REQUESTS)
            retries = min(retries, others)
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
    """The budgets of a day (UTC).

    `person_requests` is for each user, `total_cost_usd` for all users together. There is no limit
    if it is None. Users whose id is in `exempt` have no limits. A turn may use `turn_limits` at
    most, which is what it reserves.
    """

    person_requests: int | None = None
    total_cost_usd: float | None = None
    exempt: Collection[int] = ()
    turn_limits: Limits = field(default_factory=Limits)

    async def reserve(self, turn_id: int, user_id: int) -> RemainingBudget:
        """Reserve what a turn may use, and commit. This is for turns that no update began."""
        async with self.sessions.begin() as session:
            return await self.reserve_in(session, turn_id, user_id)

    async def reserve_in(
        self,
        session: AsyncSession,
        turn_id: int,
        user_id: int,
    ) -> RemainingBudget:
        """Reserve what a turn may use, and return what was left before it.

        If the turn is tried a second time, its first reservation is replaced. `user_id` is 0 for
        the HTTP API, which has no users.
        """
        has_limits = self.person_requests or self.total_cost_usd
        if not has_limits or user_id in self.exempt:
            return UNLIMITED
        await _wait_for_others(session)
        now = self.now()
        is_of_killed_turn = ReservationRow.at < now - LONGEST_TURN
        is_of_this_turn = ReservationRow.turn_id == turn_id
        drop = delete(ReservationRow).where(is_of_killed_turn | is_of_this_turn)
        await session.execute(drop)
        remaining = await self._read_remaining(session, user_id)
        if remaining.is_used_up():
            return remaining
        limits = remaining.apply_to(self.turn_limits)
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
        """Drop the reservation of a turn. Call this in the commit that stores its real cost."""
        is_this = ReservationRow.turn_id == turn_id
        await session.execute(delete(ReservationRow).where(is_this))

    async def release_all(self) -> None:
        """Drop all reservations. Call this only while no other process runs turns."""
        await self._write(delete(ReservationRow))

    async def _read_remaining(
        self, session: AsyncSession, user_id: int
    ) -> RemainingBudget:
        """Return what is left of the budgets, without what is reserved."""
        is_today = TurnRow.at >= midnight(self.now())
        sums = _select_sums(user_id, is_today)
        result = await session.execute(sums)
        row = result.one()
        remaining = RemainingBudget()
        if self.total_cost_usd:
            cost_left = self.total_cost_usd - row.spent_usd - row.reserved_usd
            remaining = replace(remaining, cost_usd=cost_left)
        if self.person_requests and user_id:
            requests_left = self.person_requests - row.sent - row.reserved
            remaining = replace(remaining, requests=requests_left)
        return remaining


async def _wait_for_others(session: AsyncSession) -> None:
    """Wait until turns that began at the same moment have committed what they reserve."""
    if session.get_bind().dialect.name == "sqlite":
        return  # it has one writer at a time
    key = func.hashtext(LOCK)
    await session.execute(select(func.pg_advisory_xact_lock(key)))


def _select_sums(
    user_id: int, is_today: ColumnElement[bool]
) -> Select[float, float, int, int]:
    """Return the query for the cost and the requests that are spent, and that are reserved.

    It is one statement, so that it sees one moment: a turn that ends just now is either reserved or
    stored, never neither.
    """
    spent_usd = select(func.sum(TurnRow.cost_usd)).where(is_today)
    reserved_usd = select(func.sum(ReservationRow.cost_usd))
    sent_requests = select(func.sum(TurnRow.requests)).where(
        is_today,
        TurnRow.user_id == user_id,
    )
    reserved_requests = select(func.sum(ReservationRow.requests)).where(
        ReservationRow.user_id == user_id,
    )
    return select(
        _or_zero(spent_usd).label("spent_usd"),
        _or_zero(reserved_usd).label("reserved_usd"),
        _or_zero(sent_requests).label("sent"),
        _or_zero(reserved_requests).label("reserved"),
    )


def _or_zero(total: Select[T]) -> ColumnElement[T]:
    """Return a sum that is 0 instead of null if there are no rows."""
    return func.coalesce(total.scalar_subquery(), 0)


def midnight(moment: datetime) -> datetime:
    """Return the start of a moment's day in UTC."""
    day = moment.astimezone(UTC).date()
    return datetime.combine(day, time(), UTC)

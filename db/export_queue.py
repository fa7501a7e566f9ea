"""The queue of traces, or of scores, that are exported to Langfuse."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, func, select, update

from db.engine import Sessions, SqlRepository
from db.models import Base, ExportState, ScoreRow, utc_now
from db.models.traces import IS_UNSENDABLE

Rows = Sequence[Row[Any]]

TIME_ASIDE: Final = timedelta(hours=1)
"""How long a row that is set aside waits before it is sent again."""


class UnsendableRows(NamedTuple):
    """The rows of a queue that were refused, or those that were set aside."""

    state: str
    """The state of refused rows is REFUSED. Rows that are set aside are still WAITING."""
    rows: int
    """The number of rows."""
    reason: str
    """The reason why one of the rows was not sent."""


class RowQueue(SqlRepository):
    """The export queue of traces, or of scores.

    An exporter claims rows, then settles or releases them. A claimed row belongs to one exporter
    until its lease ends. Every method commits.

    A waiting row may be claimed from `due_at` on. The `due_at` of a claimed row is the end of its
    lease. Once a row was sent or refused, `due_at` is the time of that.
    """

    def __init__(
        self,
        sessions: Sessions,
        model: type[Base],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(sessions, now)
        self._table = model.__table__
        self._columns = self._table.c
        self._is_waiting = self._columns.state == ExportState.WAITING
        (self._key,) = self._table.primary_key.columns

    async def claim(self, limit: int, lease: timedelta) -> Rows:
        """Claim at most `limit` due rows for the duration of `lease`, and return them.

        The rows that are due for the longest time come first.
        """
        now = self.now()
        is_due = self._columns.due_at <= now
        due = (
            select(self._key)
            .where(self._is_waiting, is_due)
            .order_by(self._columns.due_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        claim = (
            update(self._table)
            .where(self._key.in_(due.scalar_subquery()))
            .values(due_at=now + lease)
            .returning(self._table)
        )
        async with self.sessions.begin() as session:
            claimed = await session.execute(claim)
            rows: Rows = claimed.all()
            return rows

    @asynccontextmanager
    async def claimed(self, limit: int, lease: timedelta) -> AsyncIterator[Rows]:
        """Claim rows for the block. If it fails, the rows that it has not settled are due again."""
        rows = await self.claim(limit, lease)
        try:
            yield rows
        except BaseException:
            # This is also done after a cancellation.
            await self.release(rows)
            raise

    async def resume(self) -> None:
        """Make the rows due that an ended process had claimed.

        Call this only while no other process exports.
        """
        resume = update(self._table).where(self._is_waiting)
        if self._table is ScoreRow.__table__:
            # A score without a value was taken back. It is due only when Langfuse has surely stored
            # the score, because Langfuse cannot delete it before.
            resume = resume.where(ScoreRow.value.is_not(None))
        await self._write(resume.values(due_at=self.now()))

    async def settle(self, rows: Rows) -> None:
        """Mark rows as sent, unless they changed meanwhile."""
        sent = {"state": ExportState.SENT, "refusal": ""}
        await self._change(rows, sent, due_at=self.now())

    async def refuse(self, row: Row[Any], reason: str) -> None:
        """Mark a row as refused by the server, unless it changed meanwhile."""
        refused = {"state": ExportState.REFUSED, "refusal": reason}
        now = self.now()
        await self._change([row], refused, due_at=now)

    async def set_aside(self, row: Row[Any], reason: str) -> None:
        """Let a row that cannot be sent wait for `TIME_ASIDE`, unless it changed meanwhile."""
        due_at = self.now() + TIME_ASIDE
        await self._change([row], {"refusal": reason}, due_at=due_at)

    async def release(self, rows: Rows) -> None:
        """Make the unsettled rows among `rows` due again."""
        await self._change(rows, {}, due_at=self.now())

    async def resend(self) -> int:
        """Make all rows due that were refused or set aside. Return their number."""
        resend = (
            update(self._table)
            .where(IS_UNSENDABLE)
            .values(
                state=ExportState.WAITING,
                refusal="",
                due_at=self.now(),
            )
        )
        return await self._write(resend)

    async def list_problems(self) -> Sequence[UnsendableRows]:
        """Return the refused rows and those that are set aside, if there are any."""
        state = self._columns.state
        a_reason = func.max(self._columns.refusal)
        query = (
            select(state, func.count(), a_reason)
            .where(IS_UNSENDABLE)
            .group_by(state)
            .order_by(state)
        )
        rows = await self._rows(query)
        return [UnsendableRows(*row) for row in rows]

    async def count_by_state(self) -> Mapping[str, int]:
        """Return the number of rows in each state."""
        state = self._columns.state
        query = select(state, func.count()).group_by(state)
        rows = await self._rows(query)
        return {str(state): count for state, count in rows}

    async def _change(
        self,
        rows: Rows,
        values: Mapping[str, object],
        *,
        due_at: datetime,
    ) -> None:
        """Change rows of one claim, unless they changed meanwhile.

        A row that was stored again since it was claimed has a new `due_at`. Such a row stays as it
        is, because its new content was not sent.
        """
        if not rows:
            return
        keys = [row._mapping[self._key] for row in rows]
        # All rows of a claim have the same lease.
        lease_end = rows[0].due_at
        change = (
            update(self._table)
            .where(
                self._key.in_(keys),
                self._is_waiting,
                self._columns.due_at == lease_end,
            )
            .values(due_at=due_at, **values)
        )
        await self._write(change)

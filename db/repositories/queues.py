"""Queue rows to be sent: a sender claims them; then they are sent, refused, or due again."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, func, select, update

from db.engine import Sessions, SqlRepository
from db.models import Base, table_of, utc_now

KEPT: Final = "kept"
WAITING: Final = "waiting"
SENT: Final = "sent"
REFUSED: Final = "refused"

Rows = Sequence[Row[Any]]


class RowQueue(SqlRepository):
    """The rows of a table with the columns `state` and `due_at` that wait to be sent.

    A claimed row belongs to one sender until it is due again. Every method commits.
    """

    def __init__(
        self, sessions: Sessions, model: type[Base], now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(sessions, now)
        self._table = table_of(model)
        self._key = self._table.primary_key.columns[0]

    async def claim(self, limit: int, lease: timedelta) -> Rows:
        """Claim the rows that have been due longest, at most `limit`, for the time of `lease`."""
        now, columns = self._now(), self._table.c
        due = select(self._key).where(columns.state == WAITING, columns.due_at <= now)
        due = due.order_by(columns.due_at).limit(limit).with_for_update(skip_locked=True)
        claimed = update(self._table).where(self._key.in_(due.scalar_subquery()))
        claimed = claimed.values(due_at=now + lease).returning(self._table)
        async with self._sessions.begin() as session:
            rows: Rows = (await session.execute(claimed)).all()
            return rows

    async def resume(self) -> None:
        """Make all waiting rows due: call it when no other process is sending."""
        waiting = update(self._table).where(self._table.c.state == WAITING)
        await self._write(waiting.values(due_at=self._now()))

    async def settle(self, rows: Rows, *, refused: bool = False) -> None:
        """Mark rows as sent, or as refused for good; a row that changed meanwhile is due again."""
        await self._change(rows, state=REFUSED if refused else SENT)

    async def release(self, rows: Rows) -> None:
        """Make those rows due again that are not settled."""
        await self._change(rows, due_at=self._now())

    async def backlog(self) -> Mapping[str, int]:
        """Return how many rows are in each state."""
        query = select(self._table.c.state, func.count()).group_by(self._table.c.state)
        async with self._sessions() as session:
            return {str(state): count for state, count in await session.execute(query)}

    async def _change(self, rows: Rows, **values: object) -> None:
        # A row that was stored again meanwhile has another time: it was not sent as it is now.
        state, due_at = self._table.c.state, self._table.c.due_at
        untouched = (state == WAITING) & due_at.in_({row.due_at for row in rows})
        keys = [row._mapping[self._key] for row in rows]
        await self._write(update(self._table).where(self._key.in_(keys), untouched).values(values))

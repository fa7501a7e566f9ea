"""Queue rows to be sent: a sender claims them; then they are sent, refused, or due again."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Row, func, select, update

from db.engine import Sessions, SqlRepository
from db.models import Base, table_of, utc_now

T = TypeVar("T")

KEPT: Final = "kept"
WAITING: Final = "waiting"
SENT: Final = "sent"
REFUSED: Final = "refused"


class RowQueue(SqlRepository, Generic[T]):
    """The rows of a table with the columns `state` and `due_at` that wait to be sent.

    A claimed row belongs to one sender until its lease ends; if the process died, it is due again.
    Every method commits.
    """

    def __init__(
        self,
        sessions: Sessions,
        model: type[Base],
        key: str,
        load: Callable[[Row[Any]], T],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(sessions, now)
        self._table = table_of(model)
        self._key = key
        self._load = load
        self._leases: dict[Any, datetime] = {}

    async def claim(self, limit: int, lease: timedelta) -> list[T]:
        """Claim the rows that have been due longest, at most `limit`, and return them."""
        now, columns = self._now(), self._table.c
        key, ends = columns[self._key], now + lease
        due = select(key).where(columns.state == WAITING, columns.due_at <= now)
        due = due.order_by(columns.due_at).limit(limit).with_for_update(skip_locked=True)
        claimed = update(self._table).where(key.in_(due.scalar_subquery()))
        claimed = claimed.values(due_at=ends).returning(self._table)
        async with self._sessions.begin() as session:
            items = [self._load(row) for row in await session.execute(claimed)]
        self._leases |= {getattr(item, self._key): ends for item in items}
        return items

    async def resume(self) -> None:
        """Make all waiting rows due: call it when no other process is sending."""
        waiting = update(self._table).where(self._table.c.state == WAITING)
        await self._write(waiting.values(due_at=self._now()))

    async def settle(self, items: Sequence[T], *, refused: bool = False) -> None:
        """Mark rows as sent, or as refused for good; a row that changed meanwhile is due again."""
        leases = {self._leases.pop(getattr(item, self._key), None) for item in items}
        # A row that was stored again meanwhile has another time: it was not sent as it is now.
        untouched = (self._table.c.state == WAITING) & self._table.c.due_at.in_(leases - {None})
        await self._change(items, untouched, state=REFUSED if refused else SENT)

    async def release(self, items: Sequence[T]) -> None:
        """Make rows due again."""
        for item in items:
            self._leases.pop(getattr(item, self._key), None)
        await self._change(items, self._table.c.state == WAITING, due_at=self._now())

    async def backlog(self) -> Mapping[str, int]:
        """Return how many rows are in each state."""
        query = select(self._table.c.state, func.count()).group_by(self._table.c.state)
        async with self._sessions() as session:
            return {str(state): count for state, count in await session.execute(query)}

    async def _change(self, items: Sequence[T], where: Any, **values: object) -> None:
        keys = [getattr(item, self._key) for item in items]
        changed = update(self._table).where(self._table.c[self._key].in_(keys), where)
        await self._write(changed.values(values))

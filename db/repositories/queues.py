"""Queue rows to be sent: a sender claims them; then they are sent, refused, or due again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Claim(Generic[T]):
    """The items of rows by their keys, which belong to one sender until a moment."""

    items: Mapping[str, T]
    until: datetime


class RowQueue(SqlRepository, Generic[T]):
    """The rows of a table with the columns `state` and `due_at` that wait to be sent.

    If a sender dies, its rows are due again when its claim ends. Every method commits.
    """

    def __init__(
        self,
        sessions: Sessions,
        model: type[Base],
        load: Callable[[Row[Any]], T],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(sessions, now)
        self._table = table_of(model)
        self._key = self._table.primary_key.columns[0]
        self._load = load

    async def claim(self, limit: int, lease: timedelta) -> Claim[T] | None:
        """Claim the rows that have been due longest, at most `limit`; None if none is due."""
        now, columns = self._now(), self._table.c
        due = select(self._key).where(columns.state == WAITING, columns.due_at <= now)
        due = due.order_by(columns.due_at).limit(limit).with_for_update(skip_locked=True)
        claimed = update(self._table).where(self._key.in_(due.scalar_subquery()))
        claimed = claimed.values(due_at=now + lease).returning(self._table)
        async with self._sessions.begin() as session:
            rows = (await session.execute(claimed)).all()
        items = {str(row._mapping[self._key]): self._load(row) for row in rows}
        return Claim(items, now + lease) if items else None

    async def resume(self) -> None:
        """Make all waiting rows due: call it when no other process is sending."""
        waiting = update(self._table).where(self._table.c.state == WAITING)
        await self._write(waiting.values(due_at=self._now()))

    async def settle(self, claim: Claim[T], *, refused: bool = False) -> None:
        """Mark rows as sent, or as refused for good; a row that changed meanwhile is due again."""
        await self._change(claim, state=REFUSED if refused else SENT)

    async def release(self, claim: Claim[T]) -> None:
        """Make those rows due again that are not settled."""
        await self._change(claim, due_at=self._now())

    async def backlog(self) -> Mapping[str, int]:
        """Return how many rows are in each state."""
        query = select(self._table.c.state, func.count()).group_by(self._table.c.state)
        async with self._sessions() as session:
            return {str(state): count for state, count in await session.execute(query)}

    async def _change(self, claim: Claim[T], **values: object) -> None:
        # A row that was stored again meanwhile has another time: it was not sent as it is now.
        untouched = (self._table.c.state == WAITING) & (self._table.c.due_at == claim.until)
        changed = update(self._table).where(self._key.in_(claim.items), untouched)
        await self._write(changed.values(values))

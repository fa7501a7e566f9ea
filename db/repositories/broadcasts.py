"""Messages that no turn sends: those of admins to everyone, and reminders.

They are rows of the outbox that belong to no update; the process that leads sends them.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Update, delete, distinct, func, select, update

from agent.text import storable
from db.engine import SqlRepository, count_changed
from db.models import BroadcastRow, OutboxRow

DRAFT: Final = "draft"
SENDING: Final = "sending"
SENT: Final = "sent"
CANCELLED: Final = "cancelled"

BELONGS_TO_NO_TURN: Final = OutboxRow.update_id.is_(None) & OutboxRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)


class Broadcasts(SqlRepository):
    """The broadcasts of a database, and other messages that no turn sends."""

    async def draft(self, text: str, by: int) -> int:
        """Store a message until it is confirmed; return its id; a draft stored twice has one."""
        draft = {"text": storable(text), "created_by": by, "state": DRAFT}
        async with self.sessions.begin() as session:
            stored = await session.scalar(select(BroadcastRow).filter_by(**draft).limit(1))
            row = stored or BroadcastRow(**draft)
            session.add(row)
        return row.id

    async def get(self, broadcast_id: int) -> BroadcastRow | None:
        return await self._first(select(BroadcastRow).where(BroadcastRow.id == broadcast_id))

    async def begin(self, broadcast_id: int, messages: Sequence[OutboxRow]) -> bool:
        """Have a draft sent; return True only once, however often it is confirmed."""
        async with self.sessions.begin() as session:
            if not await count_changed(session, _draft_to(broadcast_id, SENDING)):
                return False
            for message in messages:
                message.broadcast_id = broadcast_id
            session.add_all(messages)
        return True

    async def cancel(self, broadcast_id: int) -> bool:
        """Drop a draft; return False if it is none any more."""
        return bool(await self._write(_draft_to(broadcast_id, CANCELLED)))

    async def unsent(self, limit: int) -> Sequence[OutboxRow]:
        """Return the oldest messages that belong to no turn and are not sent."""
        query = select(OutboxRow).where(BELONGS_TO_NO_TURN, IS_UNSENT)
        return await self._all(query.order_by(OutboxRow.id).limit(limit))

    async def delivered(self) -> Sequence[tuple[BroadcastRow, int, int]]:
        """Return the broadcasts that are sent to all; how many chats got it, and did not."""
        chats = distinct(OutboxRow.chat_id)
        failed = func.count(chats).filter(OutboxRow.error.is_not(None))
        over = (
            select(BroadcastRow, func.count(chats) - failed, failed)
            .join(OutboxRow, OutboxRow.broadcast_id == BroadcastRow.id, isouter=True)
            .where(BroadcastRow.state == SENDING)
            .group_by(BroadcastRow.id)
            .having(func.count(OutboxRow.id).filter(IS_UNSENT) == 0)
        )
        return [(broadcast, arrived, lost) for broadcast, arrived, lost in await self._rows(over)]

    async def finish(self, broadcast_id: int, notice: Sequence[OutboxRow]) -> None:
        """End a broadcast, and send its admin a notice, once."""
        sending = (BroadcastRow.id == broadcast_id) & (BroadcastRow.state == SENDING)
        async with self.sessions.begin() as session:
            if await count_changed(session, update(BroadcastRow).where(sending).values(state=SENT)):
                session.add_all(notice)
                of_broadcast = OutboxRow.broadcast_id == broadcast_id
                await session.execute(delete(OutboxRow).where(of_broadcast))

    async def clear(self) -> None:
        """Delete messages that were sent and belong to no broadcast either."""
        alone = BELONGS_TO_NO_TURN & OutboxRow.broadcast_id.is_(None)
        await self._write(delete(OutboxRow).where(alone, ~IS_UNSENT))


def _draft_to(broadcast_id: int, state: str) -> Update:
    is_draft = (BroadcastRow.id == broadcast_id) & (BroadcastRow.state == DRAFT)
    return update(BroadcastRow).where(is_draft).values(state=state)

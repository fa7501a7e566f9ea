"""Messages of admins to everyone, over SQL."""

from typing import Final

from sqlalchemy import select, update

from agent.repositories import Broadcast, BroadcastState
from db.engine import SqlRepository
from db.models import BroadcastRow, record_of, storable

DRAFT: Final[BroadcastState] = "draft"
SENDING: Final[BroadcastState] = "sending"
SENT: Final[BroadcastState] = "sent"
CANCELLED: Final[BroadcastState] = "cancelled"


class SqlBroadcastRepository(SqlRepository):
    """Fulfils `agent.repositories.BroadcastRepository` on both databases. Writes commit."""

    async def draft(self, text: str, by: int) -> int:
        """Keep a message until it is confirmed; its id, the same for the same draft."""
        text = storable(text)
        same = (BroadcastRow.text == text) & (BroadcastRow.created_by == by)
        query = select(BroadcastRow.id).where(same, BroadcastRow.state == DRAFT)
        async with self._sessions.begin() as session:
            if (known := await session.scalar(query.limit(1))) is not None:
                return known
            row = BroadcastRow(
                text=text, created_by=by, created_at=self._now(), state=DRAFT, sent=0, failed=0
            )
            session.add(row)
            await session.flush()
            return row.id

    async def get(self, broadcast_id: int) -> Broadcast | None:
        """A broadcast, None if there is none."""
        async with self._sessions() as session:
            row = await session.get(BroadcastRow, broadcast_id)
            return record_of(Broadcast, row) if row else None

    async def begin(self, broadcast_id: int) -> bool:
        """Start sending a draft; True only once, however often it is confirmed."""
        return await self._from_draft(broadcast_id, SENDING)

    async def cancel(self, broadcast_id: int) -> bool:
        """Drop a draft; False if it is none any more."""
        return await self._from_draft(broadcast_id, CANCELLED)

    async def done(self, broadcast_id: int, sent: int, failed: int) -> None:
        """Keep how many chats got a broadcast that was begun, and how many did not."""
        begun = BroadcastRow.state.in_([SENDING, SENT])
        statement = update(BroadcastRow).where(BroadcastRow.id == broadcast_id, begun)
        await self._write(statement.values(state=SENT, sent=sent, failed=failed))

    async def _from_draft(self, broadcast_id: int, state: BroadcastState) -> bool:
        is_draft = (BroadcastRow.id == broadcast_id) & (BroadcastRow.state == DRAFT)
        return bool(await self._write(update(BroadcastRow).where(is_draft).values(state=state)))

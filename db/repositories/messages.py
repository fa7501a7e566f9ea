"""Conversations over SQL."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from agent.repositories import Role, StoredMessage
from db.engine import SqlRepository
from db.models import MessageRow, insert_once, record_of, storable


class SqlMessageRepository(SqlRepository):
    """Fulfils `agent.repositories.MessageRepository` on SQLite and Postgres alike."""

    async def create(
        self,
        chat_id: int,
        role: Role,
        content: str,
        wine_ids: Sequence[str] = (),
        *,
        turn_id: int | None = None,
    ) -> None:
        """Remember one message, once per role and `turn_id` if given. Commits before it returns."""
        row = {
            "chat_id": chat_id,
            "role": role,
            "content": storable(content),
            "wine_ids": [storable(wine_id) for wine_id in wine_ids],
            "created_at": self._now(),
            "turn_id": turn_id,
        }
        async with self._sessions.begin() as session:
            await session.execute(insert_once(session, MessageRow).values(row))

    async def recent(self, chat_id: int, limit: int = 20) -> list[StoredMessage]:
        """The newest `limit` messages of a chat, oldest first."""
        newest = (
            select(MessageRow)
            .where(MessageRow.chat_id == chat_id)
            .order_by(MessageRow.id.desc())
            .limit(max(limit, 0))
        )
        async with self._sessions() as session:
            rows = (await session.scalars(newest)).all()
        return [record_of(StoredMessage, row) for row in reversed(rows)]

    async def forget(self, chat_id: int) -> int:
        """Delete a chat's messages; how many there were."""
        return await self._write(delete(MessageRow).where(MessageRow.chat_id == chat_id))

    async def undo(self, chat_id: int, turn_id: int) -> bool:
        """Delete the messages of a chat's last turn; False if `turn_id` is not its last."""
        of_chat = MessageRow.chat_id == chat_id
        newest = select(MessageRow.turn_id).where(of_chat).order_by(MessageRow.id.desc()).limit(1)
        async with self._sessions.begin() as session:
            if await session.scalar(newest) != turn_id:
                return False
            await session.execute(delete(MessageRow).where(of_chat, MessageRow.turn_id == turn_id))
            return True

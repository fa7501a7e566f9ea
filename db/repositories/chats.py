"""Chats over SQL: what was said in them, and what was learned while sending to them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update

from agent.repositories import ChatState, Role, StoredMessage
from db.engine import SqlRepository
from db.models import ChatRow, MessageRow, insert_once, record_of, storable


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


class SqlChatRepository(SqlRepository):
    """Fulfils `agent.repositories.ChatRepository` on SQLite and Postgres alike."""

    async def state(self, chat_id: int) -> ChatState:
        """Where messages for this chat go; an unknown chat is reachable as it is."""
        async with self._sessions() as session:
            row = await session.get(ChatRow, chat_id)
            if row is not None and row.migrated_to is not None:
                chat_id = row.migrated_to
                row = await session.get(ChatRow, chat_id)
        if row is None or row.unreachable_since is None:
            return ChatState(chat_id)
        return ChatState(chat_id, row.unreachable_reason or "unreachable")

    async def unreachable(self, chat_id: int, reason: str) -> None:
        """Remember that the bot was blocked there, or that the chat is gone."""
        await self._set(chat_id, unreachable_since=self._now(), unreachable_reason=storable(reason))

    async def reachable(self, chat_id: int) -> None:
        """Forget that: somebody wrote from there."""
        async with self._sessions() as session:
            row = await session.get(ChatRow, chat_id)
        # This is asked with every message, and nearly always there is nothing to write.
        if row is not None and row.unreachable_since is not None:
            await self._set(chat_id, unreachable_since=None, unreachable_reason=None)

    async def migrated(self, chat_id: int, to: int) -> None:
        """Remember that a group became a supergroup with another id."""
        await self._set(chat_id, migrated_to=to)

    async def _set(self, chat_id: int, **columns: datetime | str | int | None) -> None:
        async with self._sessions.begin() as session:
            await session.execute(insert_once(session, ChatRow).values(chat_id=chat_id))
            row = update(ChatRow).where(ChatRow.chat_id == chat_id)
            await session.execute(row.values(**columns))

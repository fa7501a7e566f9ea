"""What was learned of chats while sending to them, over SQL."""

from datetime import datetime

from sqlalchemy import update

from agent.repositories import ChatState
from db.engine import SqlRepository
from db.models import ChatRow, insert_once, storable


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

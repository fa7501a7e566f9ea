"""Chats over SQL: what was said in them, and what was learned while sending to them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select, update

from agent.repositories import ChatState, Role, StoredMessage
from db.engine import SqlRepository
from db.models import ChatRow, MessageRow, insert_once, loaded, storable, table_of

MESSAGES: Final = table_of(MessageRow)
RECENT: Final = (
    select(MESSAGES)
    .where(MESSAGES.c.chat_id == bindparam("chat"))
    .order_by(MESSAGES.c.id.desc())
    .limit(bindparam("most"))
)
CHATS: Final = table_of(ChatRow)
CHAT: Final = select(CHATS).where(CHATS.c.chat_id == bindparam("key"))


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
        said = StoredMessage(role, content, tuple(wine_ids))
        row = message_row(chat_id, said, turn_id, self._now())
        await self._sessions.write(lambda on: on.execute(insert_once(on, MessageRow), row))

    async def recent(self, chat_id: int, limit: int = 20) -> list[StoredMessage]:
        """The newest `limit` messages of a chat, oldest first."""
        newest = {"chat": chat_id, "most": max(limit, 0)}
        found = await self._sessions.read(
            lambda on: [loaded(StoredMessage, row) for row in on.execute(RECENT, newest)]
        )
        return found[::-1]

    async def forget(self, chat_id: int) -> int:
        """Delete a chat's messages; how many there were."""
        return await self._write(delete(MessageRow).where(MessageRow.chat_id == chat_id))

    async def undo(self, chat_id: int, turn_id: int) -> bool:
        """Delete the messages of a chat's last turn; False if `turn_id` is not its last."""
        of_chat = MessageRow.chat_id == chat_id
        newest = select(MessageRow.turn_id).where(of_chat).order_by(MessageRow.id.desc()).limit(1)

        def write(on: Connection) -> bool:
            if on.scalar(newest) != turn_id:
                return False
            on.execute(delete(MessageRow).where(of_chat, MessageRow.turn_id == turn_id))
            return True

        return await self._sessions.write(write)


def message_row(
    chat_id: int, said: StoredMessage, turn_id: int | None, now: datetime
) -> dict[str, object]:
    """The columns of a message."""
    return {
        "chat_id": chat_id,
        "role": said.role,
        "content": storable(said.content),
        "wine_ids": [storable(wine_id) for wine_id in said.wine_ids],
        "created_at": now,
        "turn_id": turn_id,
    }


class SqlChatRepository(SqlRepository):
    """Fulfils `agent.repositories.ChatRepository` on SQLite and Postgres alike."""

    async def state(self, chat_id: int) -> ChatState:
        """Where messages for this chat go; an unknown chat is reachable as it is."""

        def read(on: Connection) -> ChatState:
            row, at = on.execute(CHAT, {"key": chat_id}).one_or_none(), chat_id
            if row is not None and row.migrated_to is not None:
                at = row.migrated_to
                row = on.execute(CHAT, {"key": at}).one_or_none()
            if row is None or row.unreachable_since is None:
                return ChatState(at)
            return ChatState(at, row.unreachable_reason or "unreachable")

        return await self._sessions.read(read)

    async def unreachable(self, chat_id: int, reason: str) -> None:
        """Remember that the bot was blocked there, or that the chat is gone."""
        await self._set(chat_id, unreachable_since=self._now(), unreachable_reason=storable(reason))

    async def reachable(self, chat_id: int) -> None:
        """Forget that: somebody wrote from there."""
        row = await self._sessions.read(lambda on: on.execute(CHAT, {"key": chat_id}).one_or_none())
        # This is asked with every message, and nearly always there is nothing to write.
        if row is not None and row.unreachable_since is not None:
            await self._set(chat_id, unreachable_since=None, unreachable_reason=None)

    async def migrated(self, chat_id: int, to: int) -> None:
        """Remember that a group became a supergroup with another id."""
        await self._set(chat_id, migrated_to=to)

    async def _set(self, chat_id: int, **columns: datetime | str | int | None) -> None:

        def write(on: Connection) -> None:
            on.execute(insert_once(on, ChatRow), {"chat_id": chat_id})
            row = update(table_of(ChatRow)).where(ChatRow.chat_id == chat_id)
            on.execute(row.values(**columns))

        await self._sessions.write(write)

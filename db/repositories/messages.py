"""Conversations over SQL."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import delete, select

from agent.ports import Role, StoredMessage
from db.engine import Sessions
from db.models import MessageRow
from db.search_text import storable


def utc_now() -> datetime:
    """This moment, aware."""
    return datetime.now(UTC)


class SqlMessageRepository:
    """Fulfils `agent.ports.MessageRepository` on SQLite and Postgres alike."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def create(
        self, chat_id: int, role: Role, content: str, wine_ids: Sequence[str] = ()
    ) -> None:
        """Remember one message. Commits before it returns."""
        row = MessageRow(
            chat_id=chat_id,
            role=role,
            content=storable(content),
            wine_ids=[storable(wine_id) for wine_id in wine_ids],
            created_at=self._now(),
        )
        async with self._sessions.begin() as session:
            session.add(row)

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
        return [_to_message(row) for row in reversed(rows)]

    async def forget(self, chat_id: int) -> int:
        """Delete a chat's messages; how many there were."""
        async with self._sessions.begin() as session:
            gone = await session.scalars(
                delete(MessageRow).where(MessageRow.chat_id == chat_id).returning(MessageRow.id)
            )
            return len(gone.all())


def _to_message(row: MessageRow) -> StoredMessage:
    return StoredMessage(
        role=cast(Role, row.role),
        content=row.content,
        wine_ids=tuple(row.wine_ids),
        created_at=row.created_at,
    )

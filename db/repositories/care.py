"""What people told of themselves over SQL: why they are offered no alcohol, what they react to."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import delete, select

from db.engine import SqlRepository
from db.models import CareRow, upsert


class SqlCareRepository(SqlRepository):
    """Fulfils `agent.repositories.CareRepository` on SQLite and Postgres alike. Writes commit."""

    async def held(self, chat_id: int, user_id: int) -> frozenset[str]:
        """What a person told in a chat and still holds."""
        of_person = (CareRow.chat_id == chat_id) & (CareRow.user_id == user_id)
        holds = CareRow.until.is_(None) | (CareRow.until > self._now())
        query = select(CareRow.told).where(of_person, holds)
        return await self._sessions.read(lambda on: frozenset(on.scalars(query)))

    async def keep(self, chat_id: int, user_id: int, told: Mapping[str, datetime | None]) -> None:
        """Remember what a person told, each until a moment or for good."""
        rows = [
            {"chat_id": chat_id, "user_id": user_id, "told": each, "until": until}
            for each, until in told.items()
        ]

        await self._sessions.write(lambda on: on.execute(upsert(on, CareRow), rows))

    async def forget(self, chat_id: int, *, but: Collection[str] = ()) -> None:
        """Forget what was told in a chat, save what is `but`."""
        of_chat = CareRow.chat_id == chat_id
        await self._write(delete(CareRow).where(of_chat, CareRow.told.not_in(but)))

    async def clear(self, user_id: int) -> list[str]:
        """Forget all that a person told, in every chat; return what it was, sorted. Commits."""
        of_person = delete(CareRow).where(CareRow.user_id == user_id).returning(CareRow.told)
        return await self._sessions.write(lambda on: sorted(set(on.scalars(of_person))))

    async def forget_expired(self) -> int:
        """Delete what holds no more; how many there were."""
        return await self._write(delete(CareRow).where(CareRow.until <= self._now()))

"""Who writes to the bot, and who may, over SQL."""

from datetime import date, datetime
from typing import cast

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.dialects import postgresql, sqlite

from agent.repositories import Access
from db.engine import SqlRepository
from db.models import ChatRow, PersonRow, insert_into


class SqlPeopleRepository(SqlRepository):
    """Fulfils `agent.repositories.PeopleRepository` on SQLite and Postgres alike. Writes commit."""

    async def seen(self, user_id: int, chat_id: int | None, at: datetime) -> None:
        """A person wrote; `chat_id` is their private chat if they wrote there."""
        row = {"user_id": user_id, "first_seen": at, "last_seen": at, "chat_id": chat_id}
        async with self._sessions.begin() as session:
            insert = insert_into(session, PersonRow).values(row)
            await session.execute(
                insert.on_conflict_do_update(index_elements=["user_id"], set_=_seen_again(insert))
            )

    async def access(self, user_id: int) -> Access | None:
        """Whether an admin allowed or blocked a person; None if neither."""
        query = select(PersonRow.access).where(PersonRow.user_id == user_id)
        async with self._sessions() as session:
            return cast("Access | None", await session.scalar(query))

    async def allow(self, user_id: int) -> None:
        """Let a person in, also one who never wrote."""
        await self._decide(user_id, "allowed")

    async def block(self, user_id: int) -> None:
        """Keep a person out, also one who never wrote."""
        await self._decide(user_id, "blocked")

    async def warned(self, user_id: int, day: date) -> bool:
        """Note that a person is warned of their budget; True the first time that day."""
        earlier = PersonRow.warned_on.is_(None) | (PersonRow.warned_on < day)
        return await self._first(user_id, {"warned_on": day}, earlier)

    async def introduced(self, user_id: int, day: date) -> bool:
        """Note that admins are asked about a person; True the first time."""
        never = PersonRow.introduced_on.is_(None)
        return await self._first(user_id, {"introduced_on": day}, never)

    async def private_chats(self, *, only_allowed: bool = False) -> list[int]:
        """Where a broadcast goes: private chats of people who are not blocked, if reachable."""
        welcome = PersonRow.access.is_distinct_from("blocked")
        if only_allowed:
            welcome = PersonRow.access == "allowed"
        query = (
            select(PersonRow.chat_id)
            .join(ChatRow, ChatRow.chat_id == PersonRow.chat_id, isouter=True)
            .where(PersonRow.chat_id.is_not(None), welcome, ChatRow.unreachable_since.is_(None))
            .order_by(PersonRow.user_id)
        )
        async with self._sessions() as session:
            return [chat_id for chat_id in await session.scalars(query) if chat_id is not None]

    async def _first(self, user_id: int, note: dict[str, date], new: ColumnElement[bool]) -> bool:
        """Whether this is who makes a note: one statement decides, of several replicas one does."""
        async with self._sessions.begin() as session:
            insert = insert_into(session, PersonRow).values(user_id=user_id, **note)
            noted = insert.on_conflict_do_update(index_elements=["user_id"], set_=note, where=new)
            found = await session.scalars(noted.returning(PersonRow.user_id))
            return found.first() is not None

    async def _decide(self, user_id: int, access: Access) -> None:
        async with self._sessions.begin() as session:
            insert = insert_into(session, PersonRow).values(user_id=user_id, access=access)
            await session.execute(
                insert.on_conflict_do_update(index_elements=["user_id"], set_={"access": access})
            )


def _seen_again(insert: postgresql.Insert | sqlite.Insert) -> dict[str, object]:
    """What changes of a person who is known; moments may come in any order."""
    new = insert.excluded
    first, last = PersonRow.first_seen, PersonRow.last_seen
    return {
        "first_seen": case((first < new.first_seen, first), else_=new.first_seen),
        "last_seen": case((last > new.last_seen, last), else_=new.last_seen),
        "chat_id": func.coalesce(new.chat_id, PersonRow.chat_id),
    }

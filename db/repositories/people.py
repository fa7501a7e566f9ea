"""People over SQL: who writes to the bot, who may, and what admins tell everyone."""

from datetime import date, datetime
from typing import Final, cast

from sqlalchemy import ColumnElement, Connection, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from agent.repositories import Access, Broadcast, BroadcastState
from db.engine import SqlRepository
from db.models import BroadcastRow, ChatRow, PersonRow, insert_into, record_of, storable, upsert

DRAFT: Final[BroadcastState] = "draft"
SENDING: Final[BroadcastState] = "sending"
SENT: Final[BroadcastState] = "sent"
CANCELLED: Final[BroadcastState] = "cancelled"


class SqlPeopleRepository(SqlRepository):
    """Fulfils `agent.repositories.PeopleRepository` on SQLite and Postgres alike. Writes commit."""

    async def seen(self, user_id: int, chat_id: int | None, at: datetime) -> None:
        row = {"user_id": user_id, "first_seen": at, "last_seen": at, "chat_id": chat_id}

        def write(on: Connection) -> None:
            insert = insert_into(on, PersonRow).values(row)
            on.execute(
                insert.on_conflict_do_update(index_elements=["user_id"], set_=_seen_again(insert))
            )

        await self._sessions.write(write)

    async def access(self, user_id: int) -> Access | None:
        query = select(PersonRow.access).where(PersonRow.user_id == user_id)
        found = await self._sessions.read(lambda on: on.scalar(query))
        return cast("Access | None", found)

    async def decide(self, user_id: int, access: Access) -> None:
        async with self._sessions.begin() as session:
            insert = upsert(session, PersonRow, "access")
            await session.execute(insert.values(user_id=user_id, access=access))

    async def warned(self, user_id: int, day: date) -> bool:
        earlier = PersonRow.warned_on.is_(None) | (PersonRow.warned_on < day)
        return await self._first(user_id, {"warned_on": day}, earlier)

    async def introduced(self, user_id: int, day: date) -> bool:
        never = PersonRow.introduced_on.is_(None)
        return await self._first(user_id, {"introduced_on": day}, never)

    async def private_chats(self, *, only_allowed: bool = False) -> list[int]:
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


def _seen_again(insert: postgresql.Insert | sqlite.Insert) -> dict[str, object]:
    """What changes of a person who is known; moments may come in any order."""
    new = insert.excluded
    first, last = PersonRow.first_seen, PersonRow.last_seen
    return {
        "first_seen": case((first < new.first_seen, first), else_=new.first_seen),
        "last_seen": case((last > new.last_seen, last), else_=new.last_seen),
        "chat_id": func.coalesce(new.chat_id, PersonRow.chat_id),
    }


class SqlBroadcastRepository(SqlRepository):
    """Fulfils `agent.repositories.BroadcastRepository` on both databases. Writes commit."""

    async def draft(self, text: str, by: int) -> int:
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
        async with self._sessions() as session:
            row = await session.get(BroadcastRow, broadcast_id)
            return record_of(Broadcast, row) if row else None

    async def begin(self, broadcast_id: int) -> bool:
        return await self._from_draft(broadcast_id, SENDING)

    async def cancel(self, broadcast_id: int) -> bool:
        return await self._from_draft(broadcast_id, CANCELLED)

    async def done(self, broadcast_id: int, sent: int, failed: int) -> None:
        begun = BroadcastRow.state.in_([SENDING, SENT])
        statement = update(BroadcastRow).where(BroadcastRow.id == broadcast_id, begun)
        await self._write(statement.values(state=SENT, sent=sent, failed=failed))

    async def _from_draft(self, broadcast_id: int, state: BroadcastState) -> bool:
        is_draft = (BroadcastRow.id == broadcast_id) & (BroadcastRow.state == DRAFT)
        return bool(await self._write(update(BroadcastRow).where(is_draft).values(state=state)))

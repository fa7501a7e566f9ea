"""People and chats over SQL: who writes, who may, what was said, what they told and own.

What is remembered of a person changes with the end of a turn alone.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Final, cast

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    bindparam,
    case,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from agent.repositories import Access, ChatState, Role, StoredMessage
from agent.text import storable
from agent.turn import Bottles, Change, Fact
from db.engine import SqlRepository
from db.models import (
    BottleRow,
    CareRow,
    ChatRow,
    FactRow,
    MessageRow,
    OutboxRow,
    PersonRow,
    TurnRow,
    UtcDateTime,
    insert,
    insert_into,
    insert_once,
    loaded,
    table_of,
    upsert,
)
from db.repositories.privacy import forget, forget_elsewhere

THEIRS: Final[BindParameter[int]] = bindparam("user_id")
ACCESS: Final = select(PersonRow.access).where(PersonRow.user_id == THEIRS)


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
        found = await self._sessions.read(lambda on: on.scalar(ACCESS, {"user_id": user_id}))
        return cast("Access | None", found)

    async def decide(self, user_id: int, access: Access) -> None:
        row = {"user_id": user_id, "access": access}
        await self._sessions.write(lambda on: on.execute(upsert(on, PersonRow, "access"), row))

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
        return await self._sessions.read(lambda on: [each for each in on.scalars(query) if each])

    async def _first(self, user_id: int, note: dict[str, date], new: ColumnElement[bool]) -> bool:
        """Whether this is who makes a note: one statement decides, of several replicas one does."""

        def write(on: Connection) -> bool:
            insert = insert_into(on, PersonRow).values(user_id=user_id, **note)
            noted = insert.on_conflict_do_update(index_elements=["user_id"], set_=note, where=new)
            return on.scalar(noted.returning(PersonRow.user_id)) is not None

        return await self._sessions.write(write)


def _seen_again(insert: postgresql.Insert | sqlite.Insert) -> dict[str, object]:
    """What changes of a person who is known; moments may come in any order."""
    new = insert.excluded
    first, last = PersonRow.first_seen, PersonRow.last_seen
    return {
        "first_seen": case((first < new.first_seen, first), else_=new.first_seen),
        "last_seen": case((last > new.last_seen, last), else_=new.last_seen),
        "chat_id": func.coalesce(new.chat_id, PersonRow.chat_id),
    }


MESSAGES: Final = table_of(MessageRow)
RECENT: Final = (
    select(MESSAGES, TurnRow.user_id)
    .join(TurnRow, TurnRow.turn_id == MESSAGES.c.turn_id, isouter=True)
    .where(MESSAGES.c.chat_id == bindparam("chat"), MESSAGES.c.thread_id == bindparam("thread"))
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
        thread_id: int = 0,
    ) -> None:
        said = StoredMessage(role, content, tuple(wine_ids), thread_id=thread_id)
        row = message_row(chat_id, said, turn_id, self._now())
        await self._sessions.write(lambda on: on.execute(insert_once(on, MessageRow), row))

    async def recent(
        self, chat_id: int, limit: int = 20, *, thread_id: int = 0
    ) -> list[StoredMessage]:
        newest = {"chat": chat_id, "thread": thread_id, "most": max(limit, 0)}
        found = await self._sessions.read(
            lambda on: [loaded(StoredMessage, row) for row in on.execute(RECENT, newest)]
        )
        return found[::-1]

    async def forget(self, chat_id: int, *, thread_id: int = 0) -> int:
        return await self._write(delete(MessageRow).where(_said_in(chat_id, thread_id)))

    async def undo(self, chat_id: int, turn_id: int, *, thread_id: int = 0) -> bool:
        said = _said_in(chat_id, thread_id)
        newest = select(MessageRow.turn_id).where(said).order_by(MessageRow.id.desc()).limit(1)

        def write(on: Connection) -> bool:
            if on.scalar(newest) != turn_id:
                return False
            on.execute(delete(MessageRow).where(said, MessageRow.turn_id == turn_id))
            return True

        return await self._sessions.write(write)


def _said_in(chat_id: int, thread_id: int) -> ColumnElement[bool]:
    return (MessageRow.chat_id == chat_id) & (MessageRow.thread_id == thread_id)


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
        "thread_id": said.thread_id,
        "attachment": storable(said.attachment),
    }


class SqlChatRepository(SqlRepository):
    """Fulfils `agent.repositories.ChatRepository` on SQLite and Postgres alike."""

    async def state(self, chat_id: int) -> ChatState:
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
        await self._set(chat_id, unreachable_since=self._now(), unreachable_reason=storable(reason))

    async def reachable(self, chat_id: int) -> None:
        row = await self._sessions.read(lambda on: on.execute(CHAT, {"key": chat_id}).one_or_none())
        # This is asked with every message, and nearly always there is nothing to write.
        if row is not None and row.unreachable_since is not None:
            await self._set(chat_id, unreachable_since=None, unreachable_reason=None)

    async def migrated(self, chat_id: int, to: int) -> None:
        def write(on: Connection) -> None:
            _set(on, chat_id, migrated_to=to)
            known = select(CareRow.user_id, CareRow.told).where(CareRow.chat_id == to)
            told = tuple_(CareRow.user_id, CareRow.told)
            on.execute(delete(CareRow).where(CareRow.chat_id == chat_id, told.in_(known)))
            for each in (MessageRow, CareRow, TurnRow):
                table = table_of(each)
                on.execute(update(table).where(table.c.chat_id == chat_id).values(chat_id=to))

        await self._sessions.write(write)

    async def _set(self, chat_id: int, **columns: datetime | str | None) -> None:
        await self._sessions.write(lambda on: _set(on, chat_id, **columns))


def _set(on: Connection, chat_id: int, **columns: datetime | str | int | None) -> None:
    on.execute(insert_once(on, ChatRow), {"chat_id": chat_id})
    row = update(table_of(ChatRow)).where(ChatRow.chat_id == chat_id)
    on.execute(row.values(**columns))


def moved(on: Connection, chat_id: int) -> int:
    """Return the id that a chat has now: a group's changes when it becomes a supergroup."""
    row = on.execute(CHAT, {"key": chat_id}).one_or_none() if chat_id < 0 else None
    return chat_id if row is None or row.migrated_to is None else row.migrated_to


NOW: Final = bindparam("now", type_=UtcDateTime)
TOLD: Final = select(CareRow.told).where(
    CareRow.user_id == THEIRS, CareRow.until.is_(None) | (CareRow.until > NOW)
)
TOLD_IN_CHAT: Final = TOLD.where(CareRow.chat_id == bindparam("chat"))


class SqlCareRepository(SqlRepository):
    """Fulfils `agent.repositories.CareRepository` on SQLite and Postgres alike. Writes commit."""

    async def held(self, chat_id: int | None, user_id: int) -> frozenset[str]:
        query = TOLD if chat_id is None else TOLD_IN_CHAT
        values = {"user_id": user_id, "now": self._now(), "chat": chat_id}
        return await self._sessions.read(lambda on: frozenset(on.scalars(query, values)))

    async def keep(self, chat_id: int, user_id: int, told: Mapping[str, datetime | None]) -> None:
        rows = [
            {"chat_id": chat_id, "user_id": user_id, "told": each, "until": until}
            for each, until in told.items()
        ]

        await self._sessions.write(lambda on: on.execute(upsert(on, CareRow), rows))

    async def forget(self, chat_id: int, *, but: Collection[str] = ()) -> None:
        of_chat = CareRow.chat_id == chat_id
        await self._write(delete(CareRow).where(of_chat, CareRow.told.not_in(but)))

    async def clear(self, user_id: int) -> list[str]:
        of_person = delete(CareRow).where(CareRow.user_id == user_id).returning(CareRow.told)
        return await self._sessions.write(lambda on: sorted(set(on.scalars(of_person))))

    async def forget_expired(self) -> int:
        return await self._write(delete(CareRow).where(CareRow.until <= self._now()))


FACTS: Final = table_of(FactRow)
BOTTLES: Final = table_of(BottleRow)
OF_PERSON: Final = select(FACTS).where(FACTS.c.user_id == THEIRS).order_by(FACTS.c.at)
BY_CHANGE: Final = (BOTTLES.c.at, BOTTLES.c.id)
OWNED: Final = select(BOTTLES).where(BOTTLES.c.user_id == THEIRS).order_by(*BY_CHANGE)


class SqlMemoryRepository(SqlRepository):
    """Fulfils `agent.repositories.MemoryRepository` on SQLite and Postgres alike."""

    async def facts(self, user_id: int) -> list[Fact]:
        return await self._sessions.read(
            lambda on: [loaded(Fact, row) for row in on.execute(OF_PERSON, {"user_id": user_id})]
        )

    async def bottles(self, user_id: int) -> list[Bottles]:
        return await self._sessions.read(
            lambda on: [loaded(Bottles, row) for row in on.execute(OWNED, {"user_id": user_id})]
        )

    async def remind(
        self, user_id: int, month: Fact, told: Sequence[Fact], messages: Sequence[OutboxRow]
    ) -> bool:
        """Have a person be sent a reminder of a month, once; return whether it is sent."""
        now = self._now()
        row = {"user_id": user_id, "kind": month.kind, "value": month.value, "turn_id": 0}
        async with self._sessions.begin() as session:
            noted = insert(session, FactRow).values(row | {"said": "", "at": now})
            is_new = noted.on_conflict_do_nothing().returning(FactRow.user_id)
            if await session.scalar(is_new) is None:
                return False
            learned = Change(user_id=user_id, learned=tuple(told))
            await session.run_sync(lambda inner: change(inner.connection(), [learned], now))
            session.add_all(messages)
        return True

    async def owners(self, without: Collection[str]) -> list[int]:
        setting = (FACTS.c.kind == "setting") & FACTS.c.value.in_(without)
        others = select(FACTS.c.user_id).where(setting)
        owning = (BOTTLES.c.count > 0) & BOTTLES.c.user_id.not_in(others)
        query = select(BOTTLES.c.user_id).where(owning).distinct()
        return await self._sessions.read(lambda on: list(on.scalars(query)))


def change(on: Connection, changes: Sequence[Change], now: datetime) -> None:
    """Make the changes of a turn; in the transaction that ends it, so once."""
    for each in changes:
        for fact in each.unlearned:
            _unlearn(on, each.user_id, fact)
        for fact in each.learned:
            row = {"user_id": each.user_id, "turn_id": 0, "said": storable(fact.said), "at": now}
            own = {"kind": fact.kind, "value": storable(fact.value)}
            on.execute(upsert(on, FactRow), row | own)
        for bottles in each.bottles:
            _add(on, each.user_id, bottles, now)
        if each.forget:
            forget(on, each.user_id, each.forget)
            forget_elsewhere(on, each.forget, now)


def _unlearn(on: Connection, user_id: int, fact: Fact) -> None:
    """Delete a fact; an allergy is held of each chat that it was told in, too."""
    row = FACTS.c
    same = (row.kind == fact.kind) & (row.value == fact.value)
    on.execute(delete(FACTS).where(row.user_id == user_id, same))
    if fact.kind == "allergy":
        told = (CareRow.user_id == user_id) & (CareRow.told == fact.value)
        on.execute(delete(table_of(CareRow)).where(told))


def _add(on: Connection, user_id: int, bottles: Bottles, now: datetime) -> None:
    """Add bottles to those of the same wine, or take them away; there are never less than none."""
    this = (BOTTLES.c.user_id == user_id) & (BOTTLES.c.key == storable(bottles.key))
    known = on.execute(select(BOTTLES).where(this)).one_or_none()
    told = {
        "wine": dict(bottles.wine),
        "drink_from": bottles.drink_from,
        "drink_until": bottles.drink_until,
        "note": storable(bottles.note),
    }
    told = {name: value for name, value in told.items() if value or known is None}
    count = max(0, (known._mapping["count"] if known else 0) + bottles.count)
    if known is not None:
        on.execute(update(BOTTLES).where(this).values(**told, count=count, at=now))
        return
    row = {"user_id": user_id, "key": storable(bottles.key), "count": count, "at": now}
    on.execute(insert_into(on, BottleRow), row | told)

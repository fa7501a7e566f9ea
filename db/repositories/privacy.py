"""What is kept of one person: shown, or deleted, in every table at once."""

import zlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from pydantic_core import to_jsonable_python
from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from db.engine import SqlRepository, count_rows
from db.models import (
    Base,
    BottleRow,
    BroadcastRow,
    ChatRow,
    DeletionRow,
    FactRow,
    MessageRow,
    OutboxRow,
    PersonRow,
    ScoreRow,
    TraceRow,
    TurnRow,
    UpdateRow,
    table_of,
    upsert,
)
from db.repositories.traces import unpacked

Rows = Sequence[Mapping[str, object]]

NOBODY: Final = 0
"""The chat of an update whose person is forgotten; its number stays, or it could come again."""


class SqlPersonalData(SqlRepository):
    """Everything that is kept of a person, in private chats and in groups.

    In groups that is what they asked, what was answered to it, and what they think of the answer.
    `user` is their hash in traces.
    """

    async def export(self, user_id: int, user: str) -> dict[str, Rows]:
        """Return every row of theirs, by table; dates in ISO form, traces as they were sent."""
        found = dict[str, Rows]()
        async with self._sessions() as session:
            for model, theirs in (await _theirs(session, user_id, user)).items():
                rows = await session.execute(select(table_of(model)).where(theirs))
                found[table_of(model).name] = [
                    {name: _plain(value) for name, value in row.items()} for row in rows.mappings()
                ]
        return found

    async def count(self, user_id: int, user: str) -> dict[str, int]:
        """Count the rows of theirs, by table."""
        counts = dict[str, int]()
        async with self._sessions() as session:
            for model, theirs in (await _theirs(session, user_id, user)).items():
                table = table_of(model)
                count = select(func.count()).select_from(table).where(theirs)
                counts[table.name] = await session.scalar(count) or 0
        return counts

    async def forget(self, user_id: int, user: str) -> dict[str, int]:
        """Delete every row of theirs, for good; return how many that were, by table."""
        async with self._sessions.begin() as session:
            gone = await forget(session, user_id, user)
        await self._sessions.checkpoint()
        return gone


class DeletionRepository(SqlRepository):
    """Stores the users who are to be forgotten wherever traces of them are."""

    async def due(self) -> Sequence[DeletionRow]:
        """Return the deletions that are to be tried now."""
        waiting = select(DeletionRow).where(DeletionRow.due_at <= self._now())
        async with self._sessions() as session:
            return (await session.scalars(waiting)).all()

    async def sweep(self, deletion: DeletionRow) -> int:
        """Delete what turns stored that were under way then; return how many rows."""
        traces = (TraceRow.user == deletion.user) & (TraceRow.started_at < deletion.at)
        ids = select(TraceRow.trace_id).where(traces)
        turns = select(TurnRow.turn_id).where(TurnRow.trace_id.in_(ids))
        found = (
            delete(MessageRow).where(MessageRow.turn_id.in_(turns)),
            delete(TurnRow).where(TurnRow.turn_id.in_(turns)),
            delete(ScoreRow).where(ScoreRow.trace_id.in_(ids)),
            delete(TraceRow).where(traces),
        )
        async with self._sessions.begin() as session:
            count = sum([await count_rows(session, statement) for statement in found])
        if count or not deletion.tries:
            await self._sessions.checkpoint()
        return count

    async def postpone(self, deletion: DeletionRow, seconds: float) -> None:
        """Have a deletion be due again after so many seconds."""
        later = self._now() + timedelta(seconds=seconds)
        this = update(DeletionRow).where(DeletionRow.user == deletion.user)
        await self._write(this.values(due_at=later, tries=deletion.tries + 1))

    async def finish(self, deletion: DeletionRow) -> None:
        """End a deletion, unless it was asked for again meanwhile."""
        this = (DeletionRow.user == deletion.user) & (DeletionRow.at == deletion.at)
        await self._write(delete(DeletionRow).where(this))
        await self._sessions.checkpoint()


async def forget(session: AsyncSession, user_id: int, user: str) -> dict[str, int]:
    """Delete every row of a person; return how many that were, by table.

    That somebody was allowed or blocked stays, or who is blocked could come back by it; of an
    update that is done its number alone, of one that still waits for its turn all.
    """
    theirs, counts = await _theirs(session, user_id, user), dict[str, int]()
    done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == "done")
    nobody: dict[str, object] = {
        "chat_id": NOBODY,
        "lane": None,
        "message_id": None,
        "payload": {},
        "error": None,
    }
    counts["updates"] = await count_rows(session, update(UpdateRow).where(done).values(nobody))
    theirs[UpdateRow] &= UpdateRow.state.not_in(["waiting", "answered", "retry"])
    kept = PersonRow.access.is_not(None)
    nothing = dict.fromkeys(("first_seen", "last_seen", "chat_id", "warned_on", "introduced_on"))
    person = update(PersonRow).where(theirs[PersonRow], kept)
    await session.execute(person.values(nothing))
    theirs[PersonRow] &= ~kept
    for model, where in theirs.items():
        gone = await count_rows(session, delete(model).where(where))
        name = table_of(model).name
        counts[name] = counts.get(name, 0) + gone
    return counts


async def forget_elsewhere(session: AsyncSession, user: str, now: datetime) -> None:
    """Have the traces of a person be deleted wherever else they are, from now on."""
    deletion = {"user": user, "at": now, "due_at": now, "tries": 0}
    await session.execute(upsert(session, DeletionRow), deletion)


async def _theirs(
    session: AsyncSession, user_id: int, user: str
) -> dict[type[Base], ColumnElement[bool]]:
    """Return what of each table is a person's; those that others are found by come last."""
    turns = select(TurnRow.turn_id).where(
        or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    )
    traces = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    theirs = or_(TraceRow.user == user, TraceRow.trace_id.in_(traces))
    unanswered = select(UpdateRow.update_id, UpdateRow.payload).where(UpdateRow.state != "done")
    in_groups = [
        update_id
        for update_id, payload in await session.execute(unanswered)
        if _is_from(payload, user_id)
    ]
    return {
        MessageRow: or_(MessageRow.chat_id == user_id, MessageRow.turn_id.in_(turns)),
        OutboxRow: or_(OutboxRow.chat_id == user_id, OutboxRow.turn_id.in_(turns)),
        ScoreRow: ScoreRow.trace_id.in_(select(TraceRow.trace_id).where(theirs)),
        TraceRow: theirs,
        UpdateRow: or_(UpdateRow.chat_id == user_id, UpdateRow.update_id.in_(in_groups)),
        FactRow: FactRow.user_id == user_id,
        BottleRow: BottleRow.user_id == user_id,
        BroadcastRow: BroadcastRow.created_by == user_id,
        ChatRow: ChatRow.chat_id == user_id,
        PersonRow: PersonRow.user_id == user_id,
        TurnRow: TurnRow.turn_id.in_(turns),
    }


def _is_from(payload: Mapping[str, Any], user_id: int) -> bool:
    """Whether an update, as Telegram delivered it, is of a person."""
    parts = (part for part in payload.values() if isinstance(part, Mapping))
    people = (part.get("from") for part in parts)
    return any(isinstance(each, Mapping) and each.get("id") == user_id for each in people)


def _plain(value: object) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return to_jsonable_python(unpacked(value))
        except zlib.error:  # a file that waits to be sent
            return len(value)
    return value

"""What is kept of one person: shown, or deleted, in every table at once."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from pydantic_core import to_jsonable_python
from sqlalchemy import ColumnElement, Connection, delete, func, or_, select, update

from agent.repositories import Deletion
from db.engine import SqlRepository
from db.models import (
    Base,
    BottleRow,
    BroadcastRow,
    CareRow,
    ChatRow,
    DeletionRow,
    FactRow,
    FeedbackRow,
    MessageRow,
    OutboxRow,
    PersonRow,
    ScoreRow,
    TraceRow,
    TurnRow,
    UnderWayRow,
    UpdateRow,
    loaded,
    table_of,
    upsert,
)
from db.repositories.traces import unpacked

Rows = Sequence[Mapping[str, object]]

NOBODY: Final = 0
"""The chat of an update whose person is forgotten; its number stays, or it could come again."""
DELETIONS: Final = table_of(DeletionRow)


class SqlPersonalData(SqlRepository):
    """All that is kept of a person on SQLite and Postgres alike, in private chats and in groups.

    In groups that is what they asked, what was answered to it, and what they think of the answer.
    `user` is their hash in traces.
    """

    async def export(self, user_id: int, user: str) -> dict[str, Rows]:
        """Return every row of theirs, by table; dates in ISO form, traces as they were sent."""

        def read(on: Connection) -> dict[str, Rows]:
            return {
                table_of(model).name: [
                    {name: _plain(value) for name, value in row._mapping.items()}
                    for row in on.execute(select(table_of(model)).where(theirs))
                ]
                for model, theirs in _theirs(on, user_id, user).items()
            }

        return await self._sessions.read(read)

    async def count(self, user_id: int, user: str) -> dict[str, int]:
        def read(on: Connection) -> dict[str, int]:
            of = _theirs(on, user_id, user).items()
            count = select(func.count())
            return {
                table_of(model).name: on.scalar(count.select_from(table_of(model)).where(where))
                or 0
                for model, where in of
            }

        return await self._sessions.read(read)

    async def forget(self, user_id: int, user: str) -> dict[str, int]:
        """Delete every row of theirs, for good; how many that were, by table."""
        gone = await self._sessions.write(lambda on: forget(on, user_id, user))
        await self._sessions.checkpoint()
        return gone


class SqlDeletionRepository(SqlRepository):
    """Fulfils `agent.repositories.DeletionRepository` on SQLite and Postgres alike."""

    async def due(self) -> list[Deletion]:
        waiting = select(DELETIONS).where(DELETIONS.c.due_at <= self._now())
        return await self._sessions.read(
            lambda on: [loaded(Deletion, row) for row in on.execute(waiting)]
        )

    async def sweep(self, deletion: Deletion) -> int:
        traces = (TraceRow.user == deletion.user) & (TraceRow.started_at < deletion.at)
        turns = select(TurnRow.turn_id).where(
            TurnRow.trace_id.in_(select(TraceRow.trace_id).where(traces))
        )

        def write(on: Connection) -> int:
            found = (
                (MessageRow, MessageRow.turn_id.in_(turns)),
                (TurnRow, TurnRow.turn_id.in_(turns)),
                (ScoreRow, ScoreRow.trace_id.in_(select(TraceRow.trace_id).where(traces))),
                (TraceRow, traces),
            )
            return sum(
                on.execute(delete(table_of(model)).where(where)).rowcount for model, where in found
            )

        return await self._sessions.write(write)

    async def scrub(self) -> None:
        await self._sessions.checkpoint()

    async def again(self, deletion: Deletion, seconds: float) -> None:
        later = self._now() + timedelta(seconds=seconds)
        this = update(DELETIONS).where(DELETIONS.c.user == deletion.user)
        await self._write(this.values(due_at=later, tries=deletion.tries + 1))

    async def settled(self, deletion: Deletion) -> None:
        # Asked for again meanwhile, it is not.
        this = (DELETIONS.c.user == deletion.user) & (DELETIONS.c.at == deletion.at)
        await self._write(delete(DELETIONS).where(this))
        await self._sessions.checkpoint()


def forget(on: Connection, user_id: int, user: str) -> dict[str, int]:
    """Delete every row of a person; how many that were, by table.

    That somebody was allowed or blocked stays, or who is blocked could come back by it; of an
    update that is done its number alone, of one that still waits for its turn all.
    """
    theirs, counts = _theirs(on, user_id, user), dict[str, int]()
    done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == "done")
    counts["updates"] = on.execute(
        update(table_of(UpdateRow))
        .where(done)
        .values(chat_id=NOBODY, lane=None, message_id=None, payload={}, error=None)
    ).rowcount
    theirs[UpdateRow] &= UpdateRow.state.not_in(["waiting", "answered", "retry"])
    kept = PersonRow.access.is_not(None)
    nothing = dict.fromkeys(("first_seen", "last_seen", "chat_id", "warned_on", "introduced_on"))
    person = update(table_of(PersonRow)).where(theirs[PersonRow], kept)
    on.execute(person.values(nothing))
    theirs[PersonRow] &= ~kept
    for model, where in theirs.items():
        table = table_of(model)
        gone = on.execute(delete(table).where(where)).rowcount
        counts[table.name] = counts.get(table.name, 0) + gone
    return counts


def forget_elsewhere(on: Connection, user: str, now: datetime) -> None:
    """Have the traces of a person be deleted wherever else they are, from now on."""
    deletion = {"user": user, "at": now, "due_at": now, "tries": 0}
    on.execute(upsert(on, DeletionRow), deletion)


def _theirs(on: Connection, user_id: int, user: str) -> dict[type[Base], ColumnElement[bool]]:
    """What of each table is a person's; those that others are found by come last."""
    turns = select(TurnRow.turn_id).where(
        or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    )
    traces = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    theirs = or_(TraceRow.user == user, TraceRow.trace_id.in_(traces))
    updates = table_of(UpdateRow)
    unanswered = select(updates.c.update_id, updates.c.payload).where(updates.c.state != "done")
    in_groups = [row.update_id for row in on.execute(unanswered) if _is_from(row.payload, user_id)]
    return {
        MessageRow: or_(MessageRow.chat_id == user_id, MessageRow.turn_id.in_(turns)),
        FeedbackRow: FeedbackRow.turn_id.in_(turns),
        OutboxRow: or_(OutboxRow.chat_id == user_id, OutboxRow.turn_id.in_(turns)),
        ScoreRow: ScoreRow.trace_id.in_(select(TraceRow.trace_id).where(theirs)),
        TraceRow: theirs,
        UpdateRow: or_(UpdateRow.chat_id == user_id, UpdateRow.update_id.in_(in_groups)),
        UnderWayRow: UnderWayRow.user_id == user_id,
        CareRow: CareRow.user_id == user_id,
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
    return to_jsonable_python(unpacked(value)) if isinstance(value, bytes) else value

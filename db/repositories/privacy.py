"""Everything that is stored of one user: shown, or deleted, in every table at once."""

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from db.engine import SqlRepository, count_changed
from db.models import (
    Base,
    BottleRow,
    BroadcastRow,
    ChatRow,
    DeletionRow,
    FactRow,
    MessageRow,
    OutboxRow,
    ScoreRow,
    TraceRow,
    TurnRow,
    UpdateRow,
)

DONE: Final = "done"
NO_PERSONAL_DATA: Final[dict[str, object]] = {
    "chat_id": 0,
    "lane": None,
    "message_id": None,
    "payload": {},
    "error": None,
}
"""Columns of an update whose user is forgotten. Its id stays: Telegram could send it again."""


class SqlPersonalData(SqlRepository):
    """Everything that is stored of a user, in private chats and in groups.

    In groups that is their messages, the answers to them, and their feedback. `user` is their hash
    in traces.
    """

    async def export(self, user_id: int, user: str) -> dict[str, list[dict[str, object]]]:
        """Return all rows of a user, by table; traces as they were sent."""
        found = dict[str, list[dict[str, object]]]()
        async with self.sessions() as session:
            for model, is_theirs in (await _owned(session, user_id, user)).items():
                rows = await session.execute(select(model.__table__).where(is_theirs))
                found[model.__table__.name] = [
                    {name: _readable(value) for name, value in row.items()}
                    for row in rows.mappings()
                ]
        return found

    async def forget(self, user_id: int, user: str) -> dict[str, int]:
        """Delete all rows of a user, for good; return how many there were, by table."""
        async with self.sessions.begin() as session:
            counts = await forget(session, user_id, user)
        await self.sessions.checkpoint()
        return counts

    async def due(self) -> Sequence[DeletionRow]:
        """Return users who are to be forgotten now wherever traces of them are."""
        return await self._all(select(DeletionRow).where(DeletionRow.due_at <= self.now()))

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
        async with self.sessions.begin() as session:
            count = sum([await count_changed(session, statement) for statement in found])
        if count or not deletion.tries:
            await self.sessions.checkpoint()
        return count

    async def postpone(self, deletion: DeletionRow, seconds: float) -> None:
        """Have a deletion be due again after so many seconds."""
        later = self.now() + timedelta(seconds=seconds)
        this = update(DeletionRow).where(DeletionRow.user == deletion.user)
        await self._write(this.values(due_at=later, tries=deletion.tries + 1))

    async def finish(self, deletion: DeletionRow) -> None:
        """End a deletion, unless it was asked for again meanwhile."""
        this = (DeletionRow.user == deletion.user) & (DeletionRow.at == deletion.at)
        await self._write(delete(DeletionRow).where(this))
        await self.sessions.checkpoint()


async def forget(session: AsyncSession, user_id: int, user: str) -> Counter[str]:
    """Delete all rows of a user; return how many there were, by table.

    An admin's decision to allow or block them stays, or a blocked user could come back by it. Of an
    update that is done, the number stays; one that waits for its turn stays whole.
    """
    owned = await _owned(session, user_id, user)
    is_done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == DONE)
    emptied = update(UpdateRow).where(is_done).values(NO_PERSONAL_DATA)
    counts = Counter(updates=await count_changed(session, emptied))
    owned[UpdateRow] &= UpdateRow.state.not_in(["waiting", "answered"])
    nothing = dict.fromkeys(("is_reachable", "is_introduced"))
    await session.execute(update(ChatRow).where(owned[ChatRow]).values(nothing))
    owned[ChatRow] &= ChatRow.access.is_(None)
    for model, is_theirs in owned.items():
        counts[model.__table__.name] += await count_changed(session, delete(model).where(is_theirs))
    return counts


async def _owned(
    session: AsyncSession, user_id: int, user: str
) -> dict[type[Base], ColumnElement[bool]]:
    """Return the conditions for a user's rows of all tables, those that others refer to last."""
    is_theirs = or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    turns = select(TurnRow.turn_id).where(is_theirs)
    traces = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    is_trace = or_(TraceRow.user == user, TraceRow.trace_id.in_(traces))
    unanswered = select(UpdateRow.update_id, UpdateRow.payload).where(UpdateRow.state != DONE)
    in_groups = [
        update_id
        for update_id, payload in await session.execute(unanswered)
        if _is_from(payload, user_id)
    ]
    return {
        MessageRow: or_(MessageRow.chat_id == user_id, MessageRow.turn_id.in_(turns)),
        OutboxRow: or_(OutboxRow.chat_id == user_id, OutboxRow.turn_id.in_(turns)),
        ScoreRow: ScoreRow.trace_id.in_(select(TraceRow.trace_id).where(is_trace)),
        TraceRow: is_trace,
        UpdateRow: or_(UpdateRow.chat_id == user_id, UpdateRow.update_id.in_(in_groups)),
        FactRow: FactRow.user_id == user_id,
        BottleRow: BottleRow.user_id == user_id,
        BroadcastRow: BroadcastRow.created_by == user_id,
        ChatRow: ChatRow.chat_id == user_id,
        TurnRow: TurnRow.turn_id.in_(turns),
    }


def _is_from(payload: Mapping[str, Any], user_id: int) -> bool:
    """Return whether an update, as Telegram delivered it, is from a user."""
    parts = (part for part in payload.values() if isinstance(part, Mapping))
    senders = (part.get("from") for part in parts)
    return any(isinstance(sender, Mapping) and sender.get("id") == user_id for sender in senders)


def _readable(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(zlib.decompress(value))
    except zlib.error:  # a file that waits to be sent
        return len(value)

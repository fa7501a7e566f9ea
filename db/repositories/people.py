"""Chats and users: access, conversations, facts and bottles, and the deletion of a user's data."""

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, case, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.text import strip_unstorable
from agent.turn import CellarItem, Change, Fact, FactKind, StoredMessage
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
    insert_new,
    to_record,
    upsert,
)

Access = Literal["allowed", "blocked"]

UNDO: Final = "undo"
"""The kind of a fact that stores an undoable change."""
UNDOABLE_FOR: Final = timedelta(days=30)
"""How long a change can be undone."""
CHANGE: Final = TypeAdapter(Change)
SAFETY: Final = "safety"
"""The kind of a fact that is a safety concern or an allergy in one chat."""
IS_SAFETY: Final = FactRow.kind == SAFETY
DONE: Final = "done"
"""The state of an update whose turn has ended."""
NO_PERSONAL_DATA: Final[dict[str, object]] = {
    "chat_id": 0,
    "lane": None,
    "message_id": None,
    "payload": {},
    "error": None,
}
"""Columns that anonymise an update. Its id stays, since Telegram may deliver it again."""


class ChatRepository(SqlRepository):
    """Chats: whether they are reachable, migrations of groups, and the access of users."""

    async def find_access(self, user_id: int) -> Access | None:
        """Return an admin's decision about a user; None if there is none."""
        query = select(ChatRow.access).where(ChatRow.chat_id == user_id)
        return cast("Access | None", await self._first_value(query))

    async def set_access(self, user_id: int, access: Access) -> None:
        """Allow or block a user, even one who never wrote."""
        await self._upsert(ChatRow(chat_id=user_id, access=access))

    async def mark_introduced(self, user_id: int) -> bool:
        """Mark that admins were asked about a user; return True only the first time."""
        is_new = (ChatRow.chat_id == user_id) & ChatRow.is_introduced.is_not(True)
        async with self.sessions.begin() as session:
            await insert_new(session, ChatRow(chat_id=user_id))
            introduce = update(ChatRow).where(is_new).values(is_introduced=True)
            return bool(await count_changed(session, introduce))

    async def set_reachable(self, chat_id: int, *, is_reachable: bool = True) -> None:
        """Store whether a chat is reachable; it is not if it is gone or the bot was blocked."""
        stored = select(ChatRow.is_reachable).where(ChatRow.chat_id == chat_id)
        # Called for every message, and the value rarely changes: reading avoids most writes.
        if await self._first_value(stored) is not is_reachable:
            await self._upsert(ChatRow(chat_id=chat_id, is_reachable=is_reachable))

    async def migrate(self, chat_id: int, to: int) -> None:
        """Move the conversation and facts of a group that became a supergroup to its new id."""
        is_there = FactRow.chat_id == chat_id
        async with self.sessions.begin() as session:
            await upsert(session, ChatRow(chat_id=chat_id, migrated_to=to))
            facts = await session.scalars(select(FactRow).where(is_there))
            await upsert(session, *(replace(fact, chat_id=to) for fact in facts))
            await session.execute(delete(FactRow).where(is_there))
            for row in (MessageRow, TurnRow):
                await session.execute(update(row).where(row.chat_id == chat_id).values(chat_id=to))

    async def list_private(self, *, only_allowed: bool = False) -> list[int]:
        """Return the reachable private chats of users who are allowed, or just not blocked."""
        may_write = ChatRow.access.is_distinct_from("blocked")
        if only_allowed:
            may_write = ChatRow.access == "allowed"
        is_open = (ChatRow.chat_id > 0) & ChatRow.is_reachable.is_(True)
        query = select(ChatRow.chat_id).where(is_open, may_write)
        return await self._values(query.order_by(ChatRow.chat_id))


class MessageRepository(SqlRepository):
    """The messages of conversations. A conversation is a chat, or a topic of it."""

    async def list_recent(
        self, chat_id: int, limit: int = 20, *, thread_id: int = 0, last_turn_id: int | None = None
    ) -> list[StoredMessage]:
        """Return the last `limit` messages of a conversation, the oldest first.

        The messages of turn `last_turn_id`, which a user replied to, come last whatever their age.
        """
        last_first = [MessageRow.id.desc()]
        if last_turn_id is not None:
            last_first.insert(0, case((MessageRow.turn_id == last_turn_id, 0), else_=1).asc())
        newest = (
            select(MessageRow.__table__, TurnRow.user_id)
            .join(TurnRow, TurnRow.turn_id == MessageRow.turn_id, isouter=True)
            .where(_is_in(chat_id, thread_id))
            .order_by(*last_first)
            .limit(limit)
        )
        return [to_record(StoredMessage, row) for row in reversed(await self._rows(newest))]

    async def forget(self, chat_id: int, *, thread_id: int = 0) -> int:
        """Delete a conversation; return the number of messages."""
        return await self._write(delete(MessageRow).where(_is_in(chat_id, thread_id)))

    async def delete_last_turn(self, chat_id: int, turn_id: int, *, thread_id: int = 0) -> bool:
        """Delete the messages of a turn; return False if it is not the conversation's last."""
        is_here = _is_in(chat_id, thread_id)
        newest = select(MessageRow.turn_id).where(is_here).order_by(MessageRow.id.desc()).limit(1)
        delete_turn = delete(MessageRow).where(is_here, MessageRow.turn_id == turn_id)
        return bool(await self._write(delete_turn.where(newest.scalar_subquery() == turn_id)))


def _is_in(chat_id: int, thread_id: int) -> ColumnElement[bool]:
    return (MessageRow.chat_id == chat_id) & (MessageRow.thread_id == thread_id)


class MemoryRepository(SqlRepository):
    """The facts, concerns and bottles of users; the export and deletion of all their data."""

    async def list_concerns(self, chat_id: int | None, user_id: int) -> frozenset[str]:
        """Return a user's unexpired concerns and allergies in a chat, or in all if None."""
        is_current = FactRow.until.is_(None) | (FactRow.until > self.now())
        query = select(FactRow.value).where(IS_SAFETY, FactRow.user_id == user_id, is_current)
        if chat_id is not None:
            query = query.where(FactRow.chat_id == chat_id)
        return frozenset(await self._values(query))

    async def save_concerns(
        self, chat_id: int, user_id: int, concerns: Mapping[str, datetime | None]
    ) -> None:
        """Store concerns and allergies with their expiry; None means that they never expire."""
        now = self.now()
        facts = [
            FactRow(user_id=user_id, kind=SAFETY, value=name, chat_id=chat_id, at=now, until=until)
            for name, until in concerns.items()
        ]
        await self._upsert(*facts)

    async def forget_concerns(self, chat_id: int, *, but: Collection[str] = ()) -> None:
        """Delete the concerns and allergies of a chat, except `but`."""
        is_in_chat = IS_SAFETY & (FactRow.chat_id == chat_id)
        await self._write(delete(FactRow).where(is_in_chat, FactRow.value.not_in(but)))

    async def clear_concerns(self, user_id: int) -> list[str]:
        """Delete a user's concerns and allergies in all chats; return them, sorted."""
        delete_all = delete(FactRow).where(IS_SAFETY, FactRow.user_id == user_id)
        async with self.sessions.begin() as session:
            return sorted(set(await session.scalars(delete_all.returning(FactRow.value))))

    async def forget_expired(self) -> int:
        """Delete expired concerns, and changes too old to undo; return their number."""
        return await self._write(delete(FactRow).where(FactRow.until <= self.now()))

    async def list_facts(self, user_id: int) -> list[Fact]:
        """Return a user's facts, including tastes inferred from verdicts, the oldest first."""
        is_fact = (FactRow.user_id == user_id) & FactRow.kind.not_in([UNDO, SAFETY])
        rows = await self._values(select(FactRow).where(is_fact).order_by(FactRow.at))
        return [Fact(cast("FactKind", row.kind), row.value, row.said) for row in rows]

    async def forget(self, user_id: int) -> None:
        """Delete the facts, the concerns and the bottles of a user."""
        async with self.sessions.begin() as session:
            for row in (FactRow, BottleRow):
                await session.execute(delete(row).where(row.user_id == user_id))

    async def find_undoable(self, user_id: int, undo_id: int) -> Change | None:
        """Return a change that a user can undo; None if it expired or is another user's."""
        change = await self._first_value(select(FactRow.said).where(_is_undo(user_id, undo_id)))
        return None if change is None else CHANGE.validate_json(change)

    async def list_bottles(self, user_id: int) -> list[CellarItem]:
        """Return the wines that a user owns or owned, sorted by their last change."""
        owned = select(BottleRow.__table__).where(BottleRow.user_id == user_id)
        rows = await self._rows(owned.order_by(BottleRow.at, BottleRow.id))
        return [to_record(CellarItem, row) for row in rows]

    async def save_reminder(
        self, user_id: int, month: Fact, facts: Sequence[Fact], messages: Sequence[OutboxRow]
    ) -> bool:
        """Queue a user's reminder for a month, with `facts` to store; return False if repeated."""
        now = self.now()
        row = FactRow(user_id=user_id, kind=month.kind, value=month.value, at=now)
        async with self.sessions.begin() as session:
            if not await insert_new(session, row):
                return False
            await apply_changes(session, [Change(user_id=user_id, added_facts=tuple(facts))], now)
            session.add_all(messages)
        return True

    async def list_owners(self, without: Collection[str]) -> list[int]:
        """Return the users who own bottles and have none of the settings `without`."""
        setting = (FactRow.kind == "setting") & FactRow.value.in_(without)
        excluded = select(FactRow.user_id).where(setting)
        is_owner = (BottleRow.count > 0) & BottleRow.user_id.not_in(excluded)
        return await self._values(select(BottleRow.user_id).where(is_owner).distinct())

    async def export(self, user_id: int, user: str) -> dict[str, list[dict[str, object]]]:
        """Return all rows of a user by table; `user` is their hash in traces, which stay masked.

        From groups, return only their messages, the answers to these, and their feedback.
        """
        rows_by_table = dict[str, list[dict[str, object]]]()
        async with self.sessions() as session:
            for model, is_owned in (await _owned(session, user_id, user)).items():
                rows = await session.execute(select(model.__table__).where(is_owned))
                rows_by_table[model.__table__.name] = [
                    {name: _readable(value) for name, value in row.items()}
                    for row in rows.mappings()
                ]
        return rows_by_table

    async def list_due_deletions(self) -> Sequence[DeletionRow]:
        """Return the deletions of exported traces that are due now."""
        return await self._values(select(DeletionRow).where(DeletionRow.due_at <= self.now()))

    async def delete_leftovers(self, deletion: DeletionRow) -> int:
        """Delete rows stored by turns that ran during the deletion; return their number."""
        traces = (TraceRow.user == deletion.user) & (TraceRow.started_at < deletion.at)
        ids = select(TraceRow.trace_id).where(traces)
        turns = select(TurnRow.turn_id).where(TurnRow.trace_id.in_(ids))
        statements = (
            delete(MessageRow).where(MessageRow.turn_id.in_(turns)),
            delete(TurnRow).where(TurnRow.turn_id.in_(turns)),
            delete(ScoreRow).where(ScoreRow.trace_id.in_(ids)),
            delete(TraceRow).where(traces),
        )
        async with self.sessions.begin() as session:
            count = sum([await count_changed(session, statement) for statement in statements])
        if count or not deletion.tries:
            await self.sessions.checkpoint()
        return count

    async def postpone_deletion(self, deletion: DeletionRow, seconds: float) -> None:
        """Schedule another try of a deletion in `seconds`."""
        later = self.now() + timedelta(seconds=seconds)
        postpone = update(DeletionRow).where(DeletionRow.user == deletion.user)
        await self._write(postpone.values(due_at=later, tries=deletion.tries + 1))

    async def finish_deletion(self, deletion: DeletionRow) -> None:
        """Remove a completed deletion, unless it was requested again meanwhile."""
        is_this = (DeletionRow.user == deletion.user) & (DeletionRow.at == deletion.at)
        await self._write(delete(DeletionRow).where(is_this))
        await self.sessions.checkpoint()


async def apply_changes(session: AsyncSession, changes: Sequence[Change], now: datetime) -> None:
    """Apply the changes of a turn; the caller stores the turn in the same transaction."""
    for requested in changes:
        change = await _pop_inverse(session, requested) if requested.reverts_id else requested
        user_id = change.user_id
        for fact in change.removed_facts:
            # An allergy is also stored as a safety fact of each chat where the user stated it.
            kinds = [fact.kind, SAFETY] if fact.kind == "allergy" else [fact.kind]
            is_removed = FactRow.kind.in_(kinds) & (FactRow.value == fact.value)
            await session.execute(delete(FactRow).where(FactRow.user_id == user_id, is_removed))
        for fact in change.added_facts:
            value, said = strip_unstorable(fact.value), strip_unstorable(fact.original_text)
            row = FactRow(user_id=user_id, kind=fact.kind, value=value, said=said, at=now)
            await upsert(session, row)
        for bottles in change.bottles:
            await _add_bottles(session, user_id, bottles, now)
        if change.undo_id:
            undo = FactRow(user_id=user_id, kind=UNDO, value=str(change.undo_id), at=now)
            undo.said = strip_unstorable(CHANGE.dump_json(change).decode())
            undo.until = now + UNDOABLE_FOR
            await upsert(session, undo)
        if change.forget_user_hash:
            user = change.forget_user_hash
            await _forget(session, user_id, user)
            # A background task deletes their exported traces.
            await upsert(session, DeletionRow(user=user, at=now, due_at=now, tries=0))


def _is_undo(user_id: int, undo_id: int) -> ColumnElement[bool]:
    is_undo = (FactRow.kind == UNDO) & (FactRow.value == str(undo_id))
    return (FactRow.user_id == user_id) & is_undo


async def _pop_inverse(session: AsyncSession, request: Change) -> Change:
    """Delete the stored change `reverts_id`; return its inverse, or an empty change if missing."""
    is_undo = _is_undo(request.user_id, request.reverts_id)
    stored = await session.scalar(delete(FactRow).where(is_undo).returning(FactRow.said))
    return CHANGE.validate_json(stored).inverse if stored else Change(user_id=request.user_id)


async def _add_bottles(
    session: AsyncSession, user_id: int, bottles: CellarItem, now: datetime
) -> None:
    """Add bottles of a wine, or remove them if the count is negative; never store less than 0."""
    key = strip_unstorable(bottles.key)
    is_this = (BottleRow.user_id == user_id) & (BottleRow.key == key)
    row = await session.scalar(select(BottleRow).where(is_this))
    row = row or BottleRow(user_id=user_id, key=key, count=0, wine={}, note="")
    session.add(row)
    # Bottles without a price keep the stored one.
    prices = {key: value for key, value in row.wine.items() if key in {"price", "currency"}}
    row.wine = {**(bottles.wine or row.wine), **({} if "price" in bottles.wine else prices)}
    row.drink_from = bottles.drink_from or row.drink_from
    row.drink_until = bottles.drink_until or row.drink_until
    row.note = strip_unstorable(bottles.note) or row.note
    row.count = max(0, row.count + bottles.count)
    row.at = now
    await session.flush()


async def _forget(session: AsyncSession, user_id: int, user: str) -> None:
    """Delete all rows of a user.

    An admin's decision stays, so that a blocked user cannot return by deleting their data. The ids
    of done updates stay too, and updates that still wait for their turn stay unchanged.
    """
    owned = await _owned(session, user_id, user)
    is_done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == DONE)
    await session.execute(update(UpdateRow).where(is_done).values(NO_PERSONAL_DATA))
    owned[UpdateRow] &= UpdateRow.state.not_in(["waiting", "answered"])
    unknown = {"is_reachable": None, "is_introduced": None}
    await session.execute(update(ChatRow).where(owned[ChatRow]).values(unknown))
    owned[ChatRow] &= ChatRow.access.is_(None)
    for model, is_owned in owned.items():
        await session.execute(delete(model).where(is_owned))


async def _owned(
    session: AsyncSession, user_id: int, user: str
) -> dict[type[Base], ColumnElement[bool]]:
    """Return each table's condition for a user's rows; referenced tables come last."""
    is_turn = or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    turns = select(TurnRow.turn_id).where(is_turn)
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
    """Return whether the payload of an update names a user as its sender."""
    parts = (part for part in payload.values() if isinstance(part, Mapping))
    senders = (part.get("from") for part in parts)
    return any(isinstance(sender, Mapping) and sender.get("id") == user_id for sender in senders)


def _readable(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(zlib.decompress(value))
    except zlib.error:  # an unsent file: export only its size
        return len(value)

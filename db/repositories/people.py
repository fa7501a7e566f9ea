"""People and chats: access, conversations, the facts and bottles of users, and forgetting users."""

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
"""The kind of a fact that is a change to be undone."""
UNDOABLE: Final = timedelta(days=30)
"""The time within which a change may be undone."""
CHANGE: Final = TypeAdapter(Change)
SAFETY: Final = "safety"
"""The kind of a fact that excludes wines in one chat."""
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
"""Columns of an update whose user is forgotten. Its id stays: Telegram could send it again."""


class ChatRepository(SqlRepository):
    """Stores which chats can be reached, where groups moved, and which users may use the bot."""

    async def find_access(self, user_id: int) -> Access | None:
        """Return whether an admin allowed or blocked a user; None if neither."""
        query = select(ChatRow.access).where(ChatRow.chat_id == user_id)
        return cast("Access | None", await self._first(query))

    async def set_access(self, user_id: int, access: Access) -> None:
        """Allow or block a user, also one who never wrote."""
        await self._upsert(ChatRow(chat_id=user_id, access=access))

    async def mark_introduced(self, user_id: int) -> bool:
        """Store that admins are asked about a user; return True the first time, on one replica."""
        is_new = (ChatRow.chat_id == user_id) & ChatRow.is_introduced.is_not(True)
        async with self.sessions.begin() as session:
            await insert_new(session, ChatRow(chat_id=user_id))
            introduce = update(ChatRow).where(is_new).values(is_introduced=True)
            return bool(await count_changed(session, introduce))

    async def set_reachable(self, chat_id: int, *, is_reachable: bool = True) -> None:
        """Store that a user wrote from a chat, or that the bot was blocked there, or it is gone."""
        known = select(ChatRow.is_reachable).where(ChatRow.chat_id == chat_id)
        # This is asked with every message, and nearly always there is nothing to write.
        if await self._first(known) is not is_reachable:
            await self._upsert(ChatRow(chat_id=chat_id, is_reachable=is_reachable))

    async def migrate(self, chat_id: int, to: int) -> None:
        """Store that a group became a supergroup with another id; its conversation goes along."""
        is_there = FactRow.chat_id == chat_id
        async with self.sessions.begin() as session:
            await upsert(session, ChatRow(chat_id=chat_id, migrated_to=to))
            facts = await session.scalars(select(FactRow).where(is_there))
            await upsert(session, *(replace(fact, chat_id=to) for fact in facts))
            await session.execute(delete(FactRow).where(is_there))
            for row in (MessageRow, TurnRow):
                await session.execute(update(row).where(row.chat_id == chat_id).values(chat_id=to))

    async def list_private(self, *, only_allowed: bool = False) -> list[int]:
        """Return the reachable private chats of users who are not blocked, for a broadcast."""
        is_welcome = ChatRow.access.is_distinct_from("blocked")
        if only_allowed:
            is_welcome = ChatRow.access == "allowed"
        is_open = (ChatRow.chat_id > 0) & ChatRow.is_reachable.is_(True)
        query = select(ChatRow.chat_id).where(is_open, is_welcome)
        return await self._all(query.order_by(ChatRow.chat_id))


class MessageRepository(SqlRepository):
    """Stores the conversations of chats, and of topics where there are topics."""

    async def list_recent(
        self, chat_id: int, limit: int = 20, *, thread_id: int = 0, last_turn_id: int | None = None
    ) -> list[StoredMessage]:
        """Return the newest `limit` messages of a conversation, the oldest first.

        Those of the turn `last_turn_id`, however old, come last.
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
        """Delete a conversation; return how many messages there were."""
        return await self._write(delete(MessageRow).where(_is_in(chat_id, thread_id)))

    async def delete_last_turn(self, chat_id: int, turn_id: int, *, thread_id: int = 0) -> bool:
        """Delete the messages of a conversation's last turn; False if `turn_id` is not its last."""
        is_here = _is_in(chat_id, thread_id)
        newest = select(MessageRow.turn_id).where(is_here).order_by(MessageRow.id.desc()).limit(1)
        theirs = delete(MessageRow).where(is_here, MessageRow.turn_id == turn_id)
        return bool(await self._write(theirs.where(newest.scalar_subquery() == turn_id)))


def _is_in(chat_id: int, thread_id: int) -> ColumnElement[bool]:
    return (MessageRow.chat_id == chat_id) & (MessageRow.thread_id == thread_id)


class MemoryRepository(SqlRepository):
    """Stores the facts, the bottles and the concerns of users; exports and forgets their data."""

    async def list_concerns(self, chat_id: int | None, user_id: int) -> frozenset[str]:
        """Return the concerns and allergies of a user that hold in a chat; None: in any."""
        holds = FactRow.until.is_(None) | (FactRow.until > self.now())
        query = select(FactRow.value).where(IS_SAFETY, FactRow.user_id == user_id, holds)
        if chat_id is not None:
            query = query.where(FactRow.chat_id == chat_id)
        return frozenset(await self._all(query))

    async def save_concerns(
        self, chat_id: int, user_id: int, told: Mapping[str, datetime | None]
    ) -> None:
        """Store concerns and allergies with the time until which they hold; None means for ever."""
        now = self.now()
        facts = [
            FactRow(user_id=user_id, kind=SAFETY, value=name, chat_id=chat_id, at=now, until=until)
            for name, until in told.items()
        ]
        await self._upsert(*facts)

    async def forget_concerns(self, chat_id: int, *, but: Collection[str] = ()) -> None:
        """Forget the concerns and allergies of a chat, except `but`."""
        of_chat = IS_SAFETY & (FactRow.chat_id == chat_id)
        await self._write(delete(FactRow).where(of_chat, FactRow.value.not_in(but)))

    async def clear_concerns(self, user_id: int) -> list[str]:
        """Forget the concerns and allergies of a user in all chats; return them, sorted."""
        of_user = delete(FactRow).where(IS_SAFETY, FactRow.user_id == user_id)
        async with self.sessions.begin() as session:
            return sorted(set(await session.scalars(of_user.returning(FactRow.value))))

    async def forget_expired(self) -> int:
        """Delete expired concerns, and changes too old to undo; return how many there were."""
        return await self._write(delete(FactRow).where(FactRow.until <= self.now()))

    async def list_facts(self, user_id: int) -> list[Fact]:
        """Return the facts of a user, those of their verdicts included, the oldest first."""
        theirs = (FactRow.user_id == user_id) & FactRow.kind.not_in([UNDO, SAFETY])
        rows = await self._all(select(FactRow).where(theirs).order_by(FactRow.at))
        return [Fact(cast("FactKind", row.kind), row.value, row.said) for row in rows]

    async def forget(self, user_id: int) -> None:
        """Delete the facts, the concerns and the bottles of a user."""
        async with self.sessions.begin() as session:
            for row in (FactRow, BottleRow):
                await session.execute(delete(row).where(row.user_id == user_id))

    async def find_undoable(self, user_id: int, undo_id: int) -> Change | None:
        """Return a change that a user can undo; None if it is deleted, or another user's."""
        said = await self._first(select(FactRow.said).where(_is_undo(user_id, undo_id)))
        return None if said is None else CHANGE.validate_json(said)

    async def list_bottles(self, user_id: int) -> list[CellarItem]:
        """Return the wines that a user owns or owned; the last changed ones come last."""
        theirs = select(BottleRow.__table__).where(BottleRow.user_id == user_id)
        rows = await self._rows(theirs.order_by(BottleRow.at, BottleRow.id))
        return [to_record(CellarItem, row) for row in rows]

    async def save_reminder(
        self, user_id: int, month: Fact, told: Sequence[Fact], messages: Sequence[OutboxRow]
    ) -> bool:
        """Store a month's reminder of a user, to be sent; return False if it was stored before."""
        now = self.now()
        row = FactRow(user_id=user_id, kind=month.kind, value=month.value, at=now)
        async with self.sessions.begin() as session:
            if not await insert_new(session, row):
                return False
            await apply_changes(session, [Change(user_id=user_id, added_facts=tuple(told))], now)
            session.add_all(messages)
        return True

    async def list_owners(self, without: Collection[str]) -> list[int]:
        """Return the users who own bottles, and have none of these settings."""
        setting = (FactRow.kind == "setting") & FactRow.value.in_(without)
        others = select(FactRow.user_id).where(setting)
        owning = (BottleRow.count > 0) & BottleRow.user_id.not_in(others)
        return await self._all(select(BottleRow.user_id).where(owning).distinct())

    async def export(self, user_id: int, user: str) -> dict[str, list[dict[str, object]]]:
        """Return all rows of a user, by table; traces as they were sent, with the hash `user`.

        In groups these are their messages, the answers to them, and their feedback.
        """
        found = dict[str, list[dict[str, object]]]()
        async with self.sessions() as session:
            for model, is_theirs in (await _owned(session, user_id, user)).items():
                rows = await session.execute(select(model.__table__).where(is_theirs))
                found[model.__table__.name] = [
                    {name: _readable(value) for name, value in row.items()}
                    for row in rows.mappings()
                ]
        return found

    async def list_due_deletions(self) -> Sequence[DeletionRow]:
        """Return users who are to be forgotten now wherever traces of them are."""
        return await self._all(select(DeletionRow).where(DeletionRow.due_at <= self.now()))

    async def delete_leftovers(self, deletion: DeletionRow) -> int:
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

    async def postpone_deletion(self, deletion: DeletionRow, seconds: float) -> None:
        """Have a deletion be due again after so many seconds."""
        later = self.now() + timedelta(seconds=seconds)
        this = update(DeletionRow).where(DeletionRow.user == deletion.user)
        await self._write(this.values(due_at=later, tries=deletion.tries + 1))

    async def finish_deletion(self, deletion: DeletionRow) -> None:
        """End a deletion, unless it was asked for again meanwhile."""
        this = (DeletionRow.user == deletion.user) & (DeletionRow.at == deletion.at)
        await self._write(delete(DeletionRow).where(this))
        await self.sessions.checkpoint()


async def apply_changes(session: AsyncSession, changes: Sequence[Change], now: datetime) -> None:
    """Apply the changes of a turn, in the transaction that stores the turn, so only once."""
    for wanted in changes:
        made = await _undone(session, wanted) if wanted.reverts_id else wanted
        user_id = made.user_id
        for fact in made.removed_facts:
            # An allergy is stored for each chat where the user told it, too.
            kinds = [fact.kind, SAFETY] if fact.kind == "allergy" else [fact.kind]
            is_it = FactRow.kind.in_(kinds) & (FactRow.value == fact.value)
            await session.execute(delete(FactRow).where(FactRow.user_id == user_id, is_it))
        for fact in made.added_facts:
            value, said = strip_unstorable(fact.value), strip_unstorable(fact.original_text)
            row = FactRow(user_id=user_id, kind=fact.kind, value=value, said=said, at=now)
            await upsert(session, row)
        for bottles in made.bottles:
            await _add(session, user_id, bottles, now)
        if made.undo_id:
            value, said = str(made.undo_id), strip_unstorable(CHANGE.dump_json(made).decode())
            undo = FactRow(user_id=user_id, kind=UNDO, value=value, said=said, at=now)
            undo.until = now + UNDOABLE
            await upsert(session, undo)
        if made.forget_user_hash:
            await _forget(session, user_id, made.forget_user_hash)
            # Their traces are deleted wherever else they are, from now on.
            user = made.forget_user_hash
            await upsert(session, DeletionRow(user=user, at=now, due_at=now, tries=0))


def _is_undo(user_id: int, undo_id: int) -> ColumnElement[bool]:
    this = (FactRow.kind == UNDO) & (FactRow.value == str(undo_id))
    return (FactRow.user_id == user_id) & this


async def _undone(session: AsyncSession, wanted: Change) -> Change:
    """Return the inverse of a stored change and delete it; an empty change if it is not stored."""
    is_undo = _is_undo(wanted.user_id, wanted.reverts_id)
    said = await session.scalar(delete(FactRow).where(is_undo).returning(FactRow.said))
    return CHANGE.validate_json(said).inverse if said else Change(user_id=wanted.user_id)


async def _add(session: AsyncSession, user_id: int, bottles: CellarItem, now: datetime) -> None:
    """Add bottles to a wine, or remove them; the count never falls below 0."""
    this = (BottleRow.user_id == user_id) & (BottleRow.key == strip_unstorable(bottles.key))
    new = BottleRow(user_id=user_id, key=strip_unstorable(bottles.key), count=0, wine={}, note="")
    row = await session.scalar(select(BottleRow).where(this)) or new
    session.add(row)
    # Bottles whose price was not told leave the stored one.
    prices = {key: value for key, value in row.wine.items() if key in {"price", "currency"}}
    kept = {} if "price" in bottles.wine else prices
    row.wine = {**(bottles.wine or row.wine), **kept}
    row.drink_from = bottles.drink_from or row.drink_from
    row.drink_until = bottles.drink_until or row.drink_until
    row.note = strip_unstorable(bottles.note) or row.note
    row.count, row.at = max(0, row.count + bottles.count), now
    await session.flush()


async def _forget(session: AsyncSession, user_id: int, user: str) -> None:
    """Delete all rows of a user.

    An admin's decision to allow or block them stays, or a blocked user could come back by it. Of an
    update that is done, the number stays; one that waits for its turn stays whole.
    """
    owned = await _owned(session, user_id, user)
    is_done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == DONE)
    await session.execute(update(UpdateRow).where(is_done).values(NO_PERSONAL_DATA))
    owned[UpdateRow] &= UpdateRow.state.not_in(["waiting", "answered"])
    nothing = {"is_reachable": None, "is_introduced": None}
    await session.execute(update(ChatRow).where(owned[ChatRow]).values(nothing))
    owned[ChatRow] &= ChatRow.access.is_(None)
    for model, is_theirs in owned.items():
        await session.execute(delete(model).where(is_theirs))


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

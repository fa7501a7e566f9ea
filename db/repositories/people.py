"""Read chats, conversations and what is remembered of users."""

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    String,
    case,
    delete,
    func,
    literal,
    select,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.turn import CellarItem, Change, Fact, FactKind, StoredMessage
from db.changes.cellar import ITEMS_ADAPTER, kept_import_condition
from db.changes.forgetting import find_owned_rows
from db.changes.memory import CHANGE_ADAPTER, undo_condition
from db.commit import Fence
from db.engine import SqlRepository, count_changed
from db.models import (
    Access,
    BottleRow,
    ChatRow,
    ConcernRow,
    DeletionRow,
    FactRow,
    KeptImportRow,
    MessageRow,
    OutboxRow,
    PressRow,
    ReminderRow,
    SettingRow,
    TasteRatingRow,
    TurnRow,
    UndoableChangeRow,
)
from db.repositories.cellars import CellarRepository
from db.statements import insert_new, to_record

NEWS: Final = "news"
"""The setting that is "off" for a user who wants no broadcasts."""
REMINDERS: Final = "reminders"
"""The setting that is "off" for a user who wants no reminders."""
SelectFacts = Select[str, str, str, datetime]
"""A query for the kind, the value and the original text of facts, and the time of each.

The text is blank for a fact that a user has chosen or rated, and not stated.
"""
ReadableRow = dict[str, object]
"""The values of a row by the names of its columns, as they can be exported."""


class ChatRepository(SqlRepository):
    """The chats: whether the bot can write to them, and which users may use the bot."""

    async def find_access(self, user_id: int) -> Access | None:
        """Return an admin's decision about a user, or None if there is none."""
        query = select(ChatRow.access).where(ChatRow.chat_id == user_id)
        access = await self._first_value(query)
        return cast("Access | None", access)

    async def find_current(self, chat_id: int) -> int:
        """Return the id of a chat, or of the supergroup that has replaced it."""
        query = select(ChatRow.migrated_to).where(ChatRow.chat_id == chat_id)
        new_id = await self._first_value(query)
        return new_id or chat_id

    async def is_reachable(self, chat_id: int) -> bool:
        """Return whether a chat is stored as reachable."""
        query = select(ChatRow.is_reachable).where(ChatRow.chat_id == chat_id)
        is_reachable = await self._first_value(query)
        return is_reachable is True

    async def list_recipients(self, *, only_allowed: bool = False) -> list[int]:
        """Return the private chats to which news can be sent.

        Blocked users and users who want no news are left out. If `only_allowed`, only the users
        whom an admin has allowed are returned.
        """
        if only_allowed:
            may_write = ChatRow.access == "allowed"
        else:
            may_write = ChatRow.access.is_distinct_from("blocked")
        unwilling = _select_unwilling(NEWS)
        recipients = (
            select(ChatRow.chat_id)
            .where(
                # The ids of private chats are positive.
                ChatRow.chat_id > 0,
                ChatRow.is_reachable.is_(True),
                may_write,
                ChatRow.chat_id.not_in(unwilling),
            )
            .order_by(ChatRow.chat_id)
        )
        return await self._values(recipients)


def _select_unwilling(setting: str) -> Select[int]:
    """Return the query for the users who have turned a setting off."""
    return select(SettingRow.user_id).where(
        SettingRow.name == setting,
        SettingRow.value == "off",
    )


class MessageRepository(SqlRepository):
    """The messages of conversations. A conversation is a chat, or a topic of it."""

    async def list_recent(
        self,
        chat_id: int,
        limit: int = 20,
        *,
        thread_id: int = 0,
        last_turn_id: int | None = None,
    ) -> list[StoredMessage]:
        """Return the last `limit` messages of a conversation, the oldest first.

        If a user replies to an older message, `last_turn_id` is the turn of that message. Then the
        messages of this turn come last, whatever their age.
        """
        newest = (
            select(MessageRow.__table__, TurnRow.user_id)
            .join(TurnRow, TurnRow.turn_id == MessageRow.turn_id, isouter=True)
            .where(_is_in(chat_id, thread_id))
            .order_by(MessageRow.id.desc())
            .limit(limit)
        )
        if last_turn_id is None:
            newest_first = await self._rows(newest)
        else:
            is_of_turn = MessageRow.turn_id == last_turn_id
            is_other = MessageRow.turn_id.is_distinct_from(last_turn_id)
            of_turn = await self._rows(newest.where(is_of_turn))
            others = await self._rows(newest.where(is_other))
            newest_first = [*of_turn, *others]
        oldest_first = reversed(newest_first[:limit])
        return [to_record(StoredMessage, row) for row in oldest_first]

    async def find_last_turn(self, chat_id: int, *, thread_id: int = 0) -> int | None:
        """Return the id of the last turn in the history of a conversation, or None."""
        newest = (
            select(MessageRow.turn_id)
            .where(_is_in(chat_id, thread_id))
            .order_by(MessageRow.id.desc())
            .limit(1)
        )
        return await self._first_value(newest)


def _is_in(chat_id: int, thread_id: int) -> ColumnElement[bool]:
    """Return the condition that a message belongs to a conversation."""
    is_in_chat = MessageRow.chat_id == chat_id
    is_in_topic = MessageRow.thread_id == thread_id
    return is_in_chat & is_in_topic


class MemoryRepository(CellarRepository):
    """The facts, concerns and cellars of users, and the export of all their data."""

    async def list_concerns(self, chat_id: int | None, user_id: int) -> frozenset[str]:
        """Return the concerns and allergies of a user in a chat, or in all chats for None.

        Those that have expired are left out.
        """
        never_expires = ConcernRow.until.is_(None)
        expires_later = ConcernRow.until > self.now()
        query = select(ConcernRow.name).where(
            ConcernRow.user_id == user_id,
            never_expires | expires_later,
        )
        if chat_id is not None:
            query = query.where(ConcernRow.chat_id == chat_id)
        names = await self._values(query)
        return frozenset(names)

    async def list_facts(self, user_id: int) -> list[Fact]:
        """Return a user's facts and settings, and the tastes that they liked more often than not.

        The oldest come first.
        """
        # The three are read by one statement, because this happens with every message.
        query = union_all(
            _select_stated(user_id),
            _select_settings(user_id),
            _select_liked(user_id),
        )
        facts: list[Fact] = []
        async with self.sessions() as session:
            rows = await session.execute(query.order_by("at"))
            for kind, value, original_text, _ in rows:
                fact = Fact(cast("FactKind", kind), value, original_text)
                facts.append(fact)
        return facts

    async def list_settings(self, names: Collection[str]) -> dict[int, dict[str, str]]:
        """Return the settings with these names of all users who have chosen them, by user."""
        query = select(SettingRow.__table__).where(SettingRow.name.in_(names))
        settings: defaultdict[int, dict[str, str]] = defaultdict(dict)
        for row in await self._rows(query):
            settings[row.user_id][row.name] = row.value
        return settings

    async def find_undoable(self, user_id: int, undo_id: int) -> Change | None:
        """Return a change that a user can undo, or None if it has expired or is another user's."""
        is_this = undo_condition(user_id, undo_id, self.now())
        query = select(UndoableChangeRow.change).where(is_this)
        change = await self._first_value(query)
        if change is None:
            return None
        return CHANGE_ADAPTER.validate_json(change)

    async def find_import(
        self, user_id: int, import_id: int
    ) -> Sequence[CellarItem] | None:
        """Return the items of a file that are kept until the user decides, or None."""
        is_this = kept_import_condition(user_id, import_id, self.now())
        query = select(KeptImportRow.items).where(is_this)
        items = await self._first_value(query)
        if items is None:
            return None
        return ITEMS_ADAPTER.validate_json(items)

    async def list_owners_to_remind(self, season: str) -> list[int]:
        """Return the users who own bottles and may be reminded of them.

        Users who were reminded in this season are left out.
        """
        unwilling = _select_unwilling(REMINDERS)
        reminded = select(ReminderRow.user_id).where(ReminderRow.season == season)
        blocked = select(ChatRow.chat_id).where(ChatRow.access == "blocked")
        owners = select(BottleRow.user_id).where(
            BottleRow.count > 0,
            BottleRow.user_id.not_in(unwilling),
            BottleRow.user_id.not_in(reminded),
            BottleRow.user_id.not_in(blocked),
        )
        return await self._values(owners.distinct())

    async def export(self, user_id: int, user: str) -> dict[str, list[ReadableRow]]:
        """Return all rows of a user, by table. `user` is the hash of the user in traces.

        Of groups, these are only the user's messages, the answers to them, and the feedback. Traces
        stay masked.
        """
        rows_by_table: dict[str, list[ReadableRow]] = {}
        async with self.sessions() as session:
            for model, conditions in find_owned_rows(user_id, user).items():
                table = model.__table__
                # The rows are kept by their keys, because a row may meet several conditions.
                rows: dict[object, RowMapping] = {}
                for is_theirs in conditions:
                    found = await session.execute(select(table).where(is_theirs))
                    for row in found.mappings():
                        key = tuple([row[column] for column in table.primary_key])
                        rows[key] = row
                readable = [_to_readable(row) for row in rows.values()]
                rows_by_table[table.name] = readable
        return rows_by_table


def _select_stated(user_id: int) -> SelectFacts:
    """Return the query for the facts that a user has stated."""
    # The kind is read as a text, because the other queries have kinds that are not in its column.
    kind = type_coerce(FactRow.kind, String)
    return select(kind, FactRow.value, FactRow.said, FactRow.at).where(
        FactRow.user_id == user_id
    )


def _select_settings(user_id: int) -> SelectFacts:
    """Return the query for the settings that a user has chosen, such as "language=de"."""
    setting = SettingRow.name + "=" + SettingRow.value
    return select(literal("setting"), setting, literal(""), SettingRow.at).where(
        SettingRow.user_id == user_id
    )


def _select_liked(user_id: int) -> SelectFacts:
    """Return the query for the tastes that a user has liked more often than not."""
    first_at = func.min(TasteRatingRow.at)
    vote = case((TasteRatingRow.is_liked, 1), else_=-1)
    return (
        select(literal("rated"), TasteRatingRow.taste, literal(""), first_at)
        .where(TasteRatingRow.user_id == user_id)
        .group_by(TasteRatingRow.taste)
        .having(func.sum(vote) > 0)
    )


class PressRepository(SqlRepository):
    """The presses that were carried out, on buttons that work only once."""

    async def is_claimed(
        self,
        chat_id: int,
        message_id: int,
        action: str,
    ) -> bool:
        """Return whether a turn has carried out a press."""
        query = select(PressRow.at).where(
            PressRow.chat_id == chat_id,
            PressRow.message_id == message_id,
            PressRow.action == action,
        )
        claimed_at = await self._first_value(query)
        return claimed_at is not None


class MemoryUpkeep(SqlRepository):
    """Store reminders and delete the traces of users, for background tasks."""

    async def save_reminder(
        self,
        user_id: int,
        fence: Fence,
        season: str,
        *,
        keys: Collection[str],
        year: int,
        messages: Sequence[OutboxRow],
    ) -> bool:
        """Queue the reminder of a user in a season, which names the items with these keys.

        Return False if it was queued before, or if the user's data were deleted after `fence` was
        made.
        """
        mark_bottles = (
            update(BottleRow)
            .where(BottleRow.user_id == user_id, BottleRow.key.in_(keys))
            .values(reminded_year=year)
        )
        async with self.sessions.begin() as session:
            await fence.lock(session)
            forgotten = await fence.check(session)
            if forgotten.user:
                return False
            is_first = await _claim_season(session, user_id, season)
            if not is_first:
                return False
            await session.execute(mark_bottles)
            session.add_all(messages)
        return True

    async def list_due_deletions(self) -> Sequence[DeletionRow]:
        """Return the deletions of exported traces that are due."""
        due = select(DeletionRow).where(DeletionRow.due_at <= self.now())
        return await self._values(due)

    async def postpone_deletion(self, deletion: DeletionRow, seconds: float) -> None:
        """Let a deletion be tried again in `seconds`."""
        later = self.now() + timedelta(seconds=seconds)
        postpone = (
            update(DeletionRow)
            .where(_is_same(deletion))
            .values(due_at=later, tries=deletion.tries + 1)
        )
        await self._write(postpone)

    async def finish_deletion(self, deletion: DeletionRow) -> None:
        """Remove a deletion that is complete, unless the user has asked for another meanwhile."""
        await self._write(delete(DeletionRow).where(_is_same(deletion)))
        await self.sessions.checkpoint()


def _is_same(deletion: DeletionRow) -> ColumnElement[bool]:
    """Return the condition that a deletion was not requested again since it was read."""
    is_of_user = DeletionRow.user == deletion.user
    is_of_same_time = DeletionRow.at == deletion.at
    return is_of_user & is_of_same_time


async def _claim_season(
    session: AsyncSession,
    user_id: int,
    season: str,
) -> bool:
    """Store that a user is reminded in a season. Return False if that was stored before."""
    first_reminder = ReminderRow(user_id=user_id, season=season)
    if await insert_new(session, first_reminder):
        return True
    claim = (
        update(ReminderRow)
        .where(ReminderRow.user_id == user_id, ReminderRow.season != season)
        .values(season=season)
    )
    return bool(await count_changed(session, claim))


def _to_readable(row: RowMapping) -> ReadableRow:
    """Return a row as it can be exported."""
    return {name: _unpack(value) for name, value in row.items()}


def _unpack(value: object) -> object:
    """Return a stored value as it can be exported. Compressed JSON is unpacked."""
    if not isinstance(value, bytes):
        return value
    try:
        unpacked = zlib.decompress(value)
        return json.loads(unpacked)
    except zlib.error:
        # It is a file that was not sent yet. Only its size is exported.
        return len(value)

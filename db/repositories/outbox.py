"""The outbox: messages that wait to be sent, and what is known of chats by sending to them.

The process that runs a turn sends the messages of the turn. The leading process sends those that
belong to no turn: broadcasts and reminders. Every method commits.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, distinct, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from db.changes.base import Transaction
from db.changes.chats import MigrateChat
from db.engine import SqlRepository, count_changed
from db.models import BroadcastRow, BroadcastState, ChatRow, OutboxRow
from db.traces import LOCAL_TRACE_ROWS

IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)
IS_SENDING: Final = BroadcastRow.state == BroadcastState.SENDING
BEGINS_MESSAGE: Final = OutboxRow.follows.is_(False)
SKIPPED: Final = "skipped"
"""The error of a part that was not sent because an earlier part of its message failed."""
NO_CONTENT: Final[dict[str, object]] = {
    "html": "",
    "buttons": [],
    "file": None,
}
"""Replaces the content of a message that need not be sent any more."""


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one must stop storing and sending.

    It is a BaseException, as CancelledError is, because no `except Exception` on the way may catch
    it. Only the life of an update (`bot/updates/life.py`) does.
    """


class Outbox(SqlRepository):
    """The messages of turns, and what sending them reveals about their chats."""

    async def record_delivery(
        self, message: OutboxRow, *, skip_rest: bool = False
    ) -> None:
        """Store the id or the error of a sent message, and delete its content.

        If `skip_rest`, the parts that continue the message are not sent any more.

        Raises:
            TurnTaken: another process has taken over the turn and recorded the delivery.
        """
        is_this = OutboxRow.id == message.id
        is_of_turn = message.update_id is not None
        is_reminder = message.broadcast_id is None and not is_of_turn
        async with self.sessions.begin() as session:
            if skip_rest:
                await _skip_rest(session, message)
            if is_reminder:
                # Nobody looks it up later.
                reminder = delete(OutboxRow).where(is_this, IS_UNSENT)
                await session.execute(reminder)
                return
            record = (
                update(OutboxRow)
                .where(is_this, IS_UNSENT)
                .values(
                    # It is another one if the group has become a supergroup meanwhile.
                    chat_id=message.chat_id,
                    message_id=message.message_id,
                    error=message.error,
                    **NO_CONTENT,
                )
            )
            is_recorded = await count_changed(session, record)
            # Only a message of a turn can be sent by two processes: one takes over from the other.
            if is_of_turn and not is_recorded:
                raise TurnTaken

    async def set_unreachable(self, chat_id: int) -> None:
        """Store that the bot cannot write to a chat: it is gone, or its user blocked the bot."""
        await self._upsert(ChatRow(chat_id=chat_id, is_reachable=False))

    async def migrate(self, chat_id: int, new_id: int) -> None:
        """Move the conversation and concerns of a group that became a supergroup to its new id."""
        now = self.now()
        async with self.sessions.begin() as session:
            transaction = Transaction(
                session=session,
                accepted_at=now,
                now=now,
                trace_rows=LOCAL_TRACE_ROWS,
                messages=[],
            )
            await MigrateChat(chat_id, new_id).apply(transaction)


async def _skip_rest(session: AsyncSession, message: OutboxRow) -> None:
    """Record the parts that continue a message as skipped, and delete their text.

    These are the rows after it, up to the next row that begins a message.
    """
    is_behind = OutboxRow.id > message.id
    if message.update_id is None:
        # A broadcast has messages for many chats.
        is_behind &= OutboxRow.chat_id == message.chat_id
    is_behind &= OutboxRow.update_id.is_not_distinct_from(message.update_id)
    is_behind &= OutboxRow.broadcast_id.is_not_distinct_from(message.broadcast_id)
    first_id = func.min(OutboxRow.id)
    next_message = select(first_id).where(is_behind, BEGINS_MESSAGE)
    next_id = await session.scalar(next_message)
    skip = update(OutboxRow).where(is_behind, OutboxRow.follows, IS_UNSENT)
    if next_id is not None:
        skip = skip.where(OutboxRow.id < next_id)
    await session.execute(skip.values(error=SKIPPED, **NO_CONTENT))


class Broadcasts(SqlRepository):
    """The messages that the leading process sends: broadcasts and reminders."""

    async def list_unsent(self, limit: int) -> Sequence[OutboxRow]:
        """Return the oldest unsent messages that belong to no turn."""
        unsent = (
            select(OutboxRow)
            .where(
                OutboxRow.update_id.is_(None),
                OutboxRow.turn_id.is_(None),
                IS_UNSENT,
            )
            .order_by(OutboxRow.id)
            .limit(limit)
        )
        return await self._values(unsent)

    async def list_delivered(self) -> Sequence[tuple[BroadcastRow, int, int]]:
        """Return the broadcasts that were sent to all their chats.

        Each has the numbers of chats that it reached and that it did not reach.
        """
        chat_count = func.count(distinct(OutboxRow.chat_id))
        has_failed = OutboxRow.error.is_not(None)
        query = select(
            func.count().filter(IS_UNSENT).label("unsent"),
            chat_count.label("chats"),
            chat_count.filter(has_failed).label("missed"),
        )
        sending = select(BroadcastRow).where(IS_SENDING)
        delivered: list[tuple[BroadcastRow, int, int]] = []
        for broadcast in await self._values(sending):
            is_copy = OutboxRow.broadcast_id == broadcast.id
            [counts] = await self._rows(query.where(is_copy))
            if counts.unsent:
                continue
            reached = counts.chats - counts.missed
            delivered.append((broadcast, reached, counts.missed))
        return delivered

    async def finish(self, broadcast_id: int, notice: Sequence[OutboxRow]) -> None:
        """Delete a broadcast with its messages, and queue a notice to its admin.

        Do nothing if another process has done so before.
        """
        is_this = BroadcastRow.id == broadcast_id
        finish = delete(BroadcastRow).where(is_this, IS_SENDING)
        async with self.sessions.begin() as session:
            is_finished = await count_changed(session, finish)
            if is_finished:
                session.add_all(notice)


class BroadcastRepository(SqlRepository):
    """The drafts of broadcasts."""

    async def get(self, broadcast_id: int) -> BroadcastRow | None:
        """Return a broadcast, or None if it was sent to all chats and deleted."""
        query = select(BroadcastRow).where(BroadcastRow.id == broadcast_id)
        return await self._first_value(query)

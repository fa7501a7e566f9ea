"""The commit of a turn: one transaction stores all that the turn has collected, or nothing.

The commit does not store what the user asked to forget while the turn ran, and carries out a press
only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.text import strip_unstorable
from agent.tracing.records import TraceRecord
from agent.turn import StoredMessage
from db.changes.base import StoredChange, Transaction
from db.models import (
    ChatRow,
    ForgottenChatRow,
    ForgottenUserRow,
    MessageRow,
    OutboxRow,
    PressRow,
    TurnRow,
)
from db.statements import insert_new, upsert
from db.traces import PreparedTrace, TraceRows

AT_ONCE: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Says what was forgotten after a turn was accepted. The turn must not store it again."""

    conversation: bool = False
    """Whether the conversation was forgotten."""
    user: bool = False
    """Whether everything about the user was forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Keeps a turn from storing data that the user has asked to forget in the meantime.

    It does so in whatever order the turn and the deletion are committed. On Postgres, one of them
    waits for the lock of the other until that is committed. SQLite has one writer at a time anyway.
    """

    accepted_at: datetime
    """When the update of the turn was accepted. Deletions before that do not concern it."""
    chat_id: int = 0
    thread_id: int = 0
    user: str = ""
    """The hash of the user in traces."""

    async def check(self, session: AsyncSession) -> Forgotten:
        """Return what was forgotten after the turn was accepted.

        Call `lock` before, in the same transaction.
        """
        chat = select(ForgottenChatRow.at).where(
            ForgottenChatRow.chat_id == self.chat_id,
            ForgottenChatRow.thread_id == self.thread_id,
        )
        user = select(ForgottenUserRow.at).where(ForgottenUserRow.user == self.user)
        both = select(chat.scalar_subquery(), user.scalar_subquery())
        result = await session.execute(both)
        chat_at, user_at = result.one()
        return Forgotten(
            conversation=self._is_older_than(chat_at),
            user=self._is_older_than(user_at),
        )

    def _is_older_than(self, forgotten_at: datetime | None) -> bool:
        """Return whether the turn was accepted before a deletion, if there was one."""
        return forgotten_at is not None and self.accepted_at <= forgotten_at

    async def lock(
        self, session: AsyncSession, changes: Sequence[StoredChange] = ()
    ) -> None:
        """Take the locks of this conversation and user until the transaction ends.

        Ordinary turns share the locks. A transaction whose `changes` forget something takes them
        alone: it waits until the others have ended, and later ones wait for it.
        """
        if session.get_bind().dialect.name == "sqlite":
            return
        lock = func.pg_advisory_xact_lock_shared
        if any(change.forgets for change in changes):
            lock = func.pg_advisory_xact_lock
        # The keys of such locks are numbers, so each is a hash of a name, with the seed 0.
        chat = func.hashtextextended(f"forget {self.chat_id}.{self.thread_id}", 0)
        user = func.hashtextextended(f"forget {self.user}", 0)
        await session.execute(select(lock(chat), lock(user)))


@dataclass(frozen=True, slots=True)
class Press:
    """A press on a button that may be pressed once."""

    chat_id: int
    message_id: int
    action: str
    """The name of the button, or of the group of buttons of which one may be pressed."""


@dataclass(slots=True, kw_only=True)
class Commit:
    """Holds what a turn has collected.

    `carry_out` stores it, and removes from it what may not be stored. Afterwards the messages of
    `outgoing` are to be sent.
    """

    fence: Fence
    record: TurnRow | None = None
    history: tuple[StoredMessage, ...] = ()
    """The question and its answer, to be stored in the conversation."""
    trace: TraceRecord | None = None
    prepared_trace: PreparedTrace | None = None
    """The trace as it will be stored, after `prepare`."""
    press: Press | None = None
    """The press that the turn carries out."""
    changes: list[StoredChange] = field(default_factory=list)
    messages: list[OutboxRow] = field(default_factory=list)
    added: Sequence[OutboxRow] = ()
    """The messages that the changes added when they were last stored."""

    @property
    def outgoing(self) -> list[OutboxRow]:
        """Return the messages to send."""
        return [*self.messages, *self.added]

    async def prepare(self, rows: TraceRows) -> None:
        """Mask and compress the trace.

        This takes a while, so call it before the transaction: other writers wait for that.
        """
        self.prepared_trace = await rows.prepare(self.trace)

    def make_transaction(
        self, session: AsyncSession, now: datetime, rows: TraceRows
    ) -> Transaction:
        """Return the transaction in which `carry_out` stores everything."""
        return Transaction(
            session=session,
            accepted_at=self.fence.accepted_at,
            now=now,
            trace_rows=rows,
            messages=[],
        )

    async def carry_out(
        self, transaction: Transaction, *, trace_delay: timedelta = AT_ONCE
    ) -> None:
        """Store everything but the messages. The trace may be exported after `trace_delay`."""
        session = transaction.session
        self.added = transaction.messages
        await self.fence.lock(session, self.changes)
        if self.press is not None:
            is_first = await _claim(transaction, self.press)
            if not is_first:
                self._drop_all()
                return
        forgotten = await self.fence.check(session)
        if forgotten.user:
            self._drop_personal()
        if forgotten.conversation:
            self.history = ()
        await self._save_history(transaction)
        if self.record is not None:
            await upsert(session, self.record)
        due_at = transaction.now + trace_delay
        await transaction.trace_rows.save(session, self.prepared_trace, due_at)
        for change in self.changes:
            await change.apply(transaction)

    def _drop_all(self) -> None:
        """Drop everything, because an earlier turn has carried out the same press."""
        self._drop_record()
        self.changes.clear()
        self.messages.clear()

    def _drop_personal(self) -> None:
        """Drop what would be stored about the user.

        The messages are still sent, but do not refer to the turn, which is not stored.
        """
        self._drop_record()
        kept = [change for change in self.changes if not change.is_personal]
        self.changes = kept
        for message in self.messages:
            message.turn_id = None

    def _drop_record(self) -> None:
        """Drop the turn itself, its messages in the conversation, and its trace."""
        self.record = None
        self.history = ()
        self.trace = None
        self.prepared_trace = None

    async def _save_history(self, transaction: Transaction) -> None:
        """Store the question and the answer in the conversation of the chat.

        If the group was replaced by a supergroup in the meantime, store them there.
        """
        if not self.history or self.record is None:
            return
        session = transaction.session
        chat_id = await _find_current_chat(session, self.record.chat_id)
        rows: list[MessageRow] = []
        for message in self.history:
            wine_ids = [strip_unstorable(wine_id) for wine_id in message.wine_ids]
            row = MessageRow(
                chat_id=chat_id,
                role=message.role,
                content=strip_unstorable(message.content),
                wine_ids=wine_ids,
                created_at=transaction.now,
                turn_id=self.record.turn_id,
                thread_id=message.thread_id,
                attachment=strip_unstorable(message.attachment),
                answer=strip_unstorable(message.answer),
            )
            rows.append(row)
        await insert_new(session, *rows)


async def _find_current_chat(session: AsyncSession, chat_id: int) -> int:
    """Return the id of a chat, or of the supergroup that has replaced it."""
    chat = await session.get(ChatRow, chat_id)
    if chat is None or chat.migrated_to is None:
        return chat_id
    return chat.migrated_to


async def _claim(transaction: Transaction, press: Press) -> bool:
    """Store a press. Return False if an earlier turn has stored it."""
    row = PressRow(
        chat_id=press.chat_id,
        message_id=press.message_id,
        action=press.action,
        at=transaction.now,
    )
    inserted_count = await insert_new(transaction.session, row)
    return inserted_count > 0

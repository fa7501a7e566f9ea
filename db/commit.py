"""The commit of a turn: one transaction stores all that the turn has collected, or nothing.

It drops what the user asked to forget while the turn ran, and it carries out a press only once.
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
    """Names what was deleted since a turn was accepted, so that it must not be stored again."""

    conversation: bool = False
    user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Whose data a turn would store, and when it was accepted. `user` is a hash in traces.

    What was forgotten since is not stored, in whatever order the two are committed. On Postgres,
    locks that last until the commit put the two in order; SQLite has one writer at a time.
    """

    accepted_at: datetime
    chat_id: int = 0
    thread_id: int = 0
    user: str = ""

    async def check(self, session: AsyncSession) -> Forgotten:
        """Return what was forgotten since; call `lock` in the same transaction before."""
        chat = select(ForgottenChatRow.at).where(
            ForgottenChatRow.chat_id == self.chat_id,
            ForgottenChatRow.thread_id == self.thread_id,
        )
        user = select(ForgottenUserRow.at).where(ForgottenUserRow.user == self.user)
        both = select(chat.scalar_subquery(), user.scalar_subquery())
        row = (await session.execute(both)).one()
        chat_at, user_at = row
        return Forgotten(
            conversation=self._is_before(chat_at),
            user=self._is_before(user_at),
        )

    def _is_before(self, forgotten_at: datetime | None) -> bool:
        return forgotten_at is not None and self.accepted_at <= forgotten_at

    async def lock(
        self, session: AsyncSession, changes: Sequence[StoredChange] = ()
    ) -> None:
        """Take the locks of this conversation and user until the transaction ends.

        Turns share them. A transaction whose `changes` forget takes them alone: it waits for the
        others to end, and they wait for it.
        """
        if session.get_bind().dialect.name == "sqlite":
            return
        lock = func.pg_advisory_xact_lock_shared
        if any(change.forgets for change in changes):
            lock = func.pg_advisory_xact_lock
        chat = func.hashtextextended(f"forget {self.chat_id}.{self.thread_id}", 0)
        user = func.hashtextextended(f"forget {self.user}", 0)
        await session.execute(select(lock(chat), lock(user)))


@dataclass(frozen=True, slots=True)
class Press:
    """A press on a button that may be pressed once; `action` names the button, or its group."""

    chat_id: int
    message_id: int
    action: str


@dataclass(slots=True, kw_only=True)
class Commit:
    """Holds what a turn has collected.

    `carry_out` removes from it what is not stored. Afterwards `outgoing` are to be sent.
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
    """Messages that the changes have added, in the last attempt to store them."""

    @property
    def outgoing(self) -> list[OutboxRow]:
        """Return the messages to send."""
        return [*self.messages, *self.added]

    async def prepare(self, rows: TraceRows) -> None:
        """Mask and compress the trace; call this before the transaction, for which others wait."""
        self.prepared_trace = await rows.prepare(self.trace)

    async def carry_out(
        self, transaction: Transaction, *, trace_delay: timedelta = AT_ONCE
    ) -> None:
        """Store everything but the messages; the trace is exported after `trace_delay`."""
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
        """Drop everything: the press was carried out by an earlier turn."""
        self._drop_record()
        self.changes.clear()
        self.messages.clear()

    def _drop_personal(self) -> None:
        """Drop what is stored of a user; the messages are sent, and refer to no turn."""
        self._drop_record()
        self.changes[:] = [change for change in self.changes if not change.is_personal]
        for message in self.messages:
            message.turn_id = None

    def _drop_record(self) -> None:
        self.record = None
        self.history = ()
        self.trace = None
        self.prepared_trace = None

    async def _save_history(self, transaction: Transaction) -> None:
        """Store the messages of the turn, under the current id of a group that was migrated."""
        if not self.history or self.record is None:
            return
        session = transaction.session
        chat_id = await _find_current_chat(session, self.record.chat_id)
        rows: list[MessageRow] = []
        for message in self.history:
            row = MessageRow(
                chat_id=chat_id,
                role=message.role,
                content=strip_unstorable(message.content),
                wine_ids=[strip_unstorable(wine_id) for wine_id in message.wine_ids],
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
    """Store a press; return False if it was stored before."""
    row = PressRow(
        chat_id=press.chat_id,
        message_id=press.message_id,
        action=press.action,
        at=transaction.now,
    )
    return bool(await insert_new(transaction.session, row))

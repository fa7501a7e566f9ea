"""Forget conversations and users, for good: turns that still run store nothing afterwards.

A deletion stores when it was asked for. Every commit of a turn that was accepted before that drops
what it would store, in whatever order the two are committed. On Postgres, locks that last until the
commit put the two in order; SQLite has one writer at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, bindparam, delete, func, or_, select, union, update
from sqlalchemy.ext.asyncio import AsyncSession

from db.changes.base import StoredChange, Transaction
from db.models import (
    Base,
    BottleRow,
    BroadcastRow,
    ChatRow,
    ConcernRow,
    DeletionRow,
    DrinkRow,
    FactRow,
    ForgottenChatRow,
    ForgottenUserRow,
    KeptImportRow,
    MessageRow,
    OutboxRow,
    PressRow,
    ReferralRow,
    ReferralState,
    ReminderRow,
    ScoreRow,
    SettingRow,
    TasteRatingRow,
    TraceRow,
    TurnRow,
    UndoableChangeRow,
    UpdateRow,
    upsert,
)

WAITING: Final = "waiting"
COMMITTED: Final = "answered"  # the word in existing databases
"""The state of an update whose answer, or apology, is stored."""
IS_UNFINISHED: Final = UpdateRow.state.in_(
    bindparam("unfinished", [WAITING, COMMITTED], expanding=True, literal_execute=True)
)
"""With literals in the statement, so that SQLite knows the partial index of these rows."""
DONE: Final = "done"
"""The state of an update whose turn has ended."""
MEMORY: Final = (
    *(FactRow, SettingRow, ConcernRow, TasteRatingRow, ReminderRow),
    *(BottleRow, DrinkRow, UndoableChangeRow, KeptImportRow),
)
"""The tables of what is remembered of a user."""
NO_PERSONAL_DATA: Final[dict[str, object]] = {
    "chat_id": 0,
    "lane": None,
    "user_id": None,
    "message_id": None,
    "payload": {},
    "calls": [],
    "error": None,
}
"""Columns that anonymise an update. Its id stays, since Telegram may deliver it again."""


@dataclass(frozen=True, slots=True)
class ForgetConversation(StoredChange):
    """Deletes the messages of a chat, or of a topic of it."""

    chat_id: int
    thread_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Store the time of the deletion, and delete the messages."""
        at = transaction.accepted_at  # what is asked later is not forgotten
        key = {"chat_id": self.chat_id, "thread_id": self.thread_id}
        await upsert(transaction.session, ForgottenChatRow(**key, at=at))
        is_here = (MessageRow.chat_id == self.chat_id) & (MessageRow.thread_id == self.thread_id)
        await transaction.session.execute(delete(MessageRow).where(is_here))


@dataclass(frozen=True, slots=True)
class ForgetUser(StoredChange):
    """Deletes all data of a user; `user` is their hash in traces.

    An admin's decision stays, so that a blocked user cannot return by deleting their data. The ids
    of done updates stay too, and updates that still wait for their turn stay unchanged. Traces that
    were sent to a server are deleted there by a background task.
    """

    user_id: int
    user: str

    async def apply(self, transaction: Transaction) -> None:
        """Store the time of the deletion, and delete or anonymise the rows."""
        session, at = transaction.session, transaction.accepted_at
        await upsert(session, ForgottenUserRow(user=self.user, at=at))
        # This waits for commits that pass a message on, and lets no other one begin.
        referrals = update(ReferralRow).where(ReferralRow.user_id == self.user_id)
        await session.execute(referrals.values(state=ReferralState.ENDED))
        owned = find_owned_rows(self.user_id, self.user)
        is_done = (UpdateRow.chat_id == self.user_id) & (UpdateRow.state == DONE)
        await session.execute(update(UpdateRow).where(is_done).values(NO_PERSONAL_DATA))
        # A turn that still runs or is being sent keeps its updates and messages until its end.
        unfinished = select(UpdateRow.update_id).where(IS_UNFINISHED)
        begun_by = func.coalesce(UpdateRow.turn_id, UpdateRow.update_id)
        owned[UpdateRow] &= begun_by.not_in(unfinished)
        is_being_sent = OutboxRow.update_id.in_(unfinished)
        released = update(OutboxRow).where(owned[OutboxRow], is_being_sent)
        await session.execute(released.values(turn_id=None, referral_id=None))
        owned[OutboxRow] &= OutboxRow.update_id.is_(None) | ~is_being_sent
        unknown = {"is_reachable": None, "is_introduced": None}
        await session.execute(update(ChatRow).where(owned[ChatRow]).values(unknown))
        owned[ChatRow] &= ChatRow.access.is_(None)
        for model, is_owned in owned.items():
            await session.execute(delete(model).where(is_owned))
        now = transaction.now
        await upsert(session, DeletionRow(user=self.user, at=now, due_at=now, tries=0))


@dataclass(frozen=True, slots=True)
class ForgetMemory(StoredChange):
    """Deletes what is remembered of a user, such as their facts and cellar, and nothing else."""

    user_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Delete the rows."""
        for model in MEMORY:
            await transaction.session.execute(delete(model).where(model.user_id == self.user_id))


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Names what was deleted since a turn was accepted, so that it must not be stored again."""

    conversation: bool = False
    user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Whose data a turn would store, and when it was accepted. `user` is a hash in traces."""

    accepted_at: datetime
    chat_id: int = 0
    thread_id: int = 0
    user: str = ""

    async def check(self, session: AsyncSession) -> Forgotten:
        """Return what was forgotten since; call `lock` in the same transaction before."""
        chat = select(ForgottenChatRow.at).where(
            ForgottenChatRow.chat_id == self.chat_id, ForgottenChatRow.thread_id == self.thread_id
        )
        user = select(ForgottenUserRow.at).where(ForgottenUserRow.user == self.user)
        both = select(chat.scalar_subquery(), user.scalar_subquery())
        chat_at, user_at = (await session.execute(both)).one()
        return Forgotten(self._is_before(chat_at), self._is_before(user_at))

    def _is_before(self, forgotten_at: datetime | None) -> bool:
        return forgotten_at is not None and self.accepted_at <= forgotten_at

    async def lock(self, session: AsyncSession, changes: Sequence[StoredChange] = ()) -> None:
        """Take the locks of this conversation and user until the transaction ends.

        Turns share them. A transaction whose `changes` forget takes them alone: it waits for the
        others to end, and they wait for it.
        """
        if session.get_bind().dialect.name == "sqlite":
            return
        forgets = any(isinstance(change, ForgetConversation | ForgetUser) for change in changes)
        lock = func.pg_advisory_xact_lock if forgets else func.pg_advisory_xact_lock_shared
        names = (f"forget {self.chat_id}.{self.thread_id}", f"forget {self.user}")
        keys = [func.hashtextextended(name, 0) for name in names]
        await session.execute(select(*(lock(key) for key in keys)))


def find_owned_rows(user_id: int, user: str) -> dict[type[Base], ColumnElement[bool]]:
    """Return each table's condition for a user's rows; referenced tables come last."""
    is_turn = or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    turns = select(TurnRow.turn_id).where(is_turn)
    referrals = select(ReferralRow.id).where(ReferralRow.user_id == user_id)
    traces = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    is_trace = _is_any(TraceRow, TraceRow.user == user, TraceRow.trace_id.in_(traces))
    is_unanswered = (UpdateRow.state != DONE) & (UpdateRow.user_id == user_id)
    return {
        MessageRow: _is_any(
            MessageRow, MessageRow.chat_id == user_id, MessageRow.turn_id.in_(turns)
        ),
        OutboxRow: _is_any(
            OutboxRow,
            OutboxRow.chat_id == user_id,
            OutboxRow.turn_id.in_(turns),
            OutboxRow.referral_id.in_(referrals),
        ),
        ReferralRow: ReferralRow.user_id == user_id,
        ScoreRow: ScoreRow.trace_id.in_(select(TraceRow.trace_id).where(is_trace)),
        TraceRow: is_trace,
        UpdateRow: or_(UpdateRow.chat_id == user_id, is_unanswered),
        **{model: model.user_id == user_id for model in MEMORY},
        BroadcastRow: BroadcastRow.created_by == user_id,
        PressRow: PressRow.chat_id == user_id,
        ForgottenChatRow: ForgottenChatRow.chat_id == user_id,
        ChatRow: ChatRow.chat_id == user_id,
        TurnRow: TurnRow.turn_id.in_(turns),
    }


def _is_any(model: type[Base], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a row meets one of several, for each of which there is an index.

    Joined by OR, Postgres would read the whole table.
    """
    key = model.__table__.primary_key.columns[0]
    return key.in_(union(*(select(key).where(condition) for condition in conditions)))

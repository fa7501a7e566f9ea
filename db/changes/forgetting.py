"""Forget conversations and users, so that turns which still run do not store them again.

A deletion stores the time at which it was asked for. If a turn was accepted before that time, the
fence of its commit (`db/commit.py`) drops what it would store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    true,
    update,
)
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
    ReservationRow,
    ScoreRow,
    SettingRow,
    TasteRatingRow,
    TraceRow,
    TurnRow,
    UndoableChangeRow,
    UpdateRow,
    UpdateState,
)
from db.statements import upsert

IS_UNFINISHED: Final = UpdateRow.state.in_(
    bindparam(
        "unfinished",
        [UpdateState.WAITING, UpdateState.ANSWERED],
        expanding=True,
        literal_execute=True,
    )
)
"""The condition for updates whose turns have not ended.

The states are literals in the statement, because SQLite uses the partial index of these rows only
then.
"""
MEMORY: Final = (
    FactRow,
    SettingRow,
    ConcernRow,
    TasteRatingRow,
    ReminderRow,
    BottleRow,
    DrinkRow,
    UndoableChangeRow,
    KeptImportRow,
)
"""The tables with what the bot remembers about a user."""
Condition = ColumnElement[bool]
OwnedRows = Mapping[type[Base], Sequence[Condition]]
"""The conditions for the rows of a user in each table. A row that meets one of them is theirs."""
NO_PERSONAL_DATA: Final[dict[str, object]] = {
    "chat_id": 0,
    "lane": None,
    "user_id": None,
    "message_id": None,
    "payload": {},
    "calls": [],
    "error": None,
}
"""The values that make an update anonymous. Its id stays, as Telegram may deliver it again."""


@dataclass(frozen=True, slots=True)
class ForgetConversation(StoredChange):
    """Deletes the messages of a chat, or those of one topic in it."""

    forgets: ClassVar[bool] = True

    chat_id: int
    thread_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Store the time of the deletion, and delete the messages."""
        session = transaction.session
        forgotten = ForgottenChatRow(
            chat_id=self.chat_id,
            thread_id=self.thread_id,
            # The present time would be wrong: what came after the wish for the deletion is kept.
            at=transaction.accepted_at,
        )
        await upsert(session, forgotten)
        delete_messages = delete(MessageRow).where(
            MessageRow.chat_id == self.chat_id,
            MessageRow.thread_id == self.thread_id,
        )
        await session.execute(delete_messages)


@dataclass(frozen=True, slots=True)
class ForgetUser(StoredChange):
    """Deletes all data of a user.

    The decision of an admin stays, so that a blocked user cannot return by deleting their data. The
    ids of done updates stay too, and updates that still wait for their turn stay unchanged. A
    background task deletes the traces that were sent to Langfuse.
    """

    forgets: ClassVar[bool] = True

    user_id: int
    user: str
    """The hash of the user in traces."""

    async def apply(self, transaction: Transaction) -> None:
        """Store the time of the deletion, and delete or anonymise the rows."""
        session = transaction.session
        # The present time would be wrong: what came after the wish for the deletion is kept.
        forgotten = ForgottenUserRow(user=self.user, at=transaction.accepted_at)
        await upsert(session, forgotten)
        # This waits for commits that pass a message on to the staff, and ends the conversation, so
        # that no later commit passes one on.
        referrals = update(ReferralRow).where(ReferralRow.user_id == self.user_id)
        await session.execute(referrals.values(state=ReferralState.ENDED))
        owned = find_owned_rows(self.user_id, self.user)
        await self._anonymise(session, owned)
        await self._delete(session, owned)
        now = transaction.now
        deletion = DeletionRow(user=self.user, at=now, due_at=now, tries=0)
        await upsert(session, deletion)

    async def _delete(self, session: AsyncSession, owned: OwnedRows) -> None:
        """Delete the rows that are no longer needed."""
        # While a turn runs or its answer is being sent, its updates and messages are still needed.
        unfinished = select(UpdateRow.update_id).where(IS_UNFINISHED)
        begun_by = func.coalesce(UpdateRow.turn_id, UpdateRow.update_id)
        # For NOT IN instead of EXISTS, Postgres would read the whole table.
        is_being_sent = unfinished.where(UpdateRow.update_id == OutboxRow.update_id)
        may_delete: dict[type[Base], Condition] = {
            UpdateRow: begun_by.not_in(unfinished),
            OutboxRow: ~is_being_sent.exists(),
            ChatRow: ChatRow.access.is_(None),
        }
        for model, conditions in owned.items():
            row_may_go = may_delete.get(model, true())
            for is_theirs in conditions:
                delete_theirs = delete(model).where(is_theirs, row_may_go)
                await session.execute(delete_theirs)

    async def _anonymise(self, session: AsyncSession, owned: OwnedRows) -> None:
        """Remove from the rows that are not deleted what says whose they were."""
        done = update(UpdateRow).where(
            UpdateRow.chat_id == self.user_id,
            UpdateRow.state == UpdateState.DONE,
        )
        await session.execute(done.values(NO_PERSONAL_DATA))
        unfinished = select(UpdateRow.update_id).where(IS_UNFINISHED)
        is_being_sent = OutboxRow.update_id.in_(unfinished)
        for is_theirs in owned[OutboxRow]:
            # The rows to which the message refers are deleted before it is sent.
            release = update(OutboxRow).where(is_theirs, is_being_sent)
            await session.execute(release.values(turn_id=None, referral_id=None))
        chat = update(ChatRow).where(ChatRow.chat_id == self.user_id)
        await session.execute(chat.values(is_reachable=None, is_introduced=None))


@dataclass(frozen=True, slots=True)
class ForgetMemory(StoredChange):
    """Deletes only what the bot remembers about a user, such as their facts and their cellar."""

    user_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Delete the rows."""
        for model in MEMORY:
            delete_theirs = delete(model).where(model.user_id == self.user_id)
            await transaction.session.execute(delete_theirs)


def find_owned_rows(user_id: int, user: str) -> OwnedRows:
    """Return the conditions for the rows of a user in each table.

    Tables to which others refer come after those others, so the rows can be deleted in this order.
    Use each condition in a statement of its own, which uses an index. If the conditions were joined
    by OR or UNION, Postgres would read whole tables.
    """
    is_turn = or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    is_unanswered = and_(
        UpdateRow.user_id == user_id,
        UpdateRow.state != UpdateState.DONE,
    )
    return {
        **_find_messages(user_id, is_turn),
        ReferralRow: (ReferralRow.user_id == user_id,),
        ReservationRow: (ReservationRow.user_id == user_id,),
        **_find_traces(user_id, user),
        UpdateRow: (
            UpdateRow.chat_id == user_id,
            is_unanswered,
        ),
        **{model: (model.user_id == user_id,) for model in MEMORY},
        BroadcastRow: (BroadcastRow.created_by == user_id,),
        PressRow: (PressRow.chat_id == user_id,),
        ForgottenChatRow: (ForgottenChatRow.chat_id == user_id,),
        ChatRow: (ChatRow.chat_id == user_id,),
        TurnRow: (is_turn,),
    }


def _find_messages(user_id: int, is_turn: Condition) -> OwnedRows:
    """Return the conditions for the messages of a user's turns, sent and yet to be sent."""
    turns = select(TurnRow.turn_id).where(is_turn)
    referrals = select(ReferralRow.id).where(ReferralRow.user_id == user_id)
    return {
        MessageRow: (
            MessageRow.chat_id == user_id,
            MessageRow.turn_id.in_(turns),
        ),
        OutboxRow: (
            OutboxRow.chat_id == user_id,
            OutboxRow.turn_id.in_(turns),
            OutboxRow.referral_id.in_(referrals),
        ),
    }


def _find_traces(user_id: int, user: str) -> OwnedRows:
    """Return the conditions for the traces of a user, and for their scores."""
    traces_of_turns = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    traces = select(TraceRow.trace_id).where(TraceRow.user == user)
    return {
        ScoreRow: (
            ScoreRow.trace_id.in_(traces),
            ScoreRow.trace_id.in_(traces_of_turns),
        ),
        TraceRow: (
            TraceRow.user == user,
            TraceRow.trace_id.in_(traces_of_turns),
        ),
    }

"""Changes of broadcasts, the messages of admins to all users."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from sqlalchemy import update

from agent.text import strip_unstorable
from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import BroadcastRow, BroadcastState, OutboxRow
from db.statements import insert_new


@dataclass(frozen=True, slots=True)
class DraftBroadcast(StoredChange):
    """Stores a draft that its admin is asked to confirm."""

    broadcast_id: int
    text: str
    by: int

    async def apply(self, transaction: Transaction) -> None:
        """Store the draft."""
        draft = BroadcastRow(
            id=self.broadcast_id,
            text=strip_unstorable(self.text),
            created_by=self.by,
            state=BroadcastState.DRAFT,
        )
        await insert_new(transaction.session, draft)


@dataclass(frozen=True, slots=True)
class SendBroadcast(StoredChange):
    """Queues the messages of a confirmed draft for the leading process."""

    broadcast_id: int
    messages: Sequence[OutboxRow]
    is_personal: ClassVar[bool] = False

    async def apply(self, transaction: Transaction) -> None:
        """Queue the messages, unless that was done before."""
        is_draft = (BroadcastRow.id == self.broadcast_id) & (
            BroadcastRow.state == BroadcastState.DRAFT
        )
        begin = (
            update(BroadcastRow).where(is_draft).values(state=BroadcastState.SENDING)
        )
        if not await count_changed(transaction.session, begin):
            return
        for message in self.messages:
            # Clear an id left by a failed commit: another message may have it by now.
            message.id = cast("int", None)
            message.broadcast_id = self.broadcast_id
        transaction.session.add_all(self.messages)

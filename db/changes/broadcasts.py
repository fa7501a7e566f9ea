"""Changes of broadcasts, the messages of admins to all users."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import update

from agent.text import strip_unstorable
from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import BroadcastRow, BroadcastState, OutboxRow
from db.statements import insert_new


@dataclass(frozen=True, slots=True)
class DraftBroadcast(StoredChange):
    """Stores the draft of a broadcast, which its admin is then asked to confirm."""

    broadcast_id: int
    text: str
    admin_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Store the draft."""
        draft = BroadcastRow(
            id=self.broadcast_id,
            text=strip_unstorable(self.text),
            created_by=self.admin_id,
            state=BroadcastState.DRAFT,
        )
        await insert_new(transaction.session, draft)


@dataclass(frozen=True, slots=True)
class SendBroadcast(StoredChange):
    """Queues the messages of a confirmed draft. The leading process sends them."""

    is_personal: ClassVar[bool] = False

    broadcast_id: int
    messages: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """Queue the messages, unless that was done before."""
        session = transaction.session
        is_this = BroadcastRow.id == self.broadcast_id
        is_draft = BroadcastRow.state == BroadcastState.DRAFT
        begin_sending = (
            update(BroadcastRow)
            .where(is_this, is_draft)
            .values(state=BroadcastState.SENDING)
        )
        has_begun = await count_changed(session, begin_sending)
        if not has_begun:
            return
        for message in self.messages:
            message.drop_id()
            message.broadcast_id = self.broadcast_id
        session.add_all(self.messages)

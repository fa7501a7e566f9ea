"""Changes of referrals, the conversations of users with the staff of the shop.

The commit decides whether a message is passed on: it reaches the other side only if the referral is
still open then. The same commit tells the writer whether the message was passed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, func, select, update

from agent.text import strip_unstorable
from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import OutboxRow, ReferralRow, ReferralState
from db.statements import upsert

IS_DRAFT: Final = ReferralRow.state == ReferralState.DRAFT
IS_OPEN: Final = ReferralRow.state == ReferralState.OPEN
MAX_OPEN: Final = 3
"""The most open referrals of a user."""
MAX_MESSAGES: Final = 200
"""The most messages that are passed on in a referral."""


@dataclass(frozen=True, slots=True)
class DraftReferral(StoredChange):
    """Stores the draft that a user is asked to confirm, instead of an earlier one."""

    referral_id: int
    user_id: int
    text: str

    async def apply(self, transaction: Transaction) -> None:
        """Store the draft."""
        is_theirs = ReferralRow.user_id == self.user_id
        drop_earlier = delete(ReferralRow).where(is_theirs, IS_DRAFT)
        await transaction.session.execute(drop_earlier)
        draft = ReferralRow(
            id=self.referral_id,
            user_id=self.user_id,
            state=ReferralState.DRAFT,
            text=strip_unstorable(self.text),
            at=transaction.now,
        )
        await upsert(transaction.session, draft)


@dataclass(frozen=True, slots=True)
class DropReferral(StoredChange):
    """Deletes a draft that the user does not want to send."""

    referral_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Delete the draft."""
        is_this = ReferralRow.id == self.referral_id
        drop = delete(ReferralRow).where(is_this, IS_DRAFT)
        await transaction.session.execute(drop)


@dataclass(frozen=True, slots=True)
class OpenReferral(StoredChange):
    """Opens a referral: sends the user's draft to the staff.

    `messages` are for both sides. If the user has too many open referrals, `refusal` is sent to the
    user instead. `name` is the user's name, or "" if the staff may not see it.
    """

    referral_id: int
    user_id: int
    name: str
    messages: Sequence[OutboxRow]
    refusal: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """Open the referral, unless the user has too many or the draft was sent before."""
        session = transaction.session
        is_theirs = ReferralRow.user_id == self.user_id
        count_open = select(func.count()).where(is_theirs, IS_OPEN)
        open_count = await session.scalar(count_open)
        if open_count is not None and open_count >= MAX_OPEN:
            transaction.messages.extend(self.refusal)
            return
        open_draft = (
            update(ReferralRow)
            .where(ReferralRow.id == self.referral_id, IS_DRAFT)
            .values(
                state=ReferralState.OPEN,
                name=strip_unstorable(self.name),
                # The messages have the text now, and it is not stored twice.
                text="",
                at=transaction.now,
            )
        )
        is_opened = await count_changed(session, open_draft)
        if is_opened:
            transaction.messages.extend(self.messages)


@dataclass(frozen=True, slots=True)
class PassOn(StoredChange):
    """Passes a message on to the other side.

    `messages` are for both sides. If the referral has ended, `refusal` is sent to the writer
    instead.
    """

    # The commit need not check whether the user's data were deleted meanwhile: the row of the
    # referral is then gone, too, and nothing is passed on.
    is_personal = False

    referral_id: int
    messages: Sequence[OutboxRow]
    refusal: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """Pass the message on if the referral is still open and has not too many messages."""
        is_this = ReferralRow.id == self.referral_id
        has_room = ReferralRow.messages < MAX_MESSAGES
        count_message = (
            update(ReferralRow)
            .where(is_this, IS_OPEN, has_room)
            .values(messages=ReferralRow.messages + 1, at=transaction.now)
        )
        is_counted = await count_changed(transaction.session, count_message)
        if is_counted:
            transaction.messages.extend(self.messages)
        else:
            transaction.messages.extend(self.refusal)


@dataclass(frozen=True, slots=True)
class EndReferral(StoredChange):
    """Ends a referral. `messages` tell both sides."""

    is_personal = False

    referral_id: int
    messages: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """End the referral, unless the other side has ended it before."""
        end = (
            update(ReferralRow)
            .where(ReferralRow.id == self.referral_id, IS_OPEN)
            .values(state=ReferralState.ENDED)
        )
        has_ended = await count_changed(transaction.session, end)
        if has_ended:
            transaction.messages.extend(self.messages)

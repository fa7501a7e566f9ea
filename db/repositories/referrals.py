"""Read referrals, and report those of their messages that may not have arrived."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from db.changes.forgetting import IS_UNFINISHED
from db.engine import SqlRepository, count_changed
from db.models import OutboxRow, ReferralRow, ReferralState, UpdateRow
from db.repositories.outbox import SKIPPED


class ReferralRepository(SqlRepository):
    """The conversations of users with the staff of the shop."""

    async def get(self, referral_id: int) -> ReferralRow | None:
        """Return a referral, or None if it was deleted."""
        return await self._first_value(
            select(ReferralRow).where(ReferralRow.id == referral_id)
        )

    async def find_by_message(
        self, chat_id: int, message_id: int
    ) -> ReferralRow | None:
        """Return the referral to which a message of the bot belongs, or None."""
        is_message = (OutboxRow.chat_id == chat_id) & (
            OutboxRow.message_id == message_id
        )
        referral_id = select(OutboxRow.referral_id).where(is_message).scalar_subquery()
        return await self._first_value(
            select(ReferralRow).where(ReferralRow.id == referral_id)
        )

    async def list_open(self, user_id: int) -> Sequence[ReferralRow]:
        """Return the open referrals of a user."""
        is_open = ReferralRow.state == ReferralState.OPEN
        query = select(ReferralRow).where(ReferralRow.user_id == user_id, is_open)
        return await self._values(query.order_by(ReferralRow.id))


class ReferralUpkeep(SqlRepository):
    """What the leading process does for referrals."""

    async def list_undelivered(self) -> Sequence[tuple[OutboxRow, ReferralRow]]:
        """Return the messages that may not have arrived, each with its referral.

        The messages of turns that still send are left out: such a turn needs its rows.
        """
        is_failed = OutboxRow.error.is_not(None) & (OutboxRow.error != SKIPPED)
        unfinished = select(UpdateRow.update_id).where(IS_UNFINISHED)
        query = (
            select(OutboxRow, ReferralRow)
            .join(ReferralRow, ReferralRow.id == OutboxRow.referral_id)
            .where(is_failed, OutboxRow.update_id.not_in(unfinished))
        )
        return [(message, referral) for message, referral in await self._rows(query)]

    async def report(self, message: OutboxRow, notice: Sequence[OutboxRow]) -> None:
        """Queue a notice about a message that may not have arrived.

        The row of the message is deleted with it, so that each message is reported once.
        """
        reported = delete(OutboxRow).where(OutboxRow.id == message.id)
        async with self.sessions.begin() as session:
            if await count_changed(session, reported):
                session.add_all(notice)

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
        query = select(ReferralRow).where(ReferralRow.id == referral_id)
        return await self._first_value(query)

    async def find_by_message(
        self, chat_id: int, message_id: int
    ) -> ReferralRow | None:
        """Return the referral to which a message of the bot belongs, or None."""
        referral_id = (
            select(OutboxRow.referral_id)
            .where(
                OutboxRow.chat_id == chat_id,
                OutboxRow.message_id == message_id,
            )
            .scalar_subquery()
        )
        query = select(ReferralRow).where(ReferralRow.id == referral_id)
        return await self._first_value(query)

    async def list_open(self, user_id: int) -> Sequence[ReferralRow]:
        """Return the open referrals of a user."""
        query = (
            select(ReferralRow)
            .where(
                ReferralRow.user_id == user_id,
                ReferralRow.state == ReferralState.OPEN,
            )
            .order_by(ReferralRow.id)
        )
        return await self._values(query)


class ReferralUpkeep(SqlRepository):
    """Look after the referrals of all processes. Only the process that leads does this."""

    async def list_undelivered(self) -> Sequence[tuple[OutboxRow, ReferralRow]]:
        """Return the messages that may not have arrived, each with its referral.

        The messages of an unfinished turn are left out, because it may still send them itself.
        """
        unfinished = select(UpdateRow.update_id).where(IS_UNFINISHED)
        query = (
            select(OutboxRow, ReferralRow)
            .join(ReferralRow, ReferralRow.id == OutboxRow.referral_id)
            .where(
                OutboxRow.error.is_not(None),
                # A skipped message was left out on purpose.
                OutboxRow.error != SKIPPED,
                OutboxRow.update_id.not_in(unfinished),
            )
        )
        rows = await self._rows(query)
        return [(message, referral) for message, referral in rows]

    async def report(self, message: OutboxRow, notice: Sequence[OutboxRow]) -> None:
        """Queue a notice about a message that may not have arrived.

        The same transaction deletes the row of the message, so that each is reported once.
        """
        reported = delete(OutboxRow).where(OutboxRow.id == message.id)
        async with self.sessions.begin() as session:
            deleted_count = await count_changed(session, reported)
            if deleted_count > 0:
                session.add_all(notice)

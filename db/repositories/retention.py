"""Delete rows that are older than the retention time of their kind."""

from datetime import timedelta

from sqlalchemy import delete

from db.engine import SqlRepository, count_changed
from db.models import (
    ClickRow,
    ConcernRow,
    ExportState,
    ForgottenChatRow,
    ForgottenUserRow,
    KeptImportRow,
    MessageRow,
    PressRow,
    ReferralRow,
    ScoreRow,
    TraceRow,
    TurnRow,
    UndoableChangeRow,
    UpdateRow,
    UpdateState,
)


class Retention(SqlRepository):
    """Deletes old rows. Every method commits."""

    async def delete_turns(self, older_than: timedelta) -> int:
        """Delete older turns with their feedback. Return their number."""
        is_old = TurnRow.at < self.now() - older_than
        return await self._write(delete(TurnRow).where(is_old))

    async def delete_messages(self, older_than: timedelta) -> int:
        """Delete older messages of conversations. Return their number."""
        is_old = MessageRow.created_at < self.now() - older_than
        return await self._write(delete(MessageRow).where(is_old))

    async def delete_updates(self, older_than: timedelta) -> int:
        """Delete older updates whose turns have ended. Return their number."""
        is_old = UpdateRow.received_at < self.now() - older_than
        # "Not one of the others" would say the same, but SQLite then does not use the index.
        ended = [UpdateState.DONE, UpdateState.JOINED, UpdateState.SET_ASIDE]
        has_ended = UpdateRow.state.in_(ended)
        return await self._write(delete(UpdateRow).where(has_ended, is_old))

    async def delete_referrals(self, older_than: timedelta) -> int:
        """Delete the referrals whose last message is older, also open ones. Return their number."""
        is_old = ReferralRow.at < self.now() - older_than
        return await self._write(delete(ReferralRow).where(is_old))

    async def delete_expired(self) -> None:
        """Delete expired concerns, changes too old to undo, and imports that nobody confirmed."""
        now = self.now()
        async with self.sessions.begin() as session:
            for model in (ConcernRow, UndoableChangeRow, KeptImportRow):
                expired = delete(model).where(model.until <= now)
                await session.execute(expired)

    async def delete_presses(self, older_than: timedelta) -> None:
        """Delete older presses and older times of deletions.

        Such rows are only needed by turns that began before them, and no turn runs that long.
        """
        before = self.now() - older_than
        async with self.sessions.begin() as session:
            for model in (PressRow, ForgottenChatRow, ForgottenUserRow):
                older = delete(model).where(model.at < before)
                await session.execute(older)

    async def delete_clicks(self, older_than: timedelta) -> int:
        """Delete the counts of presses of older weeks. Return how many counts there were."""
        before = self.now() - older_than
        is_old = ClickRow.week < before.date()
        return await self._write(delete(ClickRow).where(is_old))

    async def delete_traces(self, older_than: timedelta) -> int:
        """Delete older traces with their scores. Return how many were never exported."""
        before = self.now() - older_than
        delete_scores = delete(ScoreRow).where(ScoreRow.at < before)
        delete_old = delete(TraceRow).where(TraceRow.started_at < before)
        is_waiting = TraceRow.state == ExportState.WAITING
        delete_waiting = delete_old.where(is_waiting)
        async with self.sessions.begin() as session:
            await session.execute(delete_scores)
            # Deleted by a statement of their own, so that they are counted.
            never_exported_count = await count_changed(session, delete_waiting)
            await session.execute(delete_old)
        return never_exported_count

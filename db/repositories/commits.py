"""Commit the turns that no update began: those of the terminal, the HTTP API and the commands."""

from dataclasses import dataclass

from db.budgets import DailyBudgets
from db.commit import Commit
from db.traces import TraceStoringRepository


@dataclass(eq=False)
class Commits(TraceStoringRepository):
    """Stores what turns without an update have collected."""

    budgets: DailyBudgets | None = None

    async def save(self, commit: Commit) -> None:
        """Store everything in one transaction. Nothing is sent: who asked is given the reply."""
        # Kept, because `carry_out` takes the record out of the commit if the user's data were
        # deleted meanwhile.
        record = commit.record
        await commit.prepare(self.rows)
        async with self.sessions.begin() as session:
            transaction = commit.make_transaction(session, self.now(), self.rows)
            await commit.carry_out(transaction)
            if self.budgets is not None and record is not None:
                await self.budgets.settle_in(session, record.turn_id)

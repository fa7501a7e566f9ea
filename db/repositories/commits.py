"""Commit turns that no update began: of the terminal, the HTTP API and the command line."""

from db.changes.base import Transaction
from db.commit import Commit
from db.traces import TraceStoringRepository


class Commits(TraceStoringRepository):
    """Stores what turns without an update have collected."""

    async def save(self, commit: Commit) -> None:
        """Store everything in one transaction; nothing is sent."""
        await commit.prepare(self.rows)
        async with self.sessions.begin() as session:
            transaction = Transaction(
                session=session,
                accepted_at=commit.fence.accepted_at,
                now=self.now(),
                trace_rows=self.rows,
                messages=[],
            )
            await commit.carry_out(transaction)

"""Forget people wherever traces of them are: tried until it worked, also after a kill."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.retrying import Backoff
from db.models import DeletionRow
from db.repositories.privacy import DeletionRepository

log = logging.getLogger(__name__)

SETTLED: Final = timedelta(seconds=30)
"""The time for which a trace may still be on its way when its user is forgotten."""
AGAIN: Final = Backoff(first_wait=5.0, max_wait=3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Deletes the remaining traces of users of whom the database has deleted everything.

    `delete_elsewhere` deletes the traces of a user's hash from before a moment, and returns how
    many there were; without it no trace has left the database.
    """

    deletions: DeletionRepository
    delete_elsewhere: Callable[[str, datetime], Awaitable[int]] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Do all deletions that are due; those that failed or found something are due again."""
        for deletion in await self.deletions.due():
            found = await self._delete(deletion)
            if found or self.now() - deletion.at < SETTLED:
                await self.deletions.postpone(deletion, AGAIN.after(deletion.tries + 1))
            else:
                await self.deletions.finish(deletion)

    async def _delete(self, deletion: DeletionRow) -> int:
        """Delete what unfinished turns stored since, here and elsewhere; return how much it was."""
        found = await self.deletions.sweep(deletion)
        if self.delete_elsewhere is None:
            return found
        try:
            return found + await self.delete_elsewhere(deletion.user, deletion.at)
        except Exception as error:
            log.warning("Traces elsewhere are still there, and deleted later: %s", error)
            return 1

"""Forgets people wherever traces of them are: tried until it worked, also after a kill."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.engine.errors import Backoff
from agent.repositories import Deletion, DeletionRepository

log = logging.getLogger(__name__)

SETTLED: Final = timedelta(seconds=30)
"""How long a trace may be on its way when its person is forgotten."""
AGAIN: Final = Backoff(first=5.0, longest=3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Does what is left to be done once all that the database kept of a person is deleted.

    `elsewhere` deletes the traces of a hash from before a moment and returns how many there were;
    without it nothing has left.
    """

    deletions: DeletionRepository
    elsewhere: Callable[[str, datetime], Awaitable[int]] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Do all that is due; what fails is due again later."""
        for each in await self.deletions.due():
            left = await self._left(each)
            if left or self.now() - each.at < SETTLED:
                await self.deletions.again(each, AGAIN.after(each.tries + 1))
            else:
                await self.deletions.settled(each)

    async def _left(self, deletion: Deletion) -> int:
        """Delete what turns left that were under way, and what has left; how much there was."""
        left = await self.deletions.sweep(deletion)
        if left or not deletion.tries:
            await self.deletions.scrub()
        if self.elsewhere is None:
            return left
        try:
            return left + await self.elsewhere(deletion.user, deletion.at)
        except Exception as error:
            log.warning("Traces elsewhere are still there, and deleted later: %s", error)
            return 1

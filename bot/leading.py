"""Locks of lanes, and the lock of the leader, the one replica that runs the shared tasks."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from bot.tasks import Work, run_until
from db.repositories.inbox import Inbox

LEADER: Final = "/leader"
"""The name of the leader's lock; no lane is called so."""
LEAD_SECONDS: Final = 1.0
"""Seconds between the tries of a process to become the leader."""


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


@contextmanager
def single_process(file: str) -> Iterator[None]:
    """Hold the lock of an SQLite file, whose turns a second process would take for interrupted.

    Raises:
        AlreadyRunning: another process holds it.
    """
    path = Path(file).expanduser()
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"Another process answers people from {path}; stop it first, or use Postgres "
                "to run several."
            ) from None
        yield


class Locks:
    """The locks of lanes where there is no other process: all are ours.

    Replicas share those of `bot.updates.replicas`.
    """

    poll_seconds: float = 5.0
    """Seconds between searches for lanes that nobody runs: for updates that an operator retries."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Lock a lane for the block; yield False if another process has locked it."""
        yield True

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when this process loses the lock of a lane."""
        return asyncio.Event()

    async def stop(self, wanted: Mapping[str, int]) -> bool:
        """Ask other processes to stop turns; return whether a turn of that chat has begun there."""
        return False

    async def notices(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the notices of other processes for ever: a lane, or turns to stop."""
        await asyncio.Event().wait()
        yield {}  # pragma: no cover

    async def unowned(self) -> list[str]:
        """Return the lanes that have work but no process."""
        return await self._inbox.lanes()


async def while_leading(locks: Locks, lead: Work) -> NoReturn:
    """Run `lead` while this process leads: until it loses the leader's lock."""
    while True:
        async with locks.lock(LEADER) as leads:
            if leads:
                await run_until(locks.lost(LEADER), lead)
        await asyncio.sleep(LEAD_SECONDS)

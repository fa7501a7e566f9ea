"""One process leads: it does what only one of all replicas may do, until another takes over."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from bot.tasks import Task, run_tasks, unless
from bot.updates.lanes import Lock

LEADER: Final = "/leader"
"""The name of the leader's lock; no lane is called so."""
LEAD_SECONDS: Final = 1.0
"""How often a process that does not lead tries to."""


class LostLead(Exception):
    """Another process may lead: the lock was lost."""


class LosesLocks(Protocol):
    """Knows when the lock of a lane is lost."""

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when the lock of a lane that is held here was lost."""


def while_leading(lock: Lock, tasks: Sequence[Task], locks: LosesLocks | None) -> Task:
    """Return a task that runs others while this process leads."""

    async def run(stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            async with lock(LEADER) as leads:
                if leads:
                    lost = locks.lost(LEADER) if locks else asyncio.Event()
                    with suppress(LostLead):
                        await run_tasks([*tasks, partial(fail_when, lost)], stopped)
            await unless(stopped, asyncio.sleep(LEAD_SECONDS))

    return run


async def fail_when(lost: asyncio.Event, stopped: asyncio.Event) -> None:
    """Wait until told to stop.

    Raises:
        LostLead: the lock was lost before.
    """

    async def wait() -> None:
        await lost.wait()

    if await unless(stopped, wait()):
        raise LostLead

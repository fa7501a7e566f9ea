"""Locks of lanes, and the lock of the leader, the one replica that runs the shared tasks."""

import asyncio
import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from bot.tasks import Task, run_tasks, unless
from db.repositories.inbox import Inbox

if TYPE_CHECKING:
    from bot.updates.replicas import ReplicaLocks


Locks: TypeAlias = "LocalLocks | ReplicaLocks"

LEADER: Final = "/leader"
"""The name of the leader's lock; no lane is called so."""
LEAD_SECONDS: Final = 1.0
"""Seconds between the tries of a process to become the leader."""


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


@contextmanager
def single_process(database_url: str) -> Iterator[None]:
    """Hold the lock of an SQLite file, whose turns a second process would take for interrupted.

    Postgres is made for several processes: there nothing is locked.

    Raises:
        AlreadyRunning: another process holds it.
    """
    scheme, _, rest = database_url.partition("://")
    if not scheme.startswith("sqlite"):
        yield
        return
    path = Path(rest.removeprefix("/")).expanduser()
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"Another process answers people from {path}; stop it first, or use Postgres "
                "to run several."
            ) from None
        yield


class LocalLocks:
    """The locks of lanes where there is no other process: all are ours."""

    look_seconds: Final = 5.0
    """Seconds between searches for updates that an operator retries."""

    def __init__(self, inbox: Inbox) -> None:
        self.unowned = inbox.lanes

    def lock(self, lane: str) -> AbstractAsyncContextManager[bool]:
        """Hold a lane; yield True."""
        return nullcontext(True)

    async def stop(self, wanted: Mapping[str, int]) -> bool:
        """Have other processes stop turns: there are none."""
        return False

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when the lock of a lane was lost: never."""
        return asyncio.Event()


def while_leading(locks: "Locks", tasks: Sequence[Task]) -> Task:
    """Return a task that runs others while this process leads."""

    async def run(stop: asyncio.Event) -> None:
        while not stop.is_set():
            async with locks.lock(LEADER) as leads:
                if leads:
                    await unless(locks.lost(LEADER), run_tasks(tasks, stop))
            await unless(stop, asyncio.sleep(LEAD_SECONDS))

    return run

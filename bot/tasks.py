"""What runs beside turns until told to stop, every step of stopping in bounded time; forgetting.

People are forgotten wherever traces of them are: it is tried until it worked, also after a kill.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.engine.errors import Backoff
from db.records import Deletion
from db.repositories.privacy import DeletionRepository

log = logging.getLogger(__name__)

Task = Callable[[asyncio.Event], Coroutine[object, object, None]]
"""What runs until the event is set; what it raises ends the service."""

CLOSE_SECONDS: Final = 5
"""How long anything may take that is done while stopping."""


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; the second signal ends the process as usual."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)

    def stopping() -> None:
        log.info("Stopping")
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stopping)
    return stop


async def run_tasks(tasks: Sequence[Task], stop: asyncio.Event) -> None:
    """Run all tasks until `stop` is set or one fails; the others are told to stop then.

    Raises:
        Exception: what the first of them raised.
    """
    stopped = asyncio.Event()
    running = [asyncio.create_task(task(stopped)) for task in tasks]
    try:
        await unless(stop, _until_one_fails(running))
    finally:
        stopped.set()
        await asyncio.gather(*running, return_exceptions=True)
    for task in running:
        task.result()


async def _until_one_fails(tasks: Sequence[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if not any(task.exception() for task in done):
        await asyncio.Event().wait()


def cancelled_at_stop(work: Callable[[], Coroutine[object, object, None]]) -> Task:
    """A task of `work`, which is cancelled when it is to stop."""

    async def run(stopped: asyncio.Event) -> None:
        await unless(stopped, work())

    return run


def every(seconds: float, what: str, work: Callable[[], Awaitable[object]]) -> Task:
    """A task that does `work` now and every so often; what fails is done the next time."""

    async def run(stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            await attempt(what, work)
            await unless(stopped, asyncio.sleep(seconds))

    return run


async def attempt(what: str, work: Callable[[], Awaitable[object]]) -> None:
    """Do what can wait for the next time if it fails."""
    try:
        await work()
    except Exception as error:
        log.warning("%s failed (%s), it is tried again later", what, type(error).__name__)


async def bounded(
    what: str, close: Callable[[], Awaitable[object]], seconds: float = CLOSE_SECONDS
) -> bool:
    """Do one step of stopping, for so long at most; whether it ended well. Never raises."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except TimeoutError:
        log.warning("Stopping: %s took more than %g s and was cut short", what, seconds)
        return False
    except Exception:
        log.exception("Stopping: %s failed", what)
        return False
    return True


async def unless(stop: asyncio.Event, starting: Coroutine[object, object, None]) -> bool:
    """Do `starting` unless told to stop before it is done; whether it was done."""
    task = asyncio.create_task(starting)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
        return False
    await task
    return True


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

"""Run what works beside the turns until the bot stops; every step of stopping has a time limit."""

import asyncio
import faulthandler
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final

log = logging.getLogger(__name__)

Task = Callable[[asyncio.Event], Coroutine[object, object, None]]
"""Runs until the event is set; an error that it raises ends the bot."""

CLOSE_SECONDS: Final = 5
"""The time limit of a step of stopping."""
HANG_SECONDS: Final = 60.0


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; a second signal ends the process as usual."""
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
    """Run all tasks until `stop` is set; if one fails, it sets `stop`, so that the others end.

    Raises:
        Exception: the error of the first task that failed.
    """
    errors = list[Exception]()

    async def run(task: Task) -> None:
        try:
            await task(stop)
        except Exception as error:
            errors.append(error)
            stop.set()

    await asyncio.gather(stop.wait(), *map(run, tasks))
    if errors:
        raise errors[0]


def cancelled_at_stop(work: Callable[[], Coroutine[object, object, None]]) -> Task:
    """Return a task that does `work`, and is cancelled when the bot stops."""

    async def run(stop: asyncio.Event) -> None:
        await unless(stop, work())

    return run


def every(seconds: float, what: str, work: Callable[[], Awaitable[object]]) -> Task:
    """Return a task that does `work` now and every so many seconds, also if it failed."""

    async def run(stop: asyncio.Event) -> None:
        while not stop.is_set():
            await attempt(what, work)
            await unless(stop, asyncio.sleep(seconds))

    return run


async def end_when_hanging(seconds: float = HANG_SECONDS) -> None:
    """End the process with a traceback if its event loop hangs: others take over its lanes."""
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / 10)
    finally:
        faulthandler.cancel_dump_traceback_later()


async def attempt(what: str, work: Callable[[], Awaitable[object]]) -> None:
    """Do `work`; log a failure."""
    try:
        await work()
    except Exception as error:
        log.warning("%s failed (%s), it is tried again later", what, type(error).__name__)


async def bounded(
    what: str, close: Callable[[], Awaitable[object]], seconds: float = CLOSE_SECONDS
) -> bool:
    """Do one step of stopping within a time limit; return whether it ended well. Never raises."""
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


async def unless(stop: asyncio.Event, work: Coroutine[object, object, None]) -> bool:
    """Do `work`, cancelled as soon as `stop` is set; return whether it was done."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if is_cut_short := not working.done():
            working.cancel()
            await asyncio.wait([working])
    if not is_cut_short:
        await working
    return not is_cut_short

"""Run what works beside the turns until the bot stops; every step of stopping has a time limit."""

import asyncio
import faulthandler
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Final, NoReturn

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[object, object, object]]
"""A function, not its coroutine: one that is never begun then leaves nothing behind."""

CLOSE_SECONDS: Final = 5
"""The time limit of a step of stopping."""
HANG_SECONDS: Final = 60.0


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; a second signal ends the process as usual."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)

    def stopping() -> None:
        log.info("Stopping")
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stopping)
    return stop


async def run_all(*work: Work) -> None:
    """Run functions side by side; if one fails, cancel the others.

    Raises:
        Exception: the error of the first that failed.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for function in work:
                group.create_task(function())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def run_until(stop: asyncio.Event, *work: Work) -> None:
    """Run functions side by side, cancelled as soon as `stop` is set.

    Raises:
        Exception: the error of the first that failed.
    """

    async def wait_for_stop() -> NoReturn:
        await stop.wait()
        raise _Stopped

    with suppress(_Stopped):
        await run_all(*work, wait_for_stop)


class _Stopped(Exception):
    """The functions were to run until now."""


@asynccontextmanager
async def beside(work: Work) -> AsyncIterator[None]:
    """Run a function beside the block; cancel it at the end of the block."""
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def every(seconds: float, what: str, work: Callable[[], Awaitable[object]]) -> NoReturn:
    """Do `work` now and every so many seconds, also if it failed."""
    while True:
        await attempt(what, work)
        await asyncio.sleep(seconds)


async def end_when_hanging(seconds: float = HANG_SECONDS) -> NoReturn:
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


async def bounded(what: str, close: Callable[[], Awaitable[object]]) -> None:
    """Do one step of stopping within `CLOSE_SECONDS`. Never raises."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await close()
    except TimeoutError:
        log.warning("Stopping: %s took more than %g s and was cut short", what, CLOSE_SECONDS)
    except Exception:
        log.exception("Stopping: %s failed", what)

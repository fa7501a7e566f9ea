"""Run background tasks until the bot stops, and each step of its shutdown within a time limit."""

import asyncio
import faulthandler
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Final, NoReturn

log = logging.getLogger(__name__)

AsyncFunction = Callable[[], Coroutine[object, object, object]]
"""A function, and not its coroutine: Python warns about a coroutine that is never awaited."""

SHUTDOWN_STEP_SECONDS: Final = 5
"""The time limit of each step of the shutdown."""
HANG_SECONDS: Final = 60.0
"""The time after which an event loop that does nothing counts as hanging."""


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets. A second signal ends the process as usual."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)

    def handle_signal() -> None:
        log.info("Stopping")
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, handle_signal)
    return stop


async def run_all(*functions: AsyncFunction) -> None:
    """Run functions concurrently. If one fails, cancel the others.

    Raises:
        Exception: the error of the first function that failed.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for function in functions:
                group.create_task(function())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def run_until(stop: asyncio.Event, *functions: AsyncFunction) -> None:
    """Run functions concurrently, and cancel them as soon as `stop` is set.

    Raises:
        Exception: the error of the first function that failed.
    """

    async def wait_for_stop() -> NoReturn:
        await stop.wait()
        raise _Stopped

    with suppress(_Stopped):
        await run_all(*functions, wait_for_stop)


class _Stopped(Exception):
    """Cancels the task group of `run_until`, which suppresses it."""


@asynccontextmanager
async def in_background(function: AsyncFunction) -> AsyncIterator[None]:
    """Run a function while the block runs, and cancel it when the block ends."""
    task = asyncio.create_task(function())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def run_every(
    seconds: float, description: str, function: AsyncFunction
) -> NoReturn:
    """Run a function again and again, each time `seconds` after it has ended, even if it failed."""
    while True:
        await run_and_log_errors(description, function)
        await asyncio.sleep(seconds)


async def run_and_log_errors(description: str, function: AsyncFunction) -> None:
    """Run a function. Log its error instead of raising it."""
    try:
        await function()
    except Exception as error:
        log.warning("%s failed (%s)", description, type(error).__name__)


async def run_shutdown_step(description: str, step: AsyncFunction) -> None:
    """Run a step of the shutdown within a time limit. Log its error instead of raising it."""
    try:
        async with asyncio.timeout(SHUTDOWN_STEP_SECONDS):
            await step()
    except TimeoutError:
        log.warning(
            "Stopping: %s timed out after %g s", description, SHUTDOWN_STEP_SECONDS
        )
    except Exception:
        log.exception("Stopping: %s failed", description)


async def exit_if_loop_hangs(seconds: float = HANG_SECONDS) -> NoReturn:
    """Exit with a traceback if the event loop hangs, so that other processes take over its chats.

    A thread of `faulthandler` ends the process unless this coroutine keeps postponing that.
    """
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / 10)
    finally:
        faulthandler.cancel_dump_traceback_later()

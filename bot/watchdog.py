"""End a process whose event loop hangs, so that others take over its lanes."""

import asyncio
import faulthandler
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

log = logging.getLogger(__name__)

HANG_SECONDS: Final = 60.0
EXIT_STATUS: Final = 70


@contextmanager
def watchdog(
    seconds: float = HANG_SECONDS, end: Callable[[], object] | None = None
) -> Iterator[None]:
    """Watch this event loop from a thread until the block ends; `end` the process if it hangs."""
    loop, over = asyncio.get_running_loop(), threading.Event()

    def watch() -> None:
        while not over.wait(seconds / 10):
            answered = threading.Event()
            loop.call_soon_threadsafe(answered.set)
            if not answered.wait(seconds) and not over.is_set():
                log.critical("The event loop has hung for %g s: this process ends", seconds)
                faulthandler.dump_traceback()
                (end or partial(os._exit, EXIT_STATUS))()
                return

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()

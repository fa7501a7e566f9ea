"""Trouble with what is not needed to answer anybody: said in the log, once a minute at most."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

SILENCE_SECONDS: Final = 60.0

Complain = Callable[[logging.Logger, str], None]
"""Takes a log and what is to be said in it. May be called from any thread."""


class Complaints:
    """Warns once in `SILENCE_SECONDS`, whoever it is that complains.

    Those who depend on the same server share one: when it is down, that is one line.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._silent_until = clock()
        self._lock = threading.Lock()

    def __call__(self, log: logging.Logger, what: str) -> None:
        """Say it, unless something was said a short time ago."""
        with self._lock:
            now = self._clock()
            if now < self._silent_until:
                return
            self._silent_until = now + SILENCE_SECONDS
        log.warning("%s", what)

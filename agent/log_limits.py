"""Keeps a client that repeats itself about a dead server from filling the log."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OneLineAMinute(logging.Filter):
    """Lets one warning or error a minute through, without its stack, and nothing below.

    What Langfuse's client says about a dead server is the same line again and again, and what it
    says at INFO holds the public key.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next = clock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether `record` is logged."""
        now = self._clock()
        if record.levelno < logging.WARNING or now < self._next:
            return False
        self._next = now + 60
        record.exc_info = record.exc_text = record.stack_info = None
        return True


@contextmanager
def quietened(quiet: logging.Filter) -> Iterator[None]:
    """`quiet` on every logger of Langfuse's client and of OpenTelemetry: filters don't inherit."""
    names = [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in ("langfuse", "opentelemetry")
    ]
    for name in names:
        logging.getLogger(name).addFilter(quiet)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(quiet)

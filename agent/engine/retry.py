"""Another try after a failure: bounded, with back-off, and a wait the error may dictate."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

R = TypeVar("R")

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]
Retryable = Callable[[Exception], bool | float]
"""Whether an error is worth another try; a number is the seconds to wait for it (Retry-After)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: from `first`, doubled with each failure, `longest` at most.

    Each is shortened by up to a half at random, so that those who failed together do not return
    together.
    """

    first: float = 0.5
    longest: float = 20.0

    def after(self, failures: int) -> float:
        """Draw the seconds to wait after so many failures in a row, 1 for the first."""
        doubled = self.first * 2.0 ** min(failures - 1, 60)
        return min(doubled, self.longest) * random.uniform(0.5, 1.0)  # noqa: S311


BACKOFF: Final = Backoff()


async def retry(
    call: Callable[[], Awaitable[R]],
    *,
    tries: int | None,
    on: Retryable = lambda error: True,
    backoff: Backoff = BACKOFF,
    until: float | None = None,
    sleep: Sleep = asyncio.sleep,
    what: str = "",
) -> R:
    """Return what `call` returns, called `tries` times at most; None: without end.

    No try begins after `until`, a time of the event loop. Each failure is logged if `what` says
    what fails; of the error only its type, since its text may hold a secret.

    Raises:
        Exception: what the last try raised, or an error that `on` holds for lasting.
    """
    for failures in count(1):
        try:
            return await call()
        except Exception as error:
            wait = _wait(error, on, backoff, failures)
            if wait is None or failures == tries or _too_late(wait, until):
                raise
            if what:
                kind = type(error).__name__
                log.warning("%s failed (%s), next try in %.1f s", what, kind, wait)
        await sleep(wait)
    raise AssertionError


def _wait(error: Exception, on: Retryable, backoff: Backoff, failures: int) -> float | None:
    """Seconds to wait before the next try; None if there is to be none."""
    dictated = on(error)
    if isinstance(dictated, bool):
        return backoff.after(failures) if dictated else None
    return dictated


def _too_late(wait: float, until: float | None) -> bool:
    return until is not None and asyncio.get_running_loop().time() + wait >= until

"""Retry a call that failed: how often, how long between, and when not."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

log = logging.getLogger(__name__)

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[object]]
Retryable = Callable[[Exception], bool | float]
"""Returns True if an error is worth another try; a number is the seconds to wait (Retry-After)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: from `first_wait`, doubled with every failure, at most `max_wait`.

    A wait is shortened by up to a half at random: callers who failed together return apart.
    """

    first_wait: float = 0.5
    max_wait: float = 20.0

    def after(self, failures: int) -> float:
        """Draw the seconds to wait after so many failures in a row, 1 for the first."""
        doubled = self.first_wait * 2.0 ** min(failures - 1, 60)
        return min(doubled, self.max_wait) * random.uniform(0.5, 1.0)  # noqa: S311


BACKOFF: Final = Backoff()


async def retry(
    call: Callable[[], Awaitable[R]],
    *,
    tries: int | None,
    on: Retryable = lambda error: True,
    backoff: Backoff = BACKOFF,
    sleep: Sleep = asyncio.sleep,
    what: str = "",
) -> R:
    """Return what `call` returns, called `tries` times at most; None: without end.

    Raises the error of the last try, or one that `on` calls permanent. Each failure is logged if
    `what` says what fails; of the error only its type, since its text may hold a secret.
    """
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            failures += 1
            decision = on(error)
            if decision is False or failures == tries:
                raise
            wait = backoff.after(failures) if decision is True else decision
            if what:
                kind = type(error).__name__
                log.warning("%s failed (%s), next try in %.1f s", what, kind, wait)
        await sleep(wait)

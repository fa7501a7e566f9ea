"""Retry failed calls with exponential backoff."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

log = logging.getLogger(__name__)

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[object]]
ShouldRetry = Callable[[Exception], bool | float]
"""Whether to retry after an error. A number means yes, after so many seconds (Retry-After)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first_wait` seconds, doubled after every failure up to `max_wait`.

    Each wait is cut by up to a half at random, so that clients do not all retry at once.
    """

    first_wait: float = 0.5
    max_wait: float = 20.0

    def draw_wait(self, failures: int) -> float:
        """Return the seconds to wait after this many consecutive failures, at least one."""
        doubled = self.first_wait * 2.0 ** min(failures - 1, 60)
        return min(doubled, self.max_wait) * random.uniform(0.5, 1.0)  # noqa: S311


BACKOFF: Final = Backoff()


async def retry(
    call: Callable[[], Awaitable[R]],
    *,
    max_tries: int | None,
    should_retry: ShouldRetry = lambda error: True,
    backoff: Backoff = BACKOFF,
    sleep: Sleep = asyncio.sleep,
    description: str = "",
) -> R:
    """Return the result of `call`, retrying up to `max_tries` calls in total; None means forever.

    Raises the last error, or the first one that should not be retried. Failures are logged if the
    call has a `description`, with the type of the error only: its text may contain a secret.
    """
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            failures += 1
            decision = should_retry(error)
            if decision is False or failures == max_tries:
                raise
            wait = backoff.draw_wait(failures) if decision is True else decision
            if description:
                kind = type(error).__name__
                log.warning("%s failed (%s), next try in %.1f s", description, kind, wait)
        await sleep(wait)

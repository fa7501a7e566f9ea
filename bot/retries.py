"""Retry calls of a database that is restarting, locked or full, and soon is not."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from agent.engine.errors import log_failure
from agent.retrying import Backoff, retry
from db.engine import is_transient

R = TypeVar("R")
T = TypeVar("T")

DATABASE_BACKOFF: Final = Backoff(first_wait=0.4, max_wait=2.0)
BRIEF_TRIES: Final = 4
"""Tries of a call that may fail; they take a second or two."""


async def call_or_default(
    call: Callable[[], Awaitable[R]], default: T, problem: str, *, tries: int = 1
) -> R | T:
    """Return what `call` returns; `default` if it fails each time, and `problem` is logged."""
    try:
        return await retry(call, tries=tries, on=is_transient, backoff=DATABASE_BACKOFF)
    except Exception as error:
        log_failure(problem, error)
        return default


async def retry_forever(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns, however long the database is away: no turn is lost for that.

    Raises:
        Exception: the call itself is wrong, so that trying again would not help.
    """
    what = "A call of the database"
    return await retry(call, tries=None, on=is_transient, backoff=DATABASE_BACKOFF, what=what)

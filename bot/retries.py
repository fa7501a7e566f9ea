"""Calls of the database that are tried again: it is restarted, locked or full, and soon is not."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from agent.engine.errors import Backoff, retry

R = TypeVar("R")

PERMANENT_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is wrong in a call itself; no database that is down answers so."""
DATABASE: Final = Backoff(first=0.4, longest=2.0)
BRIEF_TRIES: Final = 4


async def retry_briefly(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns, tried again for a second or two.

    Raises:
        Exception: what the last try raised.
    """
    return await retry(call, tries=BRIEF_TRIES, on=_may_pass, backoff=DATABASE)


async def retry_forever(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns, however long the database refuses: no turn is lost for that.

    Raises:
        Exception: the call itself is wrong, and would be for ever.
    """
    what = "A call of the database"
    return await retry(call, tries=None, on=_may_pass, backoff=DATABASE, what=what)


def _may_pass(error: Exception) -> bool:
    return not isinstance(error, PERMANENT_ERRORS)

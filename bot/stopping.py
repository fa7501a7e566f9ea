"""How things are stopped: in time, and whatever fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 5
"""How long anything else may take that is done while stopping."""


async def bounded(
    what: str, close: Callable[[], Awaitable[object]], seconds: float = CLOSE_SECONDS
) -> bool:
    """Do one step of stopping, for so long at most; whether it ended well. Never raises."""
    try:
        await asyncio.wait_for(close(), seconds)
    except TimeoutError:
        log.warning("Stopping: %s took more than %g s and was cut short", what, seconds)
        return False
    except Exception:
        log.exception("Stopping: %s failed", what)
        return False
    return True


async def unless(stop: asyncio.Event, starting: Coroutine[object, object, None]) -> bool:
    """Do `starting` unless told to stop before it is done; whether it was done."""
    task = asyncio.create_task(starting)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
        return False
    await task
    return True

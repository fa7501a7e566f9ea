"""Send stored traces and scores to where admins read them, until they arrive.

Every row is stored before it is sent and has an id of its own: if the process dies between sending
a row and noting it, the row is sent again and replaces itself. There are three outcomes: a row is
sent, refused for good (kept, logged, not sent again), or sent later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from agent.retrying import Backoff
from agent.tracing.errors import REFUSALS, Unavailable
from db.repositories.traces import RowQueue, Rows

log = logging.getLogger(__name__)

MAX_BATCH: Final = 32
LOOK_SECONDS: Final = 2.0  # between two looks
LEASE: Final = timedelta(minutes=10)  # longer than all requests of a batch may take
BACKOFF: Final = Backoff(first_wait=2.0, max_wait=300.0)


@dataclass(frozen=True, slots=True)
class Channel:
    """Rows of one kind, traces or scores, and how a batch of them is sent.

    `send` returns how many parts of the batch were not accepted, and raises `Unavailable`.
    """

    name: str
    queue: RowQueue
    send: Callable[[Rows], Awaitable[int]]


@dataclass(slots=True)
class Exporter:
    """Send what waits in the channels, with growing waits after trouble.

    `open` makes the channels when they are needed for the first time. `on_loss` is called with the
    number of parts that were refused for good. Replicas may send beside each other: a claimed row
    belongs to one of them.
    """

    open: Callable[[], Awaitable[Sequence[Channel]]]
    on_loss: Callable[[int], None] = lambda count: None
    _channels: Sequence[Channel] = ()
    _failures: int = 0

    async def run(self) -> None:
        """Send until cancelled; what is not sent then is sent after the next start."""
        while True:
            wait = await self.round()
            await asyncio.sleep(wait or LOOK_SECONDS)

    async def round(self) -> float:
        """Send all that is due; return the seconds to wait after trouble. Never raises."""
        try:
            self._channels = self._channels or await self.open()
            for channel in self._channels:
                while rows := await channel.queue.claim(MAX_BATCH, LEASE):
                    try:
                        await self._send(channel, rows)
                    except (Exception, asyncio.CancelledError):
                        await channel.queue.release(rows)
                        raise
        except Exception as error:
            self._failures += 1
            if self._failures == 1:
                log.warning("Traces wait, and are sent later: %s", _reason(error))
            return BACKOFF.after(self._failures)
        if self._failures:
            log.info("Traces are sent again")
        self._failures = 0
        return 0.0

    async def _send(self, channel: Channel, rows: Rows) -> None:
        """Send a batch; if it is refused, send its rows one by one, to lose the bad one alone."""
        try:
            refused = await channel.send(rows)
        except Exception as error:
            if isinstance(error, Unavailable) and error.status not in REFUSALS:
                raise
            if len(rows) > 1:
                for row in rows:
                    await self._send(channel, [row])
                return
            self.on_loss(1)
            log.warning("One of the %s is refused for good: %s", channel.name, _reason(error))
            await channel.queue.settle(rows, refused=True)
            return
        await channel.queue.settle(rows)
        if refused:
            self.on_loss(refused)
            log.warning("%d parts of %s are refused for good", refused, channel.name)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else type(error).__name__

"""Sends stored traces and scores to where admins read them, and tries again until they arrive.

Everything is stored before it is sent and has ids of its own: what was sent and not noted, because
the process died between, is sent once more and replaces itself. There is one policy: a trace or a
score is sent, refused for good (stored, logged, not sent again), or sent later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from agent.engine.errors import AgentError, Backoff, Sleep
from agent.engine.feedback import fence

log = logging.getLogger(__name__)

T = TypeVar("T")


class SendQueue(Protocol[T]):
    """Rows that wait to be sent; every method commits before it returns."""

    async def claim(self, limit: int, lease: timedelta) -> Sequence[T]:
        """Return the oldest rows that are due, which nobody else gets before the lease ends."""

    async def settle(self, items: Sequence[T], *, refused: bool = False) -> None:
        """Note that these arrived, or never will; a row that changed meanwhile is due again."""

    async def release(self, items: Sequence[T]) -> None:
        """Have these be due again."""


LARGEST_BATCH: Final = 32
LOOK_SECONDS: Final = 2.0  # between two looks
LEASE: Final = timedelta(minutes=10)  # longer than all requests of a batch may take
BACKOFF: Final = Backoff(first=2.0, longest=300.0)
LONGEST_RETRY_AFTER: Final = 300.0  # seconds
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
UNREADABLE: Final = frozenset({400, 413, 422})
"""The answers to a request that will never be accepted."""


class Unavailable(AgentError):
    """A server did not do what it was asked; `status` is that of its answer, None without one."""

    def __init__(
        self, message: str, status: int | None = None, *, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = min(retry_after, LONGEST_RETRY_AFTER)

    @property
    def is_unreadable(self) -> bool:
        """Tell whether the server will never accept what was sent."""
        return self.status in UNREADABLE


def trouble(error: Exception) -> str:
    """Return in one line what an error of Langfuse's client means."""
    status = getattr(error, "status_code", None)
    if status == 401:
        return UNKNOWN_KEYS
    if isinstance(status, int):
        body = getattr(error, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        told = f": {fence(said, 200)}" if isinstance(said, str) else ""
        return f"Langfuse answered HTTP {status}{told}; check LANGFUSE_BASE_URL"
    return f"Langfuse cannot be reached ({type(error).__name__}): check LANGFUSE_BASE_URL"


@dataclass(frozen=True, slots=True)
class Channel(Generic[T]):
    """One kind of rows that are sent: traces, or scores.

    `send` returns how many parts of a batch were not accepted, and raises `Unavailable`.
    """

    name: str
    queue: SendQueue[T]
    send: Callable[[Sequence[T]], Awaitable[int]]


@dataclass(slots=True)
class Exporter:
    """Sends what waits in its channels, one request at a time, with growing waits after trouble.

    `open` makes the channels when there is something to do for the first time.
    `where` names the other side in the log, `given_up` counts traces and scores that were refused,
    wholly or in part. Another replica may send beside this one, never the same rows at once.
    """

    open: Callable[[], Awaitable[Sequence[Channel[Any]]]]
    where: str
    backoff: Backoff = BACKOFF
    look_seconds: float = LOOK_SECONDS
    sleep: Sleep = asyncio.sleep
    given_up: int = 0
    _channels: Sequence[Channel[Any]] = ()
    _failures: int = 0
    _new: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Look for something new soon."""
        self._new.set()

    def give_up(self, count: int) -> None:
        """Count rows that never arrived: refused, too old, or too many."""
        self.given_up += count

    async def run(self) -> None:
        """Send until cancelled; what is not sent then is sent after the next start."""
        while True:
            self._new.clear()
            if wait := await self.round():
                await self.sleep(wait)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self.look_seconds):
                    await self._new.wait()

    async def round(self) -> float:
        """Send all that is due; return the seconds to wait after trouble. Never raises."""
        try:
            self._channels = self._channels or await self.open()
            for channel in self._channels:
                await self._drain(channel)
        except Exception as error:
            self._failures += 1
            if self._failures == 1:
                log.warning("Traces wait, and are sent later: %s", _reason(error))
            wait = error.retry_after if isinstance(error, Unavailable) else 0.0
            return max(self.backoff.after(self._failures), wait)
        if self._failures:
            log.info("Traces are sent to %s again", self.where)
        self._failures = 0
        return 0.0

    async def _drain(self, channel: Channel[T]) -> None:
        while batch := await channel.queue.claim(LARGEST_BATCH, LEASE):
            try:
                await self._send(channel, batch)
            except (Exception, asyncio.CancelledError):
                await channel.queue.release(batch)
                raise

    async def _send(self, channel: Channel[T], batch: Sequence[T]) -> None:
        """Send a batch; one that is refused is sent in halves, to lose the bad row alone."""
        try:
            refused = await channel.send(batch)
        except Unavailable as error:
            if not error.is_unreadable:
                raise
            if half := len(batch) // 2:
                await self._send(channel, batch[:half])
                await self._send(channel, batch[half:])
                return
            await self._refuse(channel, batch, error)
        except Exception as error:  # what cannot be encoded stops nothing behind it
            if len(batch) > 1:
                for item in batch:
                    await self._send(channel, [item])
                return
            await self._refuse(channel, batch, error)
        else:
            await channel.queue.settle(batch)
            if refused:
                self.give_up(refused)
                log.warning("%s refused %d parts of %s", self.where, refused, channel.name)

    async def _refuse(self, channel: Channel[T], batch: Sequence[T], error: Exception) -> None:
        self.give_up(len(batch))
        log.warning("One of the %s is refused for good: %s", channel.name, _reason(error))
        await channel.queue.settle(batch, refused=True)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else type(error).__name__

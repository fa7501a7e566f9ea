"""What people think of answers, on its way to where admins read traces.

It is kept first; here what has changed since it was delivered is delivered, now or when the other
side is there again. Two replicas may deliver the same: scores have fixed ids.

Langfuse deletes a score some time after it was told to, and with it one of the same id that came
meanwhile. So what comes after other deliveries is delivered once more when that time is over.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from agent.engine.retry import Backoff, Sleep
from agent.repositories import (
    Feedback,
    FeedbackRepository,
)
from agent.tracing.exporter import RateLimitedLogger, RetryLater

log = logging.getLogger(__name__)

Deliver = Callable[[Feedback], Awaitable[None]]
"""Delivers one. Raises `RetryLater`; anything else that it raises means: never."""

LOOK_SECONDS: Final = 5.0
BACKOFF: Final = Backoff(first=2.0, longest=60.0)
SETTLED_SECONDS: Final = 60.0
FIRST_AFTER_DELETION: Final = 3
"""The revision of a verdict that was given, taken back and given again."""


@dataclass(slots=True)
class FeedbackDelivery:
    """Delivers what is thought of answers, one at a time; `wake` says that there is something new.

    `look_seconds` is the time between two looks at what other replicas left, `backoff` that after
    failures. `settled` is the time, in seconds, after which nothing of what was told before is
    still under way.
    """

    feedback: FeedbackRepository
    deliver: Deliver
    look_seconds: float = LOOK_SECONDS
    backoff: Backoff = BACKOFF
    limited_log: RateLimitedLogger = field(default_factory=RateLimitedLogger)
    settled: float = SETTLED_SECONDS
    sleep: Sleep = asyncio.sleep
    _new: asyncio.Event = field(default_factory=asyncio.Event)
    _again: dict[int, float] = field(default_factory=dict)

    def wake(self) -> None:
        """Look for something new at once."""
        self._new.set()

    async def round(self) -> bool:
        """Deliver all that is not delivered; False if that must be tried again. Never raises."""
        try:
            while undelivered := await self.feedback.undelivered():
                for each in undelivered:
                    await self._deliver(each)
            await self._deliver_again()
        except RetryLater as error:
            self._say(f"was not delivered ({error}), it is tried again later")
        except Exception as error:
            self._say(f"could not be read ({type(error).__name__}), it is tried again later")
        else:
            return True
        return False

    async def run(self) -> None:
        """Deliver until cancelled; what is not delivered then is after the next start."""
        failures = 0
        while True:
            self._new.clear()
            failures = 0 if await self.round() else failures + 1
            await self._rest(failures)

    async def _rest(self, failures: int) -> None:
        """Wait for something new; after a failure for the time alone."""
        if failures:
            await self.sleep(self.backoff.after(failures))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self.look_seconds):
                await self._new.wait()

    async def _deliver(self, feedback: Feedback) -> None:
        """Deliver one, and again if it changed meanwhile: whoever is last has delivered the last.

        Another replica may have delivered a change while this one was delivering what was before.
        """
        latest: Feedback | None = feedback
        while latest is not None:
            sent = latest
            await self._send(sent)
            await self.feedback.delivered(sent.turn_id, sent.revision)
            if sent.verdict and sent.revision >= FIRST_AFTER_DELETION:
                self._again[sent.turn_id] = time.monotonic() + self.settled
            now = await self.feedback.get(sent.turn_id)
            latest = now if now and now.revision != sent.revision else None

    async def _deliver_again(self) -> None:
        """Deliver once more, as it is now, what a deletion may have taken with it."""
        due = [turn_id for turn_id, at in self._again.items() if at <= time.monotonic()]
        for turn_id in due:
            if kept := await self.feedback.get(turn_id):
                await self._send(kept)
            del self._again[turn_id]

    async def _send(self, feedback: Feedback) -> None:
        try:
            await self.deliver(feedback)
        except RetryLater:
            raise
        except Exception as error:
            self._say(f"was refused ({type(error).__name__}: {error}), dropped")

    def _say(self, what: str) -> None:
        self.limited_log.warning(log, f"What people think of answers {what}")

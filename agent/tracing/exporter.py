"""What waits in the store on its way to where admins read it, and the HTTP by which it leaves.

Traces go first, then verdicts on them. Everything is kept before it is sent, and has fixed ids:
what was sent and not noted, since the process died between, is sent once more and replaces itself.
Every request is bounded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

import httpx2
from pydantic import TypeAdapter

from agent import lengths
from agent.engine.errors import AgentError, Backoff, Sleep
from agent.engine.feedback import fence
from agent.engine.span import TraceRecord
from agent.repositories import Feedback, FeedbackRepository, TraceQueue

log = logging.getLogger(__name__)

LARGEST_BATCH: Final = 32  # traces
LOOK_SECONDS: Final = 2.0  # between two looks
LEASE: Final = timedelta(minutes=10)  # longer than all requests of a batch may take
BACKOFF: Final = Backoff(first=2.0, longest=300.0)
PARKED: Final = Backoff(first=300.0, longest=3600.0)
LONGEST_RETRY_AFTER: Final = 300.0  # seconds
QUIET_SECONDS: Final = 60.0
SETTLED_SECONDS: Final = 60.0
FIRST_AFTER_DELETION: Final = 3
"""The revision of a verdict that was given, taken back and given again."""


AGAIN: Final = frozenset({408, 425, 429})
UNREADABLE: Final = frozenset({400, 413, 422})


class Unavailable(AgentError):
    """A server did not do what it was asked; `status` is that of its answer, None without one.

    What neither passes nor is about this request alone holds for everything: nothing is taken until
    an admin has changed something.
    """

    def __init__(
        self, message: str, status: int | None = None, *, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = min(retry_after, LONGEST_RETRY_AFTER)

    @property
    def passes(self) -> bool:
        """Whether the same may be taken later, after `retry_after` seconds at least."""
        return self.status is None or self.status >= 500 or self.status in AGAIN

    @property
    def is_unreadable(self) -> bool:
        """Whether what was sent is not taken, and never will be."""
        return self.status in UNREADABLE


Send = Callable[[Sequence[TraceRecord]], Awaitable[int]]
"""Delivers traces, then their scores; returns how many spans were not taken.

Raises `Unavailable`."""
Deliver = Callable[[Feedback], Awaitable[None]]
"""Delivers one verdict. Raises the same."""


class RateLimitedLogger:
    """Warns of each kind of trouble once in 60 s, whoever has it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quiet_until: dict[str, float] = {}

    def warning(self, logger: logging.Logger, kind: str, message: str) -> None:
        """Log `message` as a warning of `logger`, unless its kind was logged a short time ago."""
        now = self._clock()
        if now >= self._quiet_until.get(kind, now):
            self._quiet_until[kind] = now + QUIET_SECONDS
            logger.warning("%s", message)


@dataclass(slots=True)
class Exporter:
    """Sends what waits in `traces`, and in `feedback`, one request at a time, with growing waits.

    `where` names the other side in the log. `given_up` counts the traces that were refused, and
    `spans_refused` those of traces that were taken in part. Another replica may send beside this
    one, never the same at the same time. It waits `backoff` after trouble that passes, `parked`
    while nothing is taken, and looks every `look_seconds`.
    """

    traces: TraceQueue
    send: Send
    where: str
    feedback: FeedbackRepository | None = None
    deliver: Deliver | None = None
    limited_log: RateLimitedLogger = field(default_factory=RateLimitedLogger)
    backoff: Backoff = BACKOFF
    parked: Backoff = PARKED
    look_seconds: float = LOOK_SECONDS
    settled_seconds: float = SETTLED_SECONDS
    sleep: Sleep = asyncio.sleep
    given_up: int = 0
    spans_refused: int = 0
    _failures: int = 0
    _parked: int = 0
    _new: asyncio.Event = field(default_factory=asyncio.Event)
    _again: dict[int, float] = field(default_factory=dict)

    def wake(self) -> None:
        """Look for something new soon."""
        self._new.set()

    def give_up(self, traces: int) -> None:
        """Count traces that never arrived: refused, too old, or too many."""
        self.given_up += traces

    async def run(self) -> None:
        """Send until cancelled; what is not sent then is after the next start."""
        while True:
            self._new.clear()
            wait = await self.round()
            if wait:
                await self.sleep(wait)
                continue
            due = await self._seconds_until_due()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self.look_seconds, due)):
                    await self._new.wait()

    async def round(self) -> float:
        """Send all that is due; the seconds to wait then before anything is tried. Never raises."""
        try:
            while batch := await self.traces.claim(LARGEST_BATCH, LEASE):
                try:
                    await self._send(batch)
                except (Unavailable, asyncio.CancelledError):
                    await self.traces.release(batch, 0)
                    raise
            await self._deliver_feedback()
        except Unavailable as error:
            if error.passes:
                self._parked, self._failures = 0, self._failures + 1
                self._warn(
                    "passing", f"not delivered to {self.where} ({error}), trying again later"
                )
                return max(self.backoff.after(self._failures), error.retry_after)
            self._parked += 1
            if self._parked == 1:
                self._warn("rejected", f"refused by {self.where} and wait in the store: {error}")
            return self.parked.after(self._parked)
        except Exception as error:
            self._failures += 1
            self._warn("store", f"not read from the store ({type(error).__name__})")
            return self.backoff.after(self._failures)
        self._failures = self._parked = 0
        return 0.0

    async def _seconds_until_due(self) -> float:
        try:
            due = await self.traces.seconds_until_due()
        except Exception:
            return self.look_seconds
        return self.look_seconds if due is None else due

    async def _send(self, batch: Sequence[TraceRecord]) -> None:
        """Send a batch; one that cannot be read is sent in halves, to lose but the bad trace."""
        try:
            refused = await self.send(batch)
        except Exception as error:
            if isinstance(error, Unavailable) and not error.is_unreadable:
                raise
            if half := len(batch) // 2:
                await self._send(batch[:half])
                await self._send(batch[half:])
                return
            self._warn("unreadable", f"refused by {self.where} ({error or type(error).__name__})")
            self.give_up(1)
            await self.traces.settle(batch, refused=True)
        else:
            if refused:
                self.spans_refused += refused
                self._warn("partial", f"not taken whole by {self.where} ({refused} parts refused)")
            await self.traces.settle(batch)

    async def _deliver_feedback(self) -> None:
        """Deliver the verdicts that changed, of traces that arrived."""
        if self.feedback is None or self.deliver is None:
            return
        while undelivered := await self.feedback.undelivered():
            for each in undelivered:
                await self._deliver_latest(self.feedback, self.deliver, each)
        due = [turn_id for turn_id, at in self._again.items() if at <= time.monotonic()]
        for turn_id in due:
            if kept := await self.feedback.get(turn_id):
                await self._deliver(self.deliver, kept)
            del self._again[turn_id]

    async def _deliver_latest(
        self, stored: FeedbackRepository, deliver: Deliver, feedback: Feedback
    ) -> None:
        """Deliver one, and again if it changed meanwhile: whoever is last has delivered the last.

        Another replica may have delivered a change while this one was delivering what was before.
        Langfuse deletes a score some time after it was told to, and with it one of the same id that
        came meanwhile: what comes after a deletion is delivered once more when that time is over.
        """
        latest: Feedback | None = feedback
        while latest is not None:
            sent = latest
            await self._deliver(deliver, sent)
            await stored.delivered(sent.turn_id, sent.revision)
            if sent.verdict and sent.revision >= FIRST_AFTER_DELETION:
                self._again[sent.turn_id] = time.monotonic() + self.settled_seconds
            now = await stored.get(sent.turn_id)
            latest = now if now and now.revision != sent.revision else None

    async def _deliver(self, deliver: Deliver, feedback: Feedback) -> None:
        try:
            await deliver(feedback)
        except Exception as error:
            # That a trace is nobody's (404) is about this verdict alone: the address is right.
            lost = isinstance(error, Unavailable) and (error.is_unreadable or error.status == 404)
            if isinstance(error, Unavailable) and not lost:
                raise
            reason = str(error) or type(error).__name__
            self.limited_log.warning(log, "verdict", f"A verdict was refused ({reason}), dropped")

    def _warn(self, kind: str, what: str) -> None:
        self.limited_log.warning(log, kind, f"Traces were {what}")


T = TypeVar("T")

LONGER: Final = 4
"""By how much a server that answers late is waited for longer."""


class HttpClient:
    """The HTTP API of one server; a request is made once, and takes `seconds` at most.

    `name` is what errors call it, `check` are the settings that they ask to be checked. One that
    `waits_longer` gives a server that did not answer in time up to four times as long from then on.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        check: str,
        seconds: float,
        auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        unknown_keys: str = "",
        waits_longer: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.seconds = seconds
        self._longest = seconds * LONGER if waits_longer else seconds
        self._name = name
        self._check = check
        self._unknown_keys = unknown_keys
        self._http = httpx2.AsyncClient(
            auth=auth,
            headers=headers,
            base_url=self.base_url,
            transport=transport,
            event_hooks={"response": [lengths.ends_at(lengths.SERVICE_BYTES)]},
        )

    async def ask(self, answer: type[T], method: str, path: str, **request: Any) -> T:
        """Return what the API answers, read as `answer`.

        Raises:
            Unavailable: it gave no answer in time, or another one.
        """
        response = await self.request(method, path, **request)
        try:
            return TypeAdapter(answer).validate_json(response.content)
        except ValueError:
            raise self._foreign() from None

    async def request(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """Make a request of the API.

        Raises:
            Unavailable: it was not done; in one line, whatever the reason.
        """
        seconds = self.seconds
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.request(method, path, timeout=seconds, **request)
        except (httpx2.TimeoutException, TimeoutError):
            self.seconds = min(seconds * 2, self._longest)
            raise Unavailable(
                f"{self._name} did not answer within {seconds:g} s: check {self._check} and the "
                "network"
            ) from None
        except httpx2.HTTPError as error:
            kind = type(error).__name__
            raise Unavailable(
                f"{self._name} cannot be reached ({kind}): check {self._check} and the network"
            ) from None
        if not response.is_success:
            raise self._answered(response)
        if media_type(response) == "text/html":
            raise self._foreign()
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _foreign(self) -> Unavailable:
        return Unavailable(f"the answer is not {self._name}'s: check {self._check}", 200)

    def _answered(self, response: httpx2.Response) -> Unavailable:
        status = response.status_code
        if status == 401 and self._unknown_keys:
            return Unavailable(self._unknown_keys, status)
        try:
            body = response.json()
        except ValueError:
            body = None
        message = body.get("message") if isinstance(body, dict) else None
        said = f": {fence(message, 200)}" if isinstance(message, str) else ""
        elsewhere = f"; check {self._check}" if status < 400 or status == 404 else ""
        return Unavailable(
            f"{self._name} answered HTTP {status}{said}{elsewhere}",
            status,
            retry_after=retry_after(response),
        )


def media_type(response: httpx2.Response) -> str:
    """Return what a response says it is, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def retry_after(response: httpx2.Response) -> float:
    """Return the seconds a server asks to be left alone, 0 if it does not say so in seconds."""
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() and said.isascii() else 0.0

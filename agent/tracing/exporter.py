"""Finished traces on their way out: a bounded queue, and a thread that empties it in batches.

A batch that cannot be delivered now is tried again later, while new traces push the oldest out; so
a server that restarts costs no trace, and one that is dead costs no memory.
"""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agent.engine.errors import AgentError
from agent.engine.retry import Backoff
from agent.tracing.recorder import TraceRecord

log = logging.getLogger(__name__)

Send = Callable[[Sequence[TraceRecord]], None]
"""Delivers a batch. Raises `RetryLater`, `PartialSuccess`, or `Rejected` if no trace will ever be
taken; anything else that it raises means that one of the batch never will be."""

LONGEST_QUEUE: Final = 8_000  # spans: about a thousand turns
LARGEST_BATCH: Final = 32  # traces
GAP_SECONDS: Final = 0.5  # between two batches, in which more traces may come
BACKOFF: Final = Backoff(first=1.0, longest=30.0)
EXIT_SECONDS: Final = 4.0
LONGEST_RETRY_AFTER: Final = 300.0  # seconds
QUIET_SECONDS: Final = 60.0


class RetryLater(AgentError):
    """A batch of traces was not taken, and may be later: after `retry_after` seconds at least."""

    def __init__(self, message: str | None = None, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = min(retry_after, LONGEST_RETRY_AFTER)


class PartialSuccess(AgentError):
    """A batch of traces was taken, but for so many `spans`, or for some scores."""

    def __init__(self, spans: int) -> None:
        super().__init__(f"{spans} spans refused" if spans else "some scores refused")
        self.spans = spans


class Rejected(AgentError):
    """Nothing that is sent will be taken."""


class RateLimitedLogger:
    """Warns once in 60 s, whichever part of the process has trouble; safe to use from any thread.

    Those who depend on the same server share one: when it is down, that is one line.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quiet_until = clock()
        self._lock = threading.Lock()

    def warning(self, logger: logging.Logger, message: str) -> None:
        """Log `message` as a warning of `logger`, unless something was said a short time ago."""
        with self._lock:
            now = self._clock()
            if now < self._quiet_until:
                return
            self._quiet_until = now + QUIET_SECONDS
        logger.warning("%s", message)


class Exporter:
    """A sink that delivers with `send`, on a thread of its own; `where` names it in the log.

    `released` is called once, when nothing is sent any more.
    """

    def __init__(
        self,
        send: Send,
        *,
        where: str,
        released: Callable[[], None] = lambda: None,
        limited_log: RateLimitedLogger | None = None,
        gap_seconds: float = GAP_SECONDS,
        backoff: Backoff = BACKOFF,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._where = where
        self._released = released
        self._limited_log = limited_log or RateLimitedLogger()
        self._gap = gap_seconds
        self._backoff = backoff
        self._clock = clock
        self._queue: deque[TraceRecord] = deque()
        self._waiting = 0  # spans in the queue
        self._dropped = 0
        self._failures = 0  # in a row
        self._pause_until = 0.0
        self._changed = threading.Condition()
        self._sending = False
        self._flushing = False
        self._deadline: float | None = None
        # Started now: from Python 3.12 on, no thread can start while the interpreter exits.
        self._thread = threading.Thread(target=self._run, name=f"traces-{where}", daemon=True)
        self._thread.start()
        atexit.register(self._exit)

    @property
    def dropped_spans(self) -> int:
        """How many spans were pushed out of the queue, refused, or left when it was closed."""
        return self._dropped

    def write(self, trace: TraceRecord) -> None:
        """Queue a finished trace; when the queue is full the oldest makes room."""
        with self._changed:
            if self._closing:
                self._dropped += len(trace.spans)
                return
            self._queue.append(trace)
            self._waiting += len(trace.spans)
            self._drop(LONGEST_QUEUE)
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Deliver what is queued, waiting so long at most; whether all of it is gone."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not (self._queue or self._sending), seconds)

    def close(self, deadline: float) -> None:
        """Deliver what is left until `deadline` (`time.monotonic`), and stop.

        What is left then counts as dropped, but for a batch on its way: nobody knows of that.
        """
        atexit.unregister(self._exit)
        with self._changed:
            self._deadline = deadline
            self._changed.notify_all()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._warn(f"still on their way to {self._where} at the end, some may be lost")
            with self._changed:
                self._drop(0)

    def _exit(self) -> None:
        self.close(time.monotonic() + EXIT_SECONDS)

    def _run(self) -> None:
        while batch := self._next_batch():
            self._deliver(batch)
            if self._closing and self._failures:
                break  # what failed once is not tried again, nor what comes after it
        with self._changed:
            self._drop(0)
            self._sending = False
            self._changed.notify_all()
        self._released()

    def _next_batch(self) -> list[TraceRecord]:
        """The oldest traces, once there are any and the pause is over; empty when all is done."""
        with self._changed:
            self._sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._queue or self._closing)
            self._changed.wait_for(lambda: self._closing or self._in_a_hurry, self._pause())
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._drop(0)
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), LARGEST_BATCH))]
            self._waiting -= spans_of(batch)
            self._sending = bool(batch)
            self._flushing = self._flushing and bool(self._queue)
            return batch

    @property
    def _closing(self) -> bool:
        return self._deadline is not None

    @property
    def _in_a_hurry(self) -> bool:
        return not self._failures and (self._flushing or len(self._queue) >= LARGEST_BATCH)

    def _pause(self) -> float:
        """Seconds until the next batch may be sent."""
        backoff = self._backoff.after(self._failures) if self._failures else self._gap
        return max(backoff, self._pause_until - self._clock())

    def _deliver(self, batch: list[TraceRecord]) -> None:
        """Send a batch; one that cannot be read is sent in halves, to lose but the bad trace."""
        try:
            self._send(batch)
        except RetryLater as error:
            self._warn(f"not delivered to {self._where} ({error}), trying again later")
            self._put_back(batch, error.retry_after)
        except PartialSuccess as error:
            self._warn(f"not taken whole by {self._where} ({error})")
            self._settle(error.spans)
        except Exception as error:
            lasting = isinstance(error, Rejected)
            half = 0 if lasting else len(batch) // 2
            if half:
                self._deliver(batch[:half])
                self._deliver(batch[half:])
                return
            self._warn(f"refused by {self._where} ({type(error).__name__}: {error}), dropped")
            self._settle(spans_of(batch), failures=self._failures + 1 if lasting else 0)
        else:
            self._settle()

    def _settle(self, dropped: int = 0, *, failures: int = 0) -> None:
        """Note that a batch is done with, but for so many spans."""
        with self._changed:
            self._dropped += dropped
            self._failures = failures

    def _put_back(self, batch: list[TraceRecord], retry_after: float) -> None:
        with self._changed:
            self._failures += 1
            self._pause_until = self._clock() + retry_after
            self._queue.extendleft(reversed(batch))
            self._waiting += spans_of(batch)
            self._drop(LONGEST_QUEUE)

    def _drop(self, longest: int) -> None:
        """Let the oldest traces go until no more than so many spans wait."""
        while self._waiting > longest:
            gone = len(self._queue.popleft().spans)
            self._waiting -= gone
            self._dropped += gone

    def _warn(self, what: str) -> None:
        self._limited_log.warning(log, f"Traces were {what}")


def spans_of(traces: Iterable[TraceRecord]) -> int:
    """Count the spans of traces in all."""
    return sum(len(trace.spans) for trace in traces)

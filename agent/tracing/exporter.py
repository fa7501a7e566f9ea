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
from dataclasses import dataclass
from typing import Final

from agent.engine.errors import AgentError
from agent.engine.trace_records import TraceRecord
from agent.tracing.complaints import Complain, Complaints

log = logging.getLogger(__name__)

Send = Callable[[Sequence[TraceRecord]], None]
"""Delivers a batch. Raises `NotNow`, `TakenInPart`, or `Refused` if no trace will ever be taken;
anything else that it raises means that one of the batch never will be."""

LONGEST_QUEUE: Final = 8_000  # spans: about a thousand turns
LARGEST_BATCH: Final = 32  # traces
EXIT_SECONDS: Final = 4.0
LONGEST_REST_SECONDS: Final = 300.0  # that a server may ask for


class NotNow(AgentError):
    """A batch of traces was not taken, and may be later: after `retry_after` seconds at least."""

    def __init__(self, message: str | None = None, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = min(retry_after, LONGEST_REST_SECONDS)


class TakenInPart(AgentError):
    """A batch of traces was taken, but for so many `spans`, or for some scores."""

    def __init__(self, spans: int) -> None:
        super().__init__(f"{spans} spans refused" if spans else "some scores refused")
        self.spans = spans


class Refused(AgentError):
    """Nothing that is sent will be taken."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds between two batches, and after a failure: doubled with each up to `longest`."""

    between: float = 0.5
    first: float = 1.0
    longest: float = 30.0

    def after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return min(self.first * 2.0 ** (failures - 1), self.longest) if failures else self.between


class Outbox:
    """A sink that delivers with `send`, on a thread of its own; `where` names it in the log.

    `released` is called once, when nothing is sent any more; `complain` says what goes wrong.
    """

    def __init__(
        self,
        send: Send,
        *,
        where: str,
        released: Callable[[], None] = lambda: None,
        complain: Complain | None = None,
        pause: Pause = Pause(),
    ) -> None:
        self._send = send
        self._where = where
        self._released = released
        self._pause = pause
        self._queue: deque[TraceRecord] = deque()
        self._waiting = 0  # spans in the queue
        self._dropped = 0
        self._complain = complain or Complaints()
        self._rest_until = 0.0
        self._wake = threading.Condition()
        self._sending = False
        self._hurried = False
        self._deadline: float | None = None
        # Started now: from Python 3.12 on, no thread can start while the interpreter exits.
        self._thread = threading.Thread(target=self._run, name=f"traces-{where}", daemon=True)
        self._thread.start()
        atexit.register(self._exit)

    @property
    def dropped_spans(self) -> int:
        """How many spans were pushed out of the queue, or refused."""
        return self._dropped

    def write(self, trace: TraceRecord) -> None:
        """Queue a finished trace; when the queue is full the oldest makes room."""
        with self._wake:
            if self._ending:
                self._dropped += len(trace.spans)
                return
            self._queue.append(trace)
            self._waiting += len(trace.spans)
            self._make_room()
            self._wake.notify_all()

    def flush(self, seconds: float) -> bool:
        """Deliver what is queued, waiting so long at most; whether all of it is gone."""
        with self._wake:
            self._hurried = True
            self._wake.notify_all()
            return self._wake.wait_for(lambda: not (self._queue or self._sending), seconds)

    def close(self, deadline: float) -> None:
        """Deliver what is left until `deadline` (`time.monotonic`), and stop."""
        atexit.unregister(self._exit)
        with self._wake:
            self._deadline = deadline
            self._wake.notify_all()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._say(f"still on their way to {self._where} at the end, some may be lost")

    def _exit(self) -> None:
        self.close(time.monotonic() + EXIT_SECONDS)

    def _run(self) -> None:
        failures = 0
        while batch := self._next_batch(failures):
            failures = self._deliver(batch, failures)
            if failures and self._ending:
                break
        with self._wake:
            self._dropped += spans_of(self._queue)
            self._queue.clear()
            self._sending = False
            self._wake.notify_all()
        self._released()

    def _next_batch(self, failures: int) -> list[TraceRecord]:
        """The oldest traces, once there are any and the pause is over; empty when all is done."""
        with self._wake:
            self._sending = False
            self._wake.notify_all()
            self._wake.wait_for(lambda: self._queue or self._ending)
            self._wake.wait_for(
                lambda: self._ending or (self._in_a_hurry and not failures),
                max(self._pause.after(failures), self._rest_until - time.monotonic()),
            )
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), LARGEST_BATCH))]
            self._waiting -= spans_of(batch)
            self._sending = bool(batch)
            self._hurried = self._hurried and bool(self._queue)
            return batch

    @property
    def _in_a_hurry(self) -> bool:
        return self._hurried or len(self._queue) >= LARGEST_BATCH

    @property
    def _ending(self) -> bool:
        return self._deadline is not None

    def _deliver(self, batch: list[TraceRecord], failures: int) -> int:
        """Send a batch; how many times in a row that has failed now."""
        try:
            self._send(batch)
        except NotNow as error:
            self._say(f"not delivered to {self._where} ({error}), trying again later")
            self._rest_until = time.monotonic() + error.retry_after
            self._put_back(batch)
            return failures + 1
        except TakenInPart as error:
            self._say(f"not taken whole by {self._where} ({error})")
            self._dropped += error.spans
        except Exception as error:
            half = 0 if isinstance(error, Refused) else len(batch) // 2
            if half:
                first = self._deliver(batch[:half], failures)
                return self._deliver(batch[half:], failures) or first
            self._say(f"refused by {self._where} ({type(error).__name__}: {error}), dropped")
            self._dropped += spans_of(batch)
        return 0

    def _put_back(self, batch: list[TraceRecord]) -> None:
        with self._wake:
            self._queue.extendleft(reversed(batch))
            self._waiting += spans_of(batch)
            self._make_room()

    def _make_room(self) -> None:
        while self._waiting > LONGEST_QUEUE:
            gone = len(self._queue.popleft().spans)
            self._waiting -= gone
            self._dropped += gone

    def _say(self, what: str) -> None:
        self._complain(log, f"Traces were {what}")


def spans_of(traces: Iterable[TraceRecord]) -> int:
    """How many spans traces have in all."""
    return sum(len(trace.spans) for trace in traces)

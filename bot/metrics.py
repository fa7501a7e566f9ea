"""Count updates, turns and sends, and their times, for Prometheus.

Labels are words of small fixed sets, never ids or words of users. Every series is there from the
start, at zero, so that an alert on a rate sees the first event too.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from agent.turn import Outcome
from bot.outgoing import DeliveryError
from db.records import Backlog

UpdateResult = Literal["accepted", "coalesced", "set_aside", "unreadable"]
"""The fate of an update: accepted, made part of a waiting turn, set aside, or unreadable."""

Refusal = Literal["secret", "malformed", "not_accepted"]
"""The reason why the webhook refused a request."""

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
"""The format of `Metrics.text`."""

SENT: Final = "sent"
TURN_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
START_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30, 60, 300)


class Metrics:
    """The numbers of one process, in a registry of their own.

    `dropped_traces` returns how many traces were given up so far. The queue's depth and age are not
    a number until `backlog` is called.
    """

    def __init__(self, dropped_traces: Callable[[], int] = lambda: 0) -> None:
        self._registry = CollectorRegistry()
        self._updates = self._counter("updates", "Updates, by what became of them", "result")
        self._refusals = self._counter("webhook_refusals", "Webhook requests refused", "reason")
        self._turns = self._counter("turns", "Turns, by outcome", "outcome")
        self._sends = self._counter("telegram_sends", "Sends to Telegram, by result", "result")
        self._requests = self._counter("model_requests", "Requests made to language models")
        self._retries = self._counter("retries", "Attempts repeated with feedback")
        self._turn_seconds = self._histogram(
            "turn_seconds", "Seconds from the start of a turn to its end", TURN_BUCKETS
        )
        self._start_seconds = self._histogram(
            "start_seconds",
            "Seconds from accepting an update to the start of its turn",
            START_BUCKETS,
        )
        self._waiting = self._gauge("queue_depth", "Updates accepted and not done")
        self._oldest = self._gauge("queue_oldest_seconds", "Seconds the oldest of them has waited")
        self._registry.register(_DroppedTraces(dropped_traces))
        _begin(self._updates, get_args(UpdateResult))
        _begin(self._refusals, get_args(Refusal))
        _begin(self._turns, get_args(Outcome))
        _begin(self._sends, (SENT, *get_args(DeliveryError)))
        self.backlog(None)

    def update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._updates.labels(result).inc()

    def webhook_refused(self, reason: Refusal) -> None:
        """Count one request that the webhook did not take."""
        self._refusals.labels(reason).inc()

    def turn_started(self, waited_seconds: float) -> None:
        """Note how long a turn waited since its update was accepted."""
        self._start_seconds.observe(waited_seconds)

    def turn_ended(
        self, outcome: Outcome, *, seconds: float, requests: int = 0, retries: int = 0
    ) -> None:
        """Count one turn, the requests it made to models, and its attempts beyond the first."""
        self._turns.labels(outcome).inc()
        self._turn_seconds.observe(seconds)
        self._requests.inc(requests)
        self._retries.inc(retries)

    def telegram_send(self, error: DeliveryError | None = None) -> None:
        """Count one message sent, or not sent because of `error`."""
        self._sends.labels(error or SENT).inc()

    def backlog(self, backlog: Backlog | None) -> None:
        """Show the backlog; None if it could not be read."""
        self._waiting.set(math.nan if backlog is None else backlog.waiting)
        self._oldest.set(math.nan if backlog is None else backlog.oldest_seconds)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' text format, which is `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"sommelier_{name}", meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"sommelier_{name}", meaning, buckets=buckets, registry=self._registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"sommelier_{name}", meaning, registry=self._registry)


class _DroppedTraces:
    """A counter that is read when the metrics are."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Return the counter as it is now."""
        meaning = "Traces that were given up instead of being sent"
        yield CounterMetricFamily("sommelier_traces_dropped", meaning, value=self._read())


def _begin(counter: Counter, values: Iterable[str]) -> None:
    for value in values:
        counter.labels(value)

"""Count updates, turns and sends, and their times, for Prometheus.

Labels are words of small fixed sets, never ids or words of users. Every series is there from the
start, at zero, so that an alert on a rate sees the first event too.
"""

import math
from collections.abc import Callable
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

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


class Metrics:
    """The numbers of one process, in a registry of their own.

    `dropped_traces` returns how many traces were given up so far. The queue's depth and age are not
    a number until `backlog` is called.
    """

    def __init__(self, dropped_traces: Callable[[], int] = lambda: 0) -> None:
        self._registry = CollectorRegistry()
        self._updates = self._counter("updates", "result", get_args(UpdateResult))
        self._refusals = self._counter("webhook_refusals", "reason", get_args(Refusal))
        self._turns = self._counter("turns", "outcome", get_args(Outcome))
        self._sends = self._counter("telegram_sends", "result", (SENT, *get_args(DeliveryError)))
        meaning = "Seconds from accepting a message to its answer"
        self._seconds = Histogram(
            "sommelier_turn_seconds", meaning, buckets=TURN_BUCKETS, registry=self._registry
        )
        self._waiting = self._gauge("queue_depth", "Updates accepted and not done")
        self._oldest = self._gauge("queue_oldest_seconds", "Seconds the oldest of them has waited")
        dropped = self._gauge("traces_dropped", "Traces given up instead of being sent")
        dropped.set_function(dropped_traces)
        self.backlog(None)

    def update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._updates.labels(result).inc()

    def webhook_refused(self, reason: Refusal) -> None:
        """Count one request that the webhook did not take."""
        self._refusals.labels(reason).inc()

    def turn_ended(self, outcome: Outcome, seconds: float) -> None:
        """Count one turn."""
        self._turns.labels(outcome).inc()
        self._seconds.observe(seconds)

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

    def _counter(self, name: str, label: str, values: tuple[str, ...]) -> Counter:
        meaning = f"{name.replace('_', ' ').capitalize()} by {label}"
        counter = Counter(f"sommelier_{name}", meaning, [label], registry=self._registry)
        for value in values:
            counter.labels(value)
        return counter

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"sommelier_{name}", meaning, registry=self._registry)

"""Count updates, turns and sends, and their times, for Prometheus.

Labels are words of small fixed sets, never ids or words of users. Every series is there from the
start, at zero, so that an alert on a rate sees the first event too.
"""

import math
from typing import Any, Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agent.turn import Outcome
from bot.outgoing import DeliveryError
from db.repositories.inbox import Backlog

UpdateResult = Literal["accepted", "coalesced", "set_aside", "unreadable"]
"""The fate of an update: accepted, made part of a waiting turn, set aside, or unreadable."""

SENT: Final = "sent"
TURN_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)


class Metrics:
    """The numbers of one process, in a registry of their own.

    The queue's depth and age are not a number until `backlog` is called.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"namespace": "sommelier", "registry": self._registry}
        self._updates = Counter("updates", "Updates by result", ["result"], **own)
        self._turns = Counter("turns", "Turns by outcome", ["outcome"], **own)
        self._sends = Counter("telegram_sends", "Messages by result", ["result"], **own)
        took = "Seconds from accepting a message to its answer"
        self._seconds = Histogram("turn_seconds", took, buckets=TURN_BUCKETS, **own)
        self._waiting = Gauge("queue_depth", "Updates accepted and not done", **own)
        waited = "Seconds the oldest of them has waited"
        self._oldest = Gauge("queue_oldest_seconds", waited, **own)
        self._dropped = Gauge("traces_dropped", "Traces given up instead of being sent", **own)
        for counter, values in (
            (self._updates, get_args(UpdateResult)),
            (self._turns, get_args(Outcome)),
            (self._sends, (SENT, *get_args(DeliveryError))),
        ):
            for value in values:
                counter.labels(value)
        self.backlog(None)

    def update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._updates.labels(result).inc()

    def turn_ended(self, outcome: Outcome, seconds: float) -> None:
        """Count one turn."""
        self._turns.labels(outcome).inc()
        self._seconds.observe(seconds)

    def telegram_send(self, error: DeliveryError | None = None) -> None:
        """Count one message sent, or not sent because of `error`."""
        self._sends.labels(error or SENT).inc()

    def traces_dropped(self, count: int) -> None:
        """Count traces that were given up."""
        self._dropped.inc(count)

    def backlog(self, backlog: Backlog | None) -> None:
        """Show the backlog; None if it could not be read."""
        self._waiting.set(math.nan if backlog is None else backlog.unfinished)
        self._oldest.set(math.nan if backlog is None else backlog.oldest_seconds)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' text format."""
        return generate_latest(self._registry)

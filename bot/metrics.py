"""Count updates, turns and sends for Prometheus.

Label values come from small fixed sets, never from ids or texts of users. Every series exists from
the start, at zero, so that an alert on a rate notices even the first event.
"""

import math
from collections.abc import Iterable
from typing import Final, Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as MEDIA_TYPE

from agent.turn import TurnOutcome
from bot.turn import DeliveryError
from db.repositories.inbox import Backlog

__all__ = ["MEDIA_TYPE", "Metrics", "UpdateResult"]

UpdateResult = Literal["accepted", "joined", "set_aside"]
"""What became of an update: accepted, joined to a waiting turn, or set aside after failures."""

NAMESPACE: Final = "sommelier"
SENT: Final = "sent"

# The library would add a second series to each counter, with the time at which it was made.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one process.

    The gauges of the queue are NaN until `set_backlog` is called.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        results = get_args(UpdateResult)
        self._updates = self._make_counter(
            "updates", "Updates by their result.", "result", results
        )
        outcomes = get_args(TurnOutcome)
        self._turns = self._make_counter(
            "turns", "Turns by their outcome.", "outcome", outcomes
        )
        self._turn_seconds = self._make_counter("turn_seconds", "Seconds of all turns.")
        sends = (SENT, *get_args(DeliveryError))
        self._sends = self._make_counter(
            "telegram_sends", "Messages to Telegram by their result.", "result", sends
        )
        # This is a gauge although it only grows: the name of a counter would end in `_total`, and
        # dashboards know the metric without that end.
        self._traces_dropped = self._make_gauge(
            "traces_dropped", "Traces dropped instead of sent."
        )
        self._queue_depth = self._make_gauge("queue_depth", "Updates that wait or run.")
        self._queue_seconds = self._make_gauge(
            "queue_oldest_seconds", "Age of the oldest update that waits or runs."
        )
        self.set_backlog(None)

    def _make_counter(
        self,
        name: str,
        help_text: str,
        label: str = "",
        values: Iterable[str] = (),
    ) -> Counter:
        """Return a new counter, with a series for each value of its label."""
        labels = [label] if label else []
        counter = Counter(
            name, help_text, labels, namespace=NAMESPACE, registry=self._registry
        )
        for value in values:
            counter.labels(value)
        return counter

    def _make_gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(name, help_text, namespace=NAMESPACE, registry=self._registry)

    def count_update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._updates.labels(result).inc()

    def count_turn(self, outcome: TurnOutcome, seconds: float) -> None:
        """Count one turn and its time."""
        self._turns.labels(outcome).inc()
        self._turn_seconds.inc(seconds)

    def count_send(self, error: DeliveryError | None = None) -> None:
        """Count one message, which was sent unless there is an error."""
        self._sends.labels(error or SENT).inc()

    def count_dropped_traces(self, count: int) -> None:
        """Count traces that were dropped instead of sent."""
        self._traces_dropped.inc(count)

    def set_backlog(self, backlog: Backlog | None) -> None:
        """Set the depth and age of the queue. `backlog` is None if they could not be read."""
        if backlog is None:
            self._queue_depth.set(math.nan)
            self._queue_seconds.set(math.nan)
        else:
            self._queue_depth.set(backlog.unfinished)
            self._queue_seconds.set(backlog.oldest_seconds)

    def to_text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry).decode()

"""Count updates, turns and sends, and their times, in Prometheus' text format.

Labels are words of small fixed sets, never ids or words of users. Every series is there from the
start, at zero, so that an alert on a rate sees the first event too.
"""

import math
from typing import Final, Literal, get_args

from agent.turn import Outcome
from bot.question import DeliveryError
from db.repositories.inbox import Backlog

UpdateResult = Literal["accepted", "coalesced", "set_aside"]
"""The fate of an update: accepted, made part of a waiting turn, or set aside."""

SENT: Final = "sent"
LABELS: Final = {
    "updates_total": ("result", get_args(UpdateResult)),
    "turns_total": ("outcome", get_args(Outcome)),
    "telegram_sends_total": ("result", (SENT, *get_args(DeliveryError))),
}
"""The label of each counter, and its values."""
TURN_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, math.inf)
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The numbers of one process.

    The queue's depth and age are not a number until `backlog` is called.
    """

    def __init__(self) -> None:
        self._counts = {name: dict.fromkeys(values, 0) for name, (_, values) in LABELS.items()}
        self._turns_within = dict.fromkeys(TURN_BUCKETS, 0)
        self._turn_seconds = 0.0
        self._gauges = {"traces_dropped": 0.0}
        self.backlog(None)

    def update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._counts["updates_total"][result] += 1

    def turn_ended(self, outcome: Outcome, seconds: float) -> None:
        """Count one turn."""
        self._counts["turns_total"][outcome] += 1
        self._turn_seconds += seconds
        for limit in TURN_BUCKETS:
            self._turns_within[limit] += seconds <= limit

    def telegram_send(self, error: DeliveryError | None = None) -> None:
        """Count one message sent, or not sent because of `error`."""
        self._counts["telegram_sends_total"][error or SENT] += 1

    def traces_dropped(self, count: int) -> None:
        """Count traces that were given up."""
        self._gauges["traces_dropped"] += count

    def backlog(self, backlog: Backlog | None) -> None:
        """Show the backlog; None if it could not be read."""
        self._gauges["queue_depth"] = backlog.unfinished if backlog else math.nan
        self._gauges["queue_oldest_seconds"] = backlog.oldest_seconds if backlog else math.nan

    def text(self) -> str:
        """Return all numbers in Prometheus' text format."""
        lines = list[str]()
        for name, counts in self._counts.items():
            lines.append(f"# TYPE sommelier_{name} counter")
            label = LABELS[name][0]
            lines += [f'sommelier_{name}{{{label}="{value}"}} {n}' for value, n in counts.items()]
        for name, number in self._gauges.items():
            lines += [f"# TYPE sommelier_{name} gauge", f"sommelier_{name} {number}"]
        name = "sommelier_turn_seconds"
        lines.append(f"# TYPE {name} histogram")
        lines += [f'{name}_bucket{{le="{limit}"}} {n}' for limit, n in self._turns_within.items()]
        count = self._turns_within[math.inf]
        lines += [f"{name}_sum {self._turn_seconds}", f"{name}_count {count}", ""]
        return "\n".join(lines).replace('"inf"', '"+Inf"').replace(" nan\n", " NaN\n")

"""Count updates, turns and sends in Prometheus' text format.

Label values come from small fixed sets, never from ids or texts of users. Every series exists from
the start, at zero, so that an alert on a rate notices even the first event.
"""

import math
from typing import Final, Literal, get_args

from agent.turn import TurnOutcome
from bot.turn import DeliveryError
from db.repositories.inbox import Backlog

UpdateResult = Literal["accepted", "joined", "set_aside"]
"""The fate of an update: accepted, joined to a waiting turn, or set aside after failures."""

SENT: Final = "sent"
LABELS: Final = {
    "updates_total": ("result", get_args(UpdateResult)),
    "turns_total": ("outcome", get_args(TurnOutcome)),
    "telegram_sends_total": ("result", (SENT, *get_args(DeliveryError))),
}
"""The label and the label values of each counter."""
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one process.

    The gauges of the queue are NaN until `set_backlog` is called.
    """

    def __init__(self) -> None:
        self._counts = {name: dict.fromkeys(values, 0) for name, (_, values) in LABELS.items()}
        self._turn_seconds = 0.0
        self._gauges = {"traces_dropped": 0.0}
        self.set_backlog(None)

    def count_update(self, result: UpdateResult) -> None:
        """Count one update."""
        self._counts["updates_total"][result] += 1

    def count_turn(self, outcome: TurnOutcome, seconds: float) -> None:
        """Count one turn and its time."""
        self._counts["turns_total"][outcome] += 1
        self._turn_seconds += seconds

    def count_send(self, error: DeliveryError | None = None) -> None:
        """Count one message, which was sent unless there is an error."""
        self._counts["telegram_sends_total"][error or SENT] += 1

    def count_dropped_traces(self, count: int) -> None:
        """Count traces that were dropped instead of sent."""
        self._gauges["traces_dropped"] += count

    def set_backlog(self, backlog: Backlog | None) -> None:
        """Set the depth and age of the queue; None if they could not be read."""
        self._gauges["queue_depth"] = backlog.unfinished if backlog else math.nan
        self._gauges["queue_oldest_seconds"] = backlog.oldest_seconds if backlog else math.nan

    def to_text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        lines = list[str]()
        for name, counts in self._counts.items():
            label, _ = LABELS[name]
            lines.append(f"# TYPE sommelier_{name} counter")
            lines += [f'sommelier_{name}{{{label}="{value}"}} {n}' for value, n in counts.items()]
        for name, value in self._gauges.items():
            lines += [f"# TYPE sommelier_{name} gauge", f"sommelier_{name} {value}"]
        name = "sommelier_turn_seconds_total"
        lines += [f"# TYPE {name} counter", f"{name} {self._turn_seconds}", ""]
        return "\n".join(lines).replace(" nan\n", " NaN\n")  # as Prometheus reads it

"""Plain records that repositories take and return where rows of tables do not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from agent.tracing.records import TraceRecord
from agent.turn import Change, StoredMessage
from db.models import TurnRow

Verdict = Literal["liked", "disliked"]


FeedbackReason = Literal["wrong_wine", "not_what_i_asked", "wrong_facts", "tone"]


Access = Literal["allowed", "blocked"]


@dataclass(frozen=True, slots=True)
class DayStats:
    """The numbers of one day (UTC), or of several days together, from `day` on."""

    day: date
    people: int = 0
    turns: int = 0
    retried: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    liked: int = 0
    disliked: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    median_seconds: float = 0.0
    p95_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """The numbers of some days, oldest first, and of `all` of them together."""

    days: tuple[DayStats, ...]
    all: DayStats

    @property
    def today(self) -> DayStats:
        """Return the last of the days."""
        return self.days[-1]


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of updates that are accepted and not done, and the age of the oldest."""

    waiting: int = 0
    oldest_seconds: float = 0.0


Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn as it is stored: its record, its messages, its trace, its changes.

    Something that is no turn of its own, a press say, has no record.
    """

    record: TurnRow | None
    said: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()

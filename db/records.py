"""Plain records that repositories take and return where rows of tables do not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from agent.engine.span import Level
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace as a list shows it; `session` and `user` are keyed hashes."""

    trace_id: str
    started_at: datetime
    ended_at: datetime
    session: str
    user: str
    question: str
    outcome: str
    level: Level
    retry_count: int
    cost_usd: float
    tokens: int
    error_types: tuple[str, ...] = ()
    name: str = "chat"
    tags: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Return how long the turn took."""
        return (self.ended_at - self.started_at).total_seconds()


class TracedStep(NamedTuple):
    """One span of a trace, in numbers; `model` is empty but for requests to one."""

    name: str
    model: str
    seconds: float
    cost_usd: float


class TracedTurn(NamedTuple):
    """The numbers of a trace; the first step is the turn itself."""

    at: datetime
    name: str
    error_types: tuple[str, ...]
    steps: tuple[TracedStep, ...]

    @property
    def seconds(self) -> float:
        """Return how long the turn took."""
        return self.steps[0].seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """The traces to list: those that match all fields. `level` is that or worse."""

    since: datetime | None = None
    level: Level | None = None
    name: str = ""
    outcome: str = ""
    session: str = ""
    user: str = ""
    tags: tuple[str, ...] = ()
    disliked: bool = False


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

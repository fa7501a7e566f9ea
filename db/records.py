"""The records of turns, users, chats and updates that the database gives and takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from agent.conversation import StoredMessage
from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.span import Level
from agent.tracing.records import TraceRecord
from agent.turn import Change
from db.models import TurnRow

Verdict = Literal["liked", "disliked"]


FeedbackReason = Literal["wrong_wine", "not_what_i_asked", "wrong_facts", "tone"]


Access = Literal["allowed", "blocked"]


@dataclass(frozen=True, slots=True)
class Spending:
    """What was used since a moment, and how many further turns are under way.

    `turns` are those of everyone that asked a model, so that it can be told what one takes.
    """

    by_person: Spent = NOTHING_SPENT
    by_everyone: Spent = NOTHING_SPENT
    turns: int = 0
    persons_under_way: int = 0
    under_way: int = 0


@dataclass(frozen=True, slots=True)
class DayStats:
    """What happened on one day (UTC), or on several counted together from `day` on."""

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
    """What happened on some days, oldest first, and on `all` of them together."""

    days: tuple[DayStats, ...]
    all: DayStats

    @property
    def today(self) -> DayStats:
        """The last of the days."""
        return self.days[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """What a list of traces shows of one; `session` and `user` are keyed hashes."""

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
        """How long the turn took."""
        return (self.ended_at - self.started_at).total_seconds()


class TracedStep(NamedTuple):
    """One span of a trace, in numbers; `model` is empty but for requests to one."""

    name: str
    model: str
    seconds: float
    cost_usd: float


class TracedTurn(NamedTuple):
    """What of a trace is counted; the first step is the turn itself."""

    at: datetime
    name: str
    error_types: tuple[str, ...]
    steps: tuple[TracedStep, ...]

    @property
    def seconds(self) -> float:
        """How long the turn took."""
        return self.steps[0].seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are listed: all that is given holds of each. `level` is that or worse."""

    since: datetime | None = None
    level: Level | None = None
    name: str = ""
    outcome: str = ""
    session: str = ""
    user: str = ""
    tags: tuple[str, ...] = ()
    disliked: bool = False


@dataclass(frozen=True, slots=True)
class ChatState:
    """Where messages for a chat go: `chat_id` after any migration, unless it is unreachable."""

    chat_id: int
    unreachable: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Updates that are accepted and not done: how many, and how long the oldest has waited."""

    waiting: int = 0
    oldest_seconds: float = 0.0


Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn as it is stored: its record, its messages, its trace, what it changes.

    Something that is no turn of its own, a press say, has no record.
    """

    record: TurnRow | None
    said: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()

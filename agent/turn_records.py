"""What is kept of every turn beside the conversation: who asked, what it took, what they thought.

Budgets, statistics and the way from a message back to its trace are made of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.trace_records import Level

Verdict = Literal["liked", "disliked"]
FeedbackReason = Literal["wrong_wine", "not_what_i_asked", "wrong_facts", "tone"]
Access = Literal["allowed", "blocked"]
BroadcastState = Literal["draft", "sending", "sent", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """One turn that has ended; `turn_id` is the id of its update.

    `message_ids` are those of the answer in Telegram. Money is US dollars, times are seconds.
    """

    turn_id: int
    chat_id: int
    user_id: int
    at: datetime
    outcome: str
    seconds: float = 0.0
    requests: int = 0
    retries: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    error_types: tuple[str, ...] = ()
    trace_id: str | None = None
    root_id: str | None = None
    message_ids: tuple[int, ...] = ()


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
class Feedback:
    """What a person thinks of a turn's answer; no `verdict`: they took it back.

    `revision` counts the changes: what was delivered is known by it. `answered_at` is when the turn
    ended: however often a verdict changes, it is about that moment.
    """

    turn_id: int
    verdict: Verdict | None
    reason: FeedbackReason | None = None
    comment: str = ""
    revision: int = 0
    trace_id: str | None = None
    root_id: str | None = None
    answered_at: datetime | None = None


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


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A message of an admin to everyone; `sent` and `failed` count chats."""

    id: int
    text: str
    created_by: int
    created_at: datetime
    state: BroadcastState
    sent: int = 0
    failed: int = 0


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

    @property
    def seconds(self) -> float:
        """How long the turn took."""
        return (self.ended_at - self.started_at).total_seconds()

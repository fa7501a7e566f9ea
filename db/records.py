"""Plain records that repositories take and return where rows of tables do not fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.tracing.records import TraceRecord
from agent.turn import Change, StoredMessage
from db.models import TurnRow

Verdict = Literal["liked", "disliked"]


FeedbackReason = Literal["wrong_wine", "not_what_i_asked", "wrong_facts", "tone"]


Access = Literal["allowed", "blocked"]


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of updates that are accepted and not done, and the age of the oldest."""

    waiting: int = 0
    oldest_seconds: float = 0.0


Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn as it is stored: its record, its messages, its trace, its changes."""

    record: TurnRow
    said: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()

"""Hold the trace of a turn as plain data: its spans and scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.engine.messages import Usage
from agent.engine.span import Level, PromptRef, ScoreType, SpanType


@dataclass(slots=True)
class SpanRecord:
    """One node of a trace. Ids are 16 hex digits, times nanoseconds since the epoch (UTC).

    Of a generation `costs` are US dollars by bucket of tokens (`input`, `input_cached_tokens`,
    `output`), `tools` what it might call, and `first_token_ns` when its answer began.
    """

    span_id: str
    parent_id: str | None
    name: str
    kind: SpanType
    started_ns: int
    ended_ns: int | None = None
    input: object = None
    output: object = None
    metadata: dict[str, Any] = field(default_factory=dict)
    level: Level = "DEFAULT"
    model: str | None = None
    model_parameters: Mapping[str, Any] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    costs: Mapping[str, float] | None = None
    prompt: PromptRef | None = None
    tools: tuple[Any, ...] = ()
    first_token_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Return how long it took; 0 while it is open."""
        return ((self.ended_ns or self.started_ns) - self.started_ns) / 1e9


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score of a trace; a later score of the same name replaces it."""

    name: str
    value: float | str
    kind: ScoreType
    comment: str = ""


@dataclass(slots=True)
class TraceRecord:
    """A whole trace, the root first and every parent before its children.

    `trace_id` is 32 hex digits; `session` and `user` are keyed hashes. `names` are those of the
    people in this conversation, to be masked. `name` is the kind of turn (`chat`, `ask`, ...),
    `tags` are for filters. The words of a trace that `is_hidden` are not stored.
    """

    trace_id: str
    session: str
    user: str
    names: tuple[str, ...] = ()
    spans: list[SpanRecord] = field(default_factory=list)
    scores: dict[str, ScoreRecord] = field(default_factory=dict)
    name: str = "chat"
    tags: tuple[str, ...] = ()
    is_hidden: bool = False

    @property
    def root(self) -> SpanRecord:
        """Return the span of the turn itself."""
        return self.spans[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScore:
    """A score as it is sent; without a value it was taken back."""

    score_id: str
    trace_id: str
    observation_id: str
    name: str
    value: float | str | None
    kind: ScoreType
    comment: str
    at: datetime

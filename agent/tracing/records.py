"""A turn's trace as plain data: what is recorded while it runs and handed on when it has ended."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.engine.span import Level, PromptRef, ScoreType, SpanKind


@dataclass(slots=True)
class SpanRecord:
    """One node of a trace. Ids are 16 hex digits, times nanoseconds since the epoch (UTC)."""

    span_id: str
    parent_id: str | None
    name: str
    kind: SpanKind
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
    prompt: PromptRef | None = None

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it is open."""
        return ((self.ended_ns or self.started_ns) - self.started_ns) / 1e9


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score of a trace. The id is fixed by trace and name: the same again replaces."""

    name: str
    value: float | str
    kind: ScoreType
    comment: str = ""


@dataclass(slots=True)
class TraceRecord:
    """A whole trace, the root first and every parent before its children.

    `trace_id` is 32 hex digits; `session` and `user` are keyed hashes. `names` are what the bot
    knows people of this conversation to be called: they are masked, not shown.
    """

    trace_id: str
    session: str
    user: str
    names: tuple[str, ...] = ()
    spans: list[SpanRecord] = field(default_factory=list)
    scores: dict[str, ScoreRecord] = field(default_factory=dict)

    @property
    def root(self) -> SpanRecord:
        """The span of the turn itself."""
        return self.spans[0]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a dataset that experiments are made over, as plain JSON data."""

    id: str
    input: Any
    expected: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def score_id(trace_id: str, name: str) -> str:
    """Return the one id of a trace's score of this name."""
    return f"{trace_id}-{name}"


def children(spans: Mapping[str, SpanRecord], parent_id: str | None) -> list[SpanRecord]:
    """Return the spans right below one, in the order they began."""
    below = [span for span in spans.values() if span.parent_id == parent_id]
    return sorted(below, key=lambda span: span.started_ns)


def keyed_hash(kind: str, value: int | str, key: SecretStr | str) -> str:
    """Hash a user or a chat to 16 hex digits that only the holder of `key` can tie to the id.

    `kind` keeps a user and the private chat with the same number apart.
    """
    secret = key.get_secret_value() if isinstance(key, SecretStr) else key
    return hmac.new(secret.encode(), f"{kind}:{value}".encode(), hashlib.sha256).hexdigest()[:16]


def trace_id_of(*parts: int | str) -> str:
    """Derive the trace id of a turn from what tells it from every other: 32 hex digits."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:32]


def item_id(dataset: str, name: str) -> str:
    """Return the id of a dataset's item: the same in every run, so that none is added twice."""
    return hashlib.sha256(f"{dataset}:{name}".encode()).hexdigest()[:32]

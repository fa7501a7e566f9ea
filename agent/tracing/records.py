"""Record the trace of a turn as plain data, to be stored when the turn ends.

Recording costs a few microseconds a span; masking, encoding and sending come later. A turn that a
crash interrupted leaves nothing; it is run again, and traced whole under the ids it had.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field, SecretStr

from agent.engine.messages import TokenUsage
from agent.engine.run import PromptRef, ScoreType, Span, SpanLevel, SpanType


def keyed_hash(kind: str, value: int | str, key: SecretStr) -> str:
    """Hash a user or a chat to 16 hex digits that only the holder of `key` can tie to the id."""
    # The kind keeps a user and the private chat with the same number apart.
    named = f"{kind}:{value}".encode()
    return hmac.new(key.get_secret_value().encode(), named, hashlib.sha256).hexdigest()[:16]


def trace_id_of(*parts: int | str) -> str:
    """Derive the trace id of a turn, 32 hex digits, from the parts that identify the turn."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score of a trace; a later one with its name replaces it. The value None withdraws it."""

    name: str
    value: float | str | None
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
    spans: "list[SpanRecord]" = field(default_factory=list)
    scores: dict[str, ScoreRecord] = field(default_factory=dict)
    name: str = "chat"
    tags: tuple[str, ...] = ()
    is_hidden: bool = False

    @property
    def root(self) -> "SpanRecord":
        """Return the span of the turn itself."""
        return self.spans[0]

    def open_root(self, input: str, started_ns: int | None = None) -> "SpanRecord":
        """Open the root span of a turn. When it ends, every span of the trace has ended.

        A trace without an id gets a random one; with an id its spans have the same ids each time.
        """
        self.trace_id = self.trace_id or secrets.token_hex(16)
        return self.add("turn", "agent", started_ns=started_ns or time.time_ns(), input=input)

    def add(self, name: str, kind: SpanType, **fields: Any) -> "SpanRecord":
        """Add a span, whose id is fixed by the trace and the number of spans before it."""
        seed = f"{self.trace_id}:{len(self.spans)}".encode()
        fields["metadata"] = dict(fields.get("metadata") or {})
        span_id = hashlib.blake2b(seed, digest_size=8).hexdigest()
        span = SpanRecord(span_id, fields.pop("parent_id", None), name, kind, trace=self, **fields)
        self.spans.append(span)
        return span

    def summarize(self) -> None:
        """Set the end and the model on the root, and the tags that admins filter by."""
        root = self.root.metadata
        spans = [span for span in self.spans if not span.metadata.get("superseded")]
        # The turn lasts until its messages are sent, which is after its answer was stored.
        self.root.ended_ns = max((span.ended_ns or 0 for span in spans), default=0) or None
        generations = [
            span for span in spans if span.kind == "generation" and span.metadata.get("model")
        ]
        answered = [
            span for span in generations if span.name == "llm.answer" and span.level != "ERROR"
        ]
        is_fallback = root.get("outcome") == "fallback"
        if answered:
            root["model"] = answered[-1].metadata["model"]
            is_fallback = is_fallback or root["model"] != generations[0].metadata["model"]
        if answered or is_fallback:
            root["fallback"] = "yes" if is_fallback else "no"
        failed = [span.name for span in spans if span.kind == "tool" and span.level == "ERROR"]
        tags = [
            *(tag for tag in ("retried", "fallback") if root.get(tag) == "yes"),
            *(["resumed"] if root.get("resumed") else []),
            *(f"error:{kind}" for kind in root.get("error_types", "").split(",") if kind),
            *([f"send_error:{root['send_error']}"] if root.get("send_error") else []),
            *(f"tool_error:{name.removeprefix('tool.')}" for name in failed),
            *(f"mode:{span.metadata['mode']}" for span in generations if "mode" in span.metadata),
            *([f"model:{root['model']}"] if "model" in root else []),
        ]
        self.tags = tuple(dict.fromkeys(tags))


@dataclass(slots=True)
class SpanRecord(Span):
    """A span that is recorded. Ids are 16 hex digits, times nanoseconds since the epoch (UTC).

    Of a generation `costs` are US dollars by bucket of tokens or in `total`, None if no price is
    known; `cost_usd` is what the turn's usage counts. `tools` are what it might call,
    `first_token_ns` is when its answer began. `trace` is not stored.
    """

    recording: ClassVar[bool] = True

    span_id: str
    parent_id: str | None
    name: str
    kind: SpanType
    started_ns: int
    ended_ns: int | None = None
    input: object = None
    output: object = None
    metadata: dict[str, Any] = field(default_factory=dict)
    level: SpanLevel = "DEFAULT"
    model: str | None = None
    model_parameters: Mapping[str, Any] | None = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    costs: Mapping[str, float] | None = None
    prompt: PromptRef | None = None
    tools: tuple[Any, ...] = ()
    first_token_ns: int | None = None
    trace: Annotated[Any, Field(exclude=True)] = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """Return the duration of the span; 0 while it is open."""
        return ((self.ended_ns or self.started_ns) - self.started_ns) / 1e9

    def child(self, name: str, type: SpanType, **fields: Any) -> "SpanRecord":
        """Open a span below this one."""
        all_fields = {"parent_id": self.span_id, "started_ns": time.time_ns(), **fields}
        span: SpanRecord = self.trace.add(name, type, **all_fields)
        return span

    def update(self, **fields: Any) -> None:
        """Merge metadata, and replace the other fields; None is ignored."""
        self.metadata |= fields.pop("metadata", None) or {}
        for name, value in fields.items():
            if value is not None:
                setattr(self, name, value)

    def score(self, name: str, value: float | str, type: ScoreType, comment: str = "") -> None:
        """Score the trace; a score of the same name is replaced."""
        self.trace.scores[name] = ScoreRecord(name, value, type, comment)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None and issubclass(error, asyncio.CancelledError):
            self.update(metadata={"outcome": "stopped"})
        elif error is not None:
            self.update(level="ERROR", metadata={"error_type": error.__name__})
        now = time.time_ns()
        is_root = self.parent_id is None
        for span in self.trace.spans if is_root else [self]:
            span.ended_ns = span.ended_ns or now
        if is_root:
            self.trace.summarize()

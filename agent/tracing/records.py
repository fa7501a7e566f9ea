"""Record the trace of a turn as plain data, to be stored when the turn ends.

Recording a span costs a few microseconds. Masking, encoding and sending come later. A turn that a
crash interrupted leaves no trace. The turn is run again, and then traced as a whole with the same
ids.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from pydantic import SecretStr

from agent.engine.messages import TokenUsage
from agent.engine.run import (
    Costs,
    PromptRef,
    ScoreType,
    Span,
    SpanFields,
    SpanLevel,
    SpanType,
)

SENDING: Final = "telegram.send"
"""The name of the span in which the messages of a turn are sent, after its answer was stored."""
AMBIGUOUS: Final = "ambiguous"
"""The error of a message that may have arrived."""


def compute_keyed_hash(
    kind: str,
    value: int | str,
    key: SecretStr,
) -> str:
    """Return the hash of a user or a chat. Only the holder of `key` can find it for an id."""
    # With the kind, a user and the private chat with the same number have different hashes.
    named = f"{kind}:{value}".encode()
    secret = key.get_secret_value().encode()
    digest = hmac.new(secret, named, hashlib.sha256).hexdigest()
    return digest[:16]


def derive_trace_id(*parts: int | str) -> str:
    """Return the trace id of a turn, 32 hex digits, derived from what identifies the turn."""
    joined = ":".join(map(str, parts))
    digest = hashlib.sha256(joined.encode()).hexdigest()
    return digest[:32]


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score of a trace.

    A later score of the same name replaces it. The value None withdraws it.
    """

    name: str
    value: float | str | None
    kind: ScoreType
    comment: str = ""


@dataclass(slots=True)
class SpanRecord:
    """The fields of a span. `agent.engine.run.SpanFields` says what most of them mean.

    Ids are 16 hex digits. Times are nanoseconds since the epoch (UTC).
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
    level: SpanLevel = "DEFAULT"
    model: str | None = None
    model_parameters: Mapping[str, Any] | None = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    costs: Costs | None = None
    prompt: PromptRef | None = None
    tools: tuple[Any, ...] = ()
    first_token_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Return the duration of the span, or 0 while it is open."""
        ended_ns = self.ended_ns or self.started_ns
        return (ended_ns - self.started_ns) / 1e9


@dataclass(slots=True)
class TraceRecord:
    """A whole trace, the root first and every parent before its children.

    `trace_id` is 32 hex digits. `session` and `user` are keyed hashes. `names` are those of the
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

    @property
    def sending(self) -> SpanRecord | None:
        """Return the span in which the messages were sent, or None if they were not sent yet."""
        last = self.spans[-1]
        if last.name != SENDING:
            return None
        return last

    def open_root(self, input: str, started_ns: int | None = None) -> "OpenSpan":
        """Open the root span of a turn. When it ends, every span of the trace has ended.

        A trace without an id gets a random id. With an id, its spans have the same ids each time.
        """
        self.trace_id = self.trace_id or secrets.token_hex(16)
        root = self.open_span("turn", "agent")
        root.update(input=input, started_ns=started_ns)
        return root

    def open_span(
        self,
        name: str,
        kind: SpanType,
        parent: SpanRecord | None = None,
    ) -> "OpenSpan":
        """Open a span.

        The id of the span depends only on the trace and the number of spans before it.
        """
        number = len(self.spans)
        seed = f"{self.trace_id}:{number}".encode()
        record = SpanRecord(
            span_id=hashlib.blake2b(seed, digest_size=8).hexdigest(),
            parent_id=parent.span_id if parent else None,
            name=name,
            kind=kind,
            started_ns=time.time_ns(),
        )
        self.spans.append(record)
        return OpenSpan(self, record)

    def end(self) -> None:
        """End every span that is open, and summarize the trace."""
        now = time.time_ns()
        for span in self.spans:
            span.ended_ns = span.ended_ns or now
        self.summarize()

    def summarize(self) -> None:
        """Set the end and the model of an ended trace on its root, and the tags for filters."""
        root = self.root
        if self.sending is not None:
            _note_send_error(root, self.sending)
        # The spans of an earlier try of the turn are superseded.
        spans = [span for span in self.spans if not span.metadata.get("superseded")]
        # The turn lasts until its messages are sent, which is after its answer was stored.
        ends = [span.ended_ns or 0 for span in spans]
        root.ended_ns = max(ends)
        _note_models(root, spans)
        tags = dict.fromkeys(_find_tags(root, spans))
        self.tags = tuple(tags)


def _note_models(root: SpanRecord, spans: Sequence[SpanRecord]) -> None:
    """Set the model that answered on the root, and whether the answer is a fallback.

    A fallback is an answer without a model, or of another model than the first that was asked.
    """
    first_model: str | None = None
    answering_model: str | None = None
    for span in spans:
        if span.kind != "generation" or "model" not in span.metadata:
            continue
        model = span.metadata["model"]
        if first_model is None:
            first_model = model
        if span.name == "llm.answer" and span.level != "ERROR":
            answering_model = model
    is_fallback = root.metadata.get("outcome") == "fallback"
    if answering_model is not None:
        root.metadata["model"] = answering_model
        is_fallback = is_fallback or answering_model != first_model
    root.metadata["fallback"] = is_fallback


def _note_send_error(root: SpanRecord, sending: SpanRecord) -> None:
    """Set on the root that messages were not sent. Those that may have arrived do not count."""
    error = sending.metadata.get("error")
    if error is None or error == AMBIGUOUS:
        return
    root.level = "ERROR"
    root.metadata["send_error"] = error


def _find_tags(root: SpanRecord, spans: Sequence[SpanRecord]) -> Iterator[str]:
    """Yield the tags that admins filter by, such as "retried" or "error:grounding"."""
    metadata = root.metadata
    for flag in ("retried", "fallback", "resumed"):
        if metadata.get(flag):
            yield flag
    for error_type in metadata.get("error_types", ()):
        yield f"error:{error_type}"
    if "send_error" in metadata:
        yield f"send_error:{metadata['send_error']}"
    for span in spans:
        if span.kind == "tool" and span.level == "ERROR":
            tool_name = span.name.removeprefix("tool.")
            yield f"tool_error:{tool_name}"
        if "mode" in span.metadata:
            yield f"mode:{span.metadata['mode']}"
    if "model" in metadata:
        yield f"model:{metadata['model']}"


class OpenSpan(Span):
    """A span that writes into a `record` of its `trace`."""

    recording = True

    def __init__(self, trace: TraceRecord, record: SpanRecord) -> None:
        self.trace: TraceRecord = trace
        self.record = record

    def child(
        self, name: str, type: SpanType, /, **fields: Unpack[SpanFields]
    ) -> "OpenSpan":
        """Open a span below this one."""
        span = self.trace.open_span(name, type, parent=self.record)
        span.update(**fields)
        return span

    def update(self, **fields: Unpack[SpanFields]) -> None:
        """Add to the metadata of the span, and replace its other fields."""
        self.record.metadata |= fields.get("metadata") or {}
        for name, value in fields.items():
            if name != "metadata" and value is not None:
                setattr(self.record, name, value)

    def score(
        self,
        name: str,
        value: float | str,
        type: ScoreType,
        comment: str = "",
    ) -> None:
        """Score the trace. An earlier score of the same name is replaced."""
        self.trace.scores[name] = ScoreRecord(name, value, type, comment)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """End the span, or the trace if it is the root, and record the error that ended it."""
        if error is asyncio.CancelledError:
            self.update(metadata={"outcome": "stopped"})
        elif error is not None:
            self.update(level="ERROR", metadata={"error_type": error.__name__})
        if self.record is self.trace.root:
            self.trace.end()
        else:
            self.record.ended_ns = self.record.ended_ns or time.time_ns()

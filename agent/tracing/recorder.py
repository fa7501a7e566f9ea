"""Record the trace of a turn as plain data, to be stored when the turn ends.

Recording costs a few microseconds a span; masking, encoding and sending come later. A turn that a
crash interrupted leaves nothing; it is run again, and traced whole under the ids it had.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import SecretStr

from agent.engine.span import ScoreType, Span, SpanType
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord

MAX_TAG_CHARS: Final = 100
MAX_TAGS: Final = 40
MAX_FAILED: Final = 100  # traces of turns that failed and are run again


def keyed_hash(kind: str, value: int | str, key: SecretStr | str) -> str:
    """Hash a user or a chat to 16 hex digits that only the holder of `key` can tie to the id.

    `kind` keeps a user and the private chat with the same number apart.
    """
    secret = key.get_secret_value() if isinstance(key, SecretStr) else key
    return hmac.new(secret.encode(), f"{kind}:{value}".encode(), hashlib.sha256).hexdigest()[:16]


def trace_id_of(*parts: int | str) -> str:
    """Derive the trace id of a turn, 32 hex digits, from the parts that identify the turn."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:32]


class Recorder:
    """Open the traces of turns, and hold those of failed turns until they are run again."""

    def __init__(self) -> None:
        self._failed: dict[str, TraceRecord] = {}

    def turn(
        self,
        trace: TraceRecord,
        input: str,
        *,
        started_ns: int | None = None,
        goes_on: bool = False,
    ) -> "RootSpan":
        """Open the root span of a turn.

        A trace without an id gets a random one; with an id its spans have the same ids each time.
        If the turn `goes_on`, it adds to the trace that it left when it failed.
        """
        failed = self._failed.pop(trace.trace_id, None)
        if failed is not None and goes_on:
            return RootSpan(failed)
        trace.trace_id = trace.trace_id or secrets.token_hex(16)
        started = started_ns or time.time_ns()
        trace.spans.append(SpanRecord(_span_id(trace), None, "turn", "agent", started, input=input))
        return RootSpan(trace)

    def keep_for_retry(self, trace: TraceRecord) -> None:
        """Hold the trace of a turn that failed until it is run again, or given up."""
        self._failed[trace.trace_id] = trace
        if len(self._failed) > MAX_FAILED:
            del self._failed[next(iter(self._failed))]


class RecordedSpan(Span):
    """A span of a trace that is recorded; see `agent.engine.span.Span`."""

    __slots__ = ("_record", "_trace")

    recording: ClassVar[bool] = True

    def __init__(self, trace: TraceRecord, record: SpanRecord) -> None:
        self._trace = trace
        self._record = record

    def __enter__(self) -> "RecordedSpan":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self.update(level="ERROR", metadata={"error_type": error.__name__})
        if self._record.ended_ns is None:
            self._record.ended_ns = time.time_ns()

    @property
    def trace(self) -> TraceRecord:
        """Return the trace as far as it is recorded."""
        return self._trace

    @property
    def trace_id(self) -> str:
        """Return the id of the trace, 32 hex digits."""
        return self._trace.trace_id

    @property
    def span_id(self) -> str:
        """Return the id of this span, 16 hex digits."""
        return self._record.span_id

    def child(
        self,
        name: str,
        type: SpanType,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "RecordedSpan":
        """Open a span below this one."""
        record = SpanRecord(
            span_id=_span_id(self._trace),
            parent_id=self._record.span_id,
            name=name,
            kind=type,
            started_ns=time.time_ns(),
            input=input,
            metadata=dict(metadata or {}),
        )
        self._trace.spans.append(record)
        return RecordedSpan(self._trace, record)

    def update(self, **fields: Any) -> None:
        """Merge metadata, and replace the other fields; None is ignored."""
        self._record.metadata.update(fields.pop("metadata", None) or {})
        for name, value in fields.items():
            if value is not None:
                setattr(self._record, name, value)

    def score(self, name: str, value: float | str, type: ScoreType, comment: str = "") -> None:
        """Score the trace; a score of the same name is replaced."""
        self._trace.scores[name] = ScoreRecord(name, value, type, comment)


class RootSpan(RecordedSpan):
    """The span of a turn. When it ends, every span of its `trace` has ended."""

    __slots__ = ()

    def __init__(self, trace: TraceRecord) -> None:
        super().__init__(trace, trace.root)
        self._record.ended_ns = None

    def __enter__(self) -> "RootSpan":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        super().__exit__(error)
        for span in self._trace.spans:
            if span.ended_ns is None:
                span.ended_ns = self._record.ended_ns
        summarize(self._trace)

    def add_superseded(self, trace: TraceRecord) -> None:
        """Add the spans of an earlier try of the turn, which another message made void."""
        for span in trace.spans[1:]:
            span.level, span.metadata["superseded"] = "DEFAULT", True
        self._trace.spans += trace.spans[1:]


def summarize(trace: TraceRecord) -> None:
    """Set the end and the model on the root, and the tags that admins filter by on the trace."""
    root, spans = trace.root.metadata, trace.spans
    # The turn lasts until its messages are sent, which is after its answer was stored.
    trace.root.ended_ns = max((span.ended_ns or 0 for span in spans), default=0) or None
    asked = [span for span in spans if span.kind == "generation" and span.metadata.get("model")]
    answered = [span for span in asked if span.name == "llm.answer" and span.level != "ERROR"]
    if answered:
        first, last = asked[0].metadata["model"], answered[-1].metadata["model"]
        is_fallback = root.get("outcome") == "fallback" or last != first
        root |= {"model": last, "fallback": "yes" if is_fallback else "no"}
    failed_tools = [span.name for span in spans if span.kind == "tool" and span.level == "ERROR"]
    tags = [
        *(tag for tag in ("retried", "fallback") if root.get(tag) == "yes"),
        *(["resumed"] if root.get("resumed") else []),
        *([f"start:{root['start']}"] if root.get("start") else []),
        *(f"error:{kind}" for kind in _kinds(root.get("error_types"))),
        *(f"send_error:{kind}" for kind in _kinds(root.get("send_error"))),
        *(f"tool_error:{name.removeprefix('tool.')}" for name in failed_tools),
        *(f"mode:{span.metadata['mode']}" for span in asked if "mode" in span.metadata),
        *([f"model:{root['model']}"] if "model" in root else []),
    ]
    trace.tags = tuple(tag[:MAX_TAG_CHARS] for tag in dict.fromkeys(tags))[:MAX_TAGS]


def _kinds(listed: object) -> list[str]:
    return [kind.strip() for kind in str(listed or "").split(",") if kind.strip()]


def _span_id(trace: TraceRecord) -> str:
    """Return the id of the next span: fixed by the trace and the number of spans before it."""
    seed = f"{trace.trace_id}:{len(trace.spans)}".encode()
    return hashlib.blake2b(seed, digest_size=8).hexdigest()

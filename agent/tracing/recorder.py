"""What records a turn's trace, as plain data, which whoever runs the turn keeps when it has ended.

While a turn runs this costs a few microseconds a span; all that is dear (masking, encoding,
sending) comes later. A turn that a crash interrupted leaves nothing; run again, it is traced whole,
under the same ids.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from pydantic import SecretStr

from agent.engine.span import ScoreType, Span, SpanType
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord

LONGEST_TAG: Final = 100  # characters
MOST_TAGS: Final = 40
MOST_HELD: Final = 100  # traces of turns that failed and are run again


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a dataset that experiments are made over, as plain JSON data."""

    id: str
    input: Any
    expected: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


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


class Recorder:
    """Opens the traces of turns, and holds those of turns that failed until they are given up."""

    def __init__(self) -> None:
        self._held: dict[str, TraceRecord] = {}

    def turn(
        self,
        *,
        input: str,
        session: str,
        user: str,
        trace_id: str | None = None,
        name: str = "chat",
        names: Sequence[str] = (),
        started_ns: int | None = None,
        goes_on: bool = False,
    ) -> "RootSpan":
        """Open the root span of one turn; session and user go onto every span below it.

        With a `trace_id` of 32 hex digits the turn has the same ids each time it is run. One that
        `goes_on` adds to the trace that it left when it failed.
        `name` says what it is, `names` are masked wherever they stand, `started_ns` is when its
        update was accepted; now unless given.
        """
        failed = self._held.pop(trace_id, None) if trace_id else None
        if failed is not None and goes_on:
            return RootSpan(failed)
        trace = TraceRecord(
            trace_id or secrets.token_hex(16), session, user, tuple(names), name=name
        )
        started = started_ns or time.time_ns()
        trace.spans.append(SpanRecord(_span_id(trace), None, "turn", "agent", started, input=input))
        return RootSpan(trace)

    def hold(self, trace: TraceRecord) -> None:
        """Hold the trace of a turn that failed until it is run again, or given up."""
        self._held[trace.trace_id] = trace
        if len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]


class RecordedSpan(Span):
    """One node of a trace that is recorded; see `agent.engine.span.Span`."""

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
        """The trace as far as it is recorded."""
        return self._trace

    @property
    def trace_id(self) -> str:
        """The id of the trace, 32 hex digits."""
        return self._trace.trace_id

    @property
    def span_id(self) -> str:
        """The id of this span, 16 hex digits."""
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
            metadata=dict(metadata) if metadata else {},
        )
        self._trace.spans.append(record)
        return RecordedSpan(self._trace, record)

    def update(self, **fields: Any) -> None:
        """Add to what is known; metadata is merged, the rest replaced."""
        self._record.metadata.update(fields.pop("metadata", None) or {})
        for name, value in fields.items():
            if value is not None:
                setattr(self._record, name, value)

    def score(self, name: str, value: float | str, type: ScoreType, comment: str = "") -> None:
        """Score the trace on its root span, where the list of traces shows and filters it."""
        self._trace.scores[name] = ScoreRecord(name, value, type, comment)


class RootSpan(RecordedSpan):
    """The span of a turn: when it ends, `trace` is whole; nobody has stored it yet."""

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
        tell_root(self._trace)

    def add_superseded(self, trace: TraceRecord) -> None:
        """Keep what an earlier try of the turn did, before a further message made it void."""
        for span in trace.spans[1:]:
            span.level, span.metadata["superseded"] = "DEFAULT", True
        self._trace.spans += trace.spans[1:]


def tell_root(trace: TraceRecord) -> None:
    """Put onto the root which model answered, and onto the trace the tags that it is found by."""
    said, spans = trace.root.metadata, trace.spans
    # A turn lasts until its messages are sent, which is after what it came to was stored.
    trace.root.ended_ns = max((span.ended_ns or 0 for span in spans), default=0) or None
    asked = [span for span in spans if span.kind == "generation" and span.metadata.get("model")]
    answered = [span for span in asked if span.name == "llm.answer" and span.level != "ERROR"]
    if answered:
        first, last = asked[0].metadata["model"], answered[-1].metadata["model"]
        fell_back = said.get("outcome") == "fallback" or last != first
        said |= {"model": last, "fallback": "yes" if fell_back else "no"}
    tags = {
        **{tag: None for tag in ("retried", "fallback") if said.get(tag) == "yes"},
        **({"resumed": None} if said.get("resumed") else {}),
        **({f"start:{said['start']}": None} if said.get("start") else {}),
        **{f"error:{kind}": None for kind in _listed(said.get("error_types"))},
        **{f"send_error:{kind}": None for kind in _listed(said.get("send_error"))},
        **{
            f"tool_error:{span.name.removeprefix('tool.')}": None
            for span in spans
            if span.kind == "tool" and span.level == "ERROR"
        },
        **{f"mode:{span.metadata['mode']}": None for span in asked if "mode" in span.metadata},
        **({"model:" + str(said["model"]): None} if "model" in said else {}),
    }
    trace.tags = tuple(tag[:LONGEST_TAG] for tag in tags)[:MOST_TAGS]


def _listed(kinds: object) -> list[str]:
    return [kind.strip() for kind in str(kinds or "").split(",") if kind.strip()]


def _span_id(trace: TraceRecord) -> str:
    """The id of the next span: fixed by the trace and the spans before it."""
    seed = f"{trace.trace_id}:{len(trace.spans)}".encode()
    return hashlib.blake2b(seed, digest_size=8).hexdigest()

"""A turn's trace as plain data, and what records it: kept until the turn ends, then handed on.

While a turn runs this costs a few microseconds a span; all that is dear (masking, encoding,
sending) happens behind the sinks. A turn that a crash interrupted leaves nothing; run again, it is
traced whole, under the same ids.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Unpack

from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.engine.span import NO_SPAN, Level, PromptRef, ScoreType, Span, SpanKind, SpanUpdate

CLOSE_SECONDS: Final = 2.5  # of the 5 s that stopping the whole process may take
MOST_HELD: Final = 100  # traces of turns that failed and are run again


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


HandOn = Callable[[TraceRecord], None]


class TraceSink(Protocol):
    """Where finished traces go."""

    @property
    def dropped_spans(self) -> int:
        """Count the spans that never got there."""

    def write(self, trace: TraceRecord) -> None:
        """Take a finished trace. Returns at once and never raises."""

    def close(self, deadline: float) -> None:
        """Deliver what is left until `deadline` (`time.monotonic`), and stop."""


class Recorder:
    """Records turns for `sinks`; without any nothing is kept."""

    def __init__(self, *sinks: TraceSink) -> None:
        self._sinks = sinks
        self._held: dict[str, TraceRecord] = {}

    def turn(
        self,
        *,
        input: str,
        session: str,
        user: str,
        trace_id: str | None = None,
        names: Sequence[str] = (),
        resumable: bool = False,
        goes_on: bool = False,
    ) -> AbstractContextManager[Span]:
        """Open the root span of one turn; session and user go onto every span below it.

        With a `trace_id` of 32 hex digits the turn has the same ids each time it is run. One that
        is `resumable` leaves no trace when it is cancelled: it is traced when it is run again. What
        it leaves when it fails is kept until then; a turn that `goes_on` adds to that.
        `names` are masked wherever they stand.
        """
        if not self._sinks:
            return NO_SPAN
        failed = self._held.pop(trace_id, None) if trace_id else None
        if failed is None or not goes_on:
            trace = TraceRecord(trace_id or secrets.token_hex(16), session, user, tuple(names))
            root = SpanRecord(_span_id(trace), None, "turn", "agent", time.time_ns(), input=input)
            trace.spans.append(root)
        else:
            trace = failed
        return RootSpan(trace, self._ended, self._hold if resumable else None)

    @property
    def dropped_spans(self) -> int:
        """Count the spans that never got where they should."""
        return sum(sink.dropped_spans for sink in self._sinks)

    async def close(self) -> None:
        """Deliver what is left, for at most 5 s, and stop. Never raises."""
        deadline = time.monotonic() + CLOSE_SECONDS
        await asyncio.gather(*(asyncio.to_thread(sink.close, deadline) for sink in self._sinks))

    def _hold(self, trace: TraceRecord) -> None:
        """Keep what failed until the turn is run again: then it is the same trace."""
        self._held[trace.trace_id] = trace
        if len(self._held) > MOST_HELD:
            self._ended(self._held.pop(next(iter(self._held))))

    def _ended(self, trace: TraceRecord) -> None:
        for sink in self._sinks:
            sink.write(trace)


NO_TRACE: Final = Recorder()
"""The recorder of an installation that traces nothing."""


class RecordedSpan:
    """One node of a trace that is recorded; see `agent.engine.span.Span`."""

    __slots__ = ("_record", "_trace")

    recording: Final = True

    def __init__(self, trace: TraceRecord, record: SpanRecord) -> None:
        self._trace = trace
        self._record = record

    def __enter__(self) -> "RecordedSpan":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self.update(level="ERROR", metadata={"error_type": error.__name__})
        self._record.ended_ns = time.time_ns()

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
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "RecordedSpan":
        """Open a span below this one."""
        record = SpanRecord(
            span_id=_span_id(self._trace),
            parent_id=self._record.span_id,
            name=name,
            kind=kind,
            started_ns=time.time_ns(),
            input=input,
            metadata=dict(metadata) if metadata else {},
        )
        self._trace.spans.append(record)
        return RecordedSpan(self._trace, record)

    def update(self, **fields: Unpack[SpanUpdate]) -> None:
        """Add to what is known; metadata is merged, the rest replaced."""
        self._record.metadata.update(fields.pop("metadata", None) or {})
        for name, value in fields.items():
            if value is not None:
                setattr(self._record, name, value)

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Score the trace on its root span, where the list of traces shows and filters it."""
        self._trace.scores[name] = ScoreRecord(name, value, kind, comment)


class RootSpan(RecordedSpan):
    """The span of a turn: when it ends, the trace is handed on to `ended`.

    With `hold` the turn is resumable: `hold` gets the trace if it fails, nobody if it is cancelled.
    """

    __slots__ = ("_ended", "_hold")

    def __init__(self, trace: TraceRecord, ended: HandOn, hold: HandOn | None) -> None:
        super().__init__(trace, trace.root)
        self._ended = ended
        self._hold = hold

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        super().__exit__(error)
        if self._hold is not None and error is not None and issubclass(error, CancelledError):
            return
        for span in self._trace.spans:
            if span.ended_ns is None:
                span.ended_ns = self._record.ended_ns
        hand_on = self._hold if self._hold is not None and error is not None else self._ended
        hand_on(self._trace)


def _span_id(trace: TraceRecord) -> str:
    """The id of the next span: fixed by the trace and the spans before it."""
    seed = f"{trace.trace_id}:{len(trace.spans)}".encode()
    return hashlib.blake2b(seed, digest_size=8).hexdigest()

"""The tracer that records: a turn's trace is kept as plain data until it ends, then handed on.

While a turn runs this costs a few microseconds a span; all that is dear (masking, encoding,
sending) happens behind the sinks. A turn that a crash interrupted leaves nothing; run again, it is
traced whole, under the same ids.
"""

import asyncio
import hashlib
import secrets
import time
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from agent.messages import Usage
from agent.tracing.records import (
    Level,
    PromptRef,
    ScoreRecord,
    ScoreType,
    SpanKind,
    SpanRecord,
    TraceRecord,
)

CLOSE_SECONDS: Final = 4.5  # within the 5 s that stopping may take


class TraceSink(Protocol):
    """Where finished traces go."""

    @property
    def dropped_spans(self) -> int:
        """How many spans never got there."""
        ...

    def write(self, trace: TraceRecord) -> None:
        """Take a finished trace. Returns at once and never raises."""
        ...

    def close(self, deadline: float) -> None:
        """Deliver what is left until `deadline` (`time.monotonic`), and stop."""
        ...


class Recorder:
    """Records turns for `sinks`; see `agent.tracing.Tracer`."""

    def __init__(self, *sinks: TraceSink) -> None:
        self._sinks = sinks

    def turn(
        self,
        *,
        input: str,
        session: str,
        user: str,
        trace_id: str | None = None,
        names: Sequence[str] = (),
        resumable: bool = False,
    ) -> "RootSpan":
        """The root span of one turn."""
        trace = TraceRecord(trace_id or secrets.token_hex(16), session, user, tuple(names))
        return RootSpan(trace, input, self._ended, resumable=resumable)

    @property
    def dropped_spans(self) -> int:
        """How many spans never got where they should."""
        return sum(sink.dropped_spans for sink in self._sinks)

    async def close(self) -> None:
        """Deliver what is left, for at most 5 s, and stop. Never raises."""
        deadline = time.monotonic() + CLOSE_SECONDS
        await asyncio.gather(*(asyncio.to_thread(sink.close, deadline) for sink in self._sinks))

    def _ended(self, trace: TraceRecord) -> None:
        for sink in self._sinks:
            sink.write(trace)


class RecordedSpan:
    """One node of a trace that is recorded; see `agent.tracing.Span`."""

    __slots__ = ("_record", "_trace")

    recording: Final = True

    def __init__(self, trace: TraceRecord, record: SpanRecord) -> None:
        self._trace = trace
        self._record = record
        trace.spans.append(record)

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
        """A span below this one."""
        return RecordedSpan(
            self._trace,
            SpanRecord(
                span_id=_span_id(self._trace),
                parent_id=self._record.span_id,
                name=name,
                kind=kind,
                started_ns=time.time_ns(),
                input=input,
                metadata=dict(metadata) if metadata else {},
            ),
        )

    def update(
        self,
        *,
        name: str | None = None,
        output: object = None,
        metadata: Mapping[str, Any] | None = None,
        level: Level | None = None,
        model: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        prompt: PromptRef | None = None,
    ) -> None:
        """Add to what is known; metadata is merged, the rest replaced."""
        record = self._record
        record.name = name or record.name
        record.output = record.output if output is None else output
        record.level = level or record.level
        record.model = model or record.model
        record.usage = usage or record.usage
        record.cost_usd = record.cost_usd if cost_usd is None else cost_usd
        record.prompt = prompt or record.prompt
        if metadata:
            record.metadata.update(metadata)

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Score the trace on its root span, where the list of traces shows and filters it."""
        self._trace.scores[name] = ScoreRecord(name, value, kind, comment)


class RootSpan(RecordedSpan):
    """The span of a turn: when it ends, the trace is handed on."""

    __slots__ = ("_ended", "_resumable")

    def __init__(
        self,
        trace: TraceRecord,
        input: str,
        ended: Callable[[TraceRecord], None],
        *,
        resumable: bool,
    ) -> None:
        record = SpanRecord(_span_id(trace), None, "turn", "agent", time.time_ns(), input=input)
        super().__init__(trace, record)
        self._ended = ended
        self._resumable = resumable

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        super().__exit__(error)
        if self._resumable and error is not None and issubclass(error, CancelledError):
            return
        for span in self._trace.spans:
            if span.ended_ns is None:
                span.ended_ns = self._record.ended_ns
        self._ended(self._trace)


def _span_id(trace: TraceRecord) -> str:
    """The id of the next span: fixed by the trace and the spans before it."""
    seed = f"{trace.trace_id}:{len(trace.spans)}".encode()
    return hashlib.blake2b(seed, digest_size=8).hexdigest()

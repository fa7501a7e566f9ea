"""What an admin reads later: one trace per turn.

`spans` holds the protocols and the tracer that keeps nothing, `recorder` the one that records a
turn whole and hands it on when it has ended, `records` what it hands on. The picture of a trace,
with all names, is in `docs/tracing.md`.
"""

from agent.tracing.recorder import Recorder, TraceSink
from agent.tracing.records import (
    Known,
    Level,
    PromptRef,
    ScoreRecord,
    ScoreType,
    SpanKind,
    SpanRecord,
    TraceRecord,
)
from agent.tracing.spans import (
    NO_SPAN,
    NO_TRACE,
    NoSpan,
    NoTracer,
    Span,
    Tracer,
    current_span,
    keyed_hash,
    trace_id_of,
)

__all__ = [
    "NO_SPAN",
    "NO_TRACE",
    "Known",
    "Level",
    "NoSpan",
    "NoTracer",
    "PromptRef",
    "Recorder",
    "ScoreRecord",
    "ScoreType",
    "Span",
    "SpanKind",
    "SpanRecord",
    "TraceRecord",
    "TraceSink",
    "Tracer",
    "current_span",
    "keyed_hash",
    "trace_id_of",
]

"""Between traces and the JSON they are kept as. Pure.

What is kept of a trace is plain JSON: `plain` says what becomes of other values. The names that
are to be masked are not kept, so that nothing stands there that the spans do not show.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent.engine.messages import Usage
from agent.engine.trace_records import PromptRef, ScoreRecord, SpanRecord, TraceRecord
from db.search_text import storable

LONGEST_QUESTION: Final = 200  # characters, in the list
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Json = dict[str, Any]


def to_row(trace: TraceRecord) -> Json:
    """The columns of a trace."""
    root = trace.root
    said = root.metadata
    return {
        "trace_id": trace.trace_id,
        "started_at": moment(root.started_ns),
        "ended_at": moment(root.started_ns if root.ended_ns is None else root.ended_ns),
        "session": storable(trace.session),
        "user": storable(trace.user),
        "question": _question(root.input),
        "outcome": storable(str(said.get("outcome") or "")),
        "level": root.level,
        "retry_count": _number(said.get("retry_count")),
        "cost_usd": _cost(trace),
        "tokens": sum(span.usage.total_tokens for span in trace.spans if span.usage),
        "error_types": _error_types(said),
        "record": to_json(trace),
    }


def to_json(trace: TraceRecord) -> Json:
    """A trace as JSON, without the names to be masked."""
    return {
        "trace_id": trace.trace_id,
        "session": storable(trace.session),
        "user": storable(trace.user),
        "spans": plain(trace.spans),
        "scores": plain(list(trace.scores.values())),
    }


def from_json(record: Mapping[str, Any]) -> TraceRecord:
    """The trace that `to_json` wrote."""
    scores = (ScoreRecord(**score) for score in record["scores"])
    return TraceRecord(
        trace_id=record["trace_id"],
        session=record["session"],
        user=record["user"],
        spans=[_span(span) for span in record["spans"]],
        scores={score.name: score for score in scores},
    )


def plain(value: object) -> Any:
    """A value as JSON has it: what JSON does not know becomes its text, also NaN and infinity."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {storable(str(key)): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return storable(str(value))


def moment(nanoseconds: int) -> datetime:
    """A moment of a span, to the microsecond."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _span(span: Json) -> SpanRecord:
    usage, prompt = span["usage"], span["prompt"]
    return SpanRecord(
        **span
        | {
            "usage": Usage(**usage) if usage is not None else None,
            "prompt": PromptRef(**prompt) if prompt is not None else None,
        }
    )


def _question(asked: object) -> str:
    text = asked if isinstance(asked, str) else "" if asked is None else str(plain(asked))
    return " ".join(storable(text[: LONGEST_QUESTION * 2]).split())[:LONGEST_QUESTION]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _cost(trace: TraceRecord) -> float:
    """What the turn says that it cost; else what its spans say."""
    said = trace.root.metadata.get("cost_usd")
    if isinstance(said, int | float) and math.isfinite(said):
        return float(said)
    return _sum(span.cost_usd for span in trace.spans)


def _sum(costs: Iterable[float | None]) -> float:
    return sum(cost for cost in costs if cost is not None and math.isfinite(cost))


def _error_types(said: Mapping[str, Any]) -> list[str]:
    """What went wrong in the turn and its delivery; the exception that ended it, if nothing did."""
    names = str(said.get("error_types") or said.get("error_type") or "").split(",")
    names.append(str(said.get("send_error") or ""))
    return [storable(name.strip()) for name in names if name.strip()]

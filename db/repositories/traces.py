"""The local store of traces, over SQL: what an admin sees without Langfuse.

What is kept of a trace is plain JSON: `plain` says what becomes of other values. The names that
are to be masked are not kept, so that nothing stands there that the spans do not show.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import RowMapping, case, delete, select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agent.engine.span import Level
from agent.repositories import TraceSummary
from agent.tracing.exporter import Exporter, RetryLater
from agent.tracing.recorder import TraceRecord
from db.engine import SqlRepository
from db.models import TraceRow, storable, upsert

SAVE_SECONDS: Final = 10.0
LONGEST_QUESTION: Final = 200  # characters, in the list
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_RECORD: Final = TypeAdapter(TraceRecord)

Json = dict[str, Any]
Save = Callable[[Sequence[TraceRecord]], Awaitable[None]]

FAILING_FIRST: Final[dict[Level, int]] = {"ERROR": 0, "WARNING": 1, "DEFAULT": 2}
SUMMARY: Final = tuple(getattr(TraceRow, each.name) for each in fields(TraceSummary))


class SqlTraceStore(SqlRepository):
    """Traces in the database, on SQLite and Postgres alike. Writes commit."""

    async def save(self, traces: Sequence[TraceRecord]) -> None:
        """Keep finished traces, all or none; one that is kept already is replaced."""
        rows = [to_row(trace) for trace in {each.trace_id: each for each in traces}.values()]
        if not rows:
            return
        await self._sessions.write(lambda on: on.execute(upsert(on, TraceRow), rows))

    async def get(self, trace_id: str) -> TraceRecord:
        """The trace with this id, or the only one whose id begins so.

        Raises:
            LookupError: none does, or several do; the message says which.
        """
        begins = TraceRow.trace_id.startswith(trace_id.lower(), autoescape=True)
        query = select(TraceRow.trace_id).where(begins).order_by(TraceRow.trace_id).limit(3)
        async with self._sessions() as session:
            ids = (await session.scalars(query)).all() if trace_id else ()
            if len(ids) == 1 and (row := await session.get(TraceRow, ids[0])):
                return from_json(row.record)
        if not ids:
            raise LookupError(f"there is no trace {trace_id!r} in the local store")
        raise LookupError(f"more than one trace begins with {trace_id!r}: {', '.join(ids)}")

    async def summaries(
        self,
        limit: int = 20,
        *,
        failing_first: bool = True,
        since: datetime | None = None,
        level: Level | None = None,
    ) -> list[TraceSummary]:
        """The newest traces, at most `limit`; with `failing_first` the worst before all others.

        Only those since a moment, and those of `level` or worse, if given.
        """
        query = select(*SUMMARY).limit(max(limit, 0))
        if since is not None:
            query = query.where(TraceRow.started_at >= since)
        if level is not None:
            as_bad = [each for each in FAILING_FIRST if FAILING_FIRST[each] <= FAILING_FIRST[level]]
            query = query.where(TraceRow.level.in_(as_bad))
        if failing_first:
            query = query.order_by(case(FAILING_FIRST, value=TraceRow.level, else_=2))
        query = query.order_by(TraceRow.started_at.desc(), TraceRow.trace_id)
        async with self._sessions() as session:
            return [_summary(row) for row in (await session.execute(query)).mappings()]

    async def forget(self, older_than: timedelta) -> int:
        """Delete traces that began earlier; how many there were."""
        old = TraceRow.started_at < self._now() - older_than
        return await self._write(delete(TraceRow).where(old))


def _summary(row: RowMapping) -> TraceSummary:
    return TraceSummary(**dict(row) | {"error_types": tuple(row["error_types"])})


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
    kept: Json = plain(replace(trace, names=()))
    return kept


def from_json(record: Mapping[str, Any]) -> TraceRecord:
    """The trace that `to_json` wrote."""
    return _RECORD.validate_python(record)


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
    costs = (span.cost_usd for span in trace.spans)
    return sum(cost for cost in costs if cost is not None and math.isfinite(cost))


def _error_types(said: Mapping[str, Any]) -> list[str]:
    """What went wrong in the turn and its delivery; the exception that ended it, if nothing did."""
    names = str(said.get("error_types") or said.get("error_type") or "").split(",")
    names.append(str(said.get("send_error") or ""))
    return [storable(name.strip()) for name in names if name.strip()]


def store_sink(save: Save, prepare: Callable[[TraceRecord], TraceRecord]) -> Exporter:
    """Open a sink that has `save` keep what `prepare` leaves of a trace, on this event loop."""
    loop = asyncio.get_running_loop()

    async def keep(traces: Sequence[TraceRecord]) -> None:
        await save(traces)

    def send(traces: Sequence[TraceRecord]) -> None:
        shown = [prepare(trace) for trace in traces]
        saving = asyncio.run_coroutine_threadsafe(keep(shown), loop)
        try:
            saving.result(SAVE_SECONDS)
        except NotInTime:
            saving.cancel()
            raise RetryLater("it does not answer") from None
        except (InterfaceError, OperationalError, PoolTimeout, OSError) as error:
            raise RetryLater(type(error).__name__) from None

    return Exporter(send, where="the database")

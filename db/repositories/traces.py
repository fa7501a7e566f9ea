"""Store traces: admins read them here, and from here they are sent to Langfuse.

A trace is masked, and stored in the transaction that ends its turn.
"""

import json
import logging
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import starmap
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_json
from sqlalchemy import (
    Select,
    String,
    case,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.engine.span import Level
from agent.text import storable
from agent.tracing.records import TraceRecord
from db.engine import Sessions, SqlRepository, count_rows
from db.models import TraceRow, TurnRow, loaded, table_of, upsert, utc_now
from db.records import TracedStep, TracedTurn, TraceFilter, TraceSummary
from db.repositories.queues import KEPT, REFUSED, WAITING, RowQueue
from db.repositories.scores import forget_scores, save_scores, save_verdict, scores_of

log = logging.getLogger(__name__)

MAX_QUESTION_CHARS: Final = 200  # in the list
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ROWS_AT_ONCE: Final = 1000

_RECORD: Final = TypeAdapter(TraceRecord)

Json = dict[str, Any]
Prepare = Callable[[TraceRecord], TraceRecord]

T: Final = table_of(TraceRow).c
FAILING_FIRST: Final[dict[Level, int]] = {"ERROR": 0, "WARNING": 1, "DEFAULT": 2}
SUMMARY: Final = tuple(getattr(TraceRow, column.name) for column in fields(TraceSummary))


@dataclass(frozen=True, slots=True)
class TraceRows:
    """Stores traces: masked by `prepare`, and queued to be sent if `exported`.

    `hide` masks what users wrote.
    """

    prepare: Prepare = lambda trace: trace
    exported: bool = False
    hide: Callable[[str], str] = lambda text: text

    @property
    def state(self) -> str:
        """Return the state of a new row."""
        return WAITING if self.exported else KEPT

    async def save(
        self, session: AsyncSession, traces: Sequence[TraceRecord], now: datetime
    ) -> None:
        """Store finished traces and their scores; traces that are stored already are replaced."""
        rows, prepared = {}, []
        for trace in traces:
            try:
                shown = self.prepare(trace)
                rows[trace.trace_id] = to_row(shown, state=self.state, now=now)
                prepared.append(shown)
            except Exception as error:
                # The turn is over and answered; only its trace is lost.
                log.error("A trace cannot be stored: %s", type(error).__name__)  # noqa: TRY400
        if rows:
            await session.execute(upsert(session, TraceRow), list(rows.values()))
            await save_scores(session, prepared, self.state, now)

    async def save_verdict(self, session: AsyncSession, turn: TurnRow, now: datetime) -> None:
        """Store the feedback on a turn as scores of its trace."""
        if turn.trace_id is not None:
            await save_verdict(session, turn, self.hide, self.state, now)


LOCAL_TRACES: Final = TraceRows()


class TraceStoringRepository(SqlRepository):
    """The base of repositories that also store traces, by the rules of `rows`."""

    def __init__(
        self,
        sessions: Sessions,
        now: Callable[[], datetime] = utc_now,
        rows: TraceRows = LOCAL_TRACES,
    ) -> None:
        super().__init__(sessions, now)
        self._trace_rows = rows


def trace_queue(sessions: Sessions, now: Callable[[], datetime] = utc_now) -> RowQueue[TraceRecord]:
    """Return the traces that wait to be sent."""
    return RowQueue(sessions, TraceRow, "trace_id", lambda row: unpacked(row.record), now)


class SqlTraceStore(TraceStoringRepository):
    """Traces in the database, on SQLite and Postgres alike. Writes commit."""

    async def save(self, traces: Sequence[TraceRecord]) -> None:
        """Store finished traces, all or none; traces that are stored already are replaced."""
        async with self._sessions.begin() as session:
            await self._trace_rows.save(session, traces, self._now())

    async def get(self, trace_id: str) -> TraceRecord:
        """Return the trace with this id, or the only one whose id begins with it.

        Raises:
            LookupError: none does, or several do; the message says which.
        """
        if not trace_id:
            raise LookupError("there is no trace '' in the local store")
        begins = TraceRow.trace_id.startswith(trace_id.lower(), autoescape=True)
        query = select(T.trace_id, T.record).where(begins, T.record.is_not(None))
        query = query.order_by(T.trace_id).limit(3)
        async with self._sessions() as session:
            found = [unpacked(row.record) for row in await session.execute(query)]
            traces = [
                replace(trace, scores=await scores_of(session, trace.trace_id)) for trace in found
            ]
        if not traces:
            raise LookupError(f"there is no trace {trace_id!r} in the local store")
        if len(traces) > 1:
            ids = ", ".join(trace.trace_id for trace in traces)
            raise LookupError(f"more than one trace begins with {trace_id!r}: {ids}")
        return traces[0]

    async def summaries(
        self, limit: int = 20, which: TraceFilter | None = None, *, failing_first: bool = True
    ) -> list[TraceSummary]:
        """Return the newest traces, at most `limit`; with `failing_first` the worst come first."""
        query = select(*SUMMARY).where(TraceRow.record.is_not(None))
        if which is not None:
            query = _filtered(query, which)
        if failing_first:
            query = query.order_by(case(FAILING_FIRST, value=TraceRow.level, else_=2))
        query = query.order_by(TraceRow.started_at.desc(), TraceRow.trace_id).limit(max(limit, 0))
        async with self._sessions() as session:
            return [loaded(TraceSummary, row) for row in await session.execute(query)]

    async def traced(self, since: datetime) -> list[TracedTurn]:
        """Return the numbers of all traces since a moment, forgotten words or not."""
        columns = (TraceRow.started_at, TraceRow.name, TraceRow.error_types, TraceRow.steps)
        query = select(*columns).where(TraceRow.started_at >= since)
        async with self._sessions() as session:
            rows = await session.stream(query, execution_options={"yield_per": ROWS_AT_ONCE})
            return [
                TracedTurn(at, name, tuple(errors), tuple(starmap(TracedStep, steps)))
                async for at, name, errors, steps in rows
            ]

    async def forget(
        self, older_than: timedelta, numbers_older_than: timedelta, most_bytes: int
    ) -> int:
        """Forget the words of older traces, and of the oldest beyond `most_bytes`.

        Their numbers stay until they are older than `numbers_older_than`. Return how many traces
        were still to be sent.
        """
        now, traces = self._now(), table_of(TraceRow)
        async with self._sessions.begin() as session:
            old = T.record.is_not(None) & (T.started_at < now - older_than)
            if (since := await _oldest_kept(session, most_bytes)) is not None:
                old |= T.record.is_not(None) & (T.started_at < since)
            unsent = update(traces).where(old, T.state == WAITING).values(state=REFUSED)
            lost = await count_rows(session, unsent)
            await session.execute(update(traces).where(old).values(record=None, question=""))
            await session.execute(delete(traces).where(T.started_at < now - numbers_older_than))
            await forget_scores(session)
            return lost


async def _oldest_kept(session: AsyncSession, most_bytes: int) -> datetime | None:
    """Return since when traces take `most_bytes` at most; None if all do."""
    size = func.sum(func.length(T.record)).over(order_by=T.started_at.desc())
    sizes = select(T.started_at, size.label("size")).where(T.record.is_not(None)).subquery()
    first = select(func.max(sizes.c.started_at)).where(sizes.c.size > most_bytes)
    newest_over = await session.scalar(first)
    return None if newest_over is None else newest_over + timedelta(microseconds=1)


def _filtered(query: Select[Any], which: TraceFilter) -> Select[Any]:
    if which.since is not None:
        query = query.where(TraceRow.started_at >= which.since)
    if which.level is not None:
        least = FAILING_FIRST[which.level]
        as_bad = [level for level, rank in FAILING_FIRST.items() if rank <= least]
        query = query.where(TraceRow.level.in_(as_bad))
    if which.disliked:
        disliked = select(TurnRow.trace_id).where(TurnRow.verdict == "disliked")
        query = query.where(TraceRow.trace_id.in_(disliked))
    for column in ("name", "session", "user", "outcome"):
        if wanted := getattr(which, column):
            query = query.where(getattr(TraceRow, column) == wanted)
    for tag in which.tags:
        listed = cast(TraceRow.tags, String)
        query = query.where(listed.contains(json.dumps(tag), autoescape=True))
    return query


def to_row(trace: TraceRecord, *, state: str, now: datetime) -> Json:
    """Return the columns of a trace."""
    root = trace.root
    metadata = root.metadata
    question = root.input[: 2 * MAX_QUESTION_CHARS] if isinstance(root.input, str) else ""
    costs, stated = sum(span.cost_usd or 0.0 for span in trace.spans), metadata.get("cost_usd")
    return {
        "trace_id": trace.trace_id,
        "started_at": moment(root.started_ns),
        "ended_at": moment(root.started_ns if root.ended_ns is None else root.ended_ns),
        "session": storable(trace.session),
        "user": storable(trace.user),
        "question": " ".join(storable(question).split())[:MAX_QUESTION_CHARS],
        "outcome": storable(str(metadata.get("outcome") or "")),
        "level": root.level,
        "retry_count": metadata.get("retry_count", 0),
        "cost_usd": costs if stated is None else stated,
        "tokens": sum(span.usage.total_tokens for span in trace.spans if span.usage),
        "error_types": _error_types(metadata),
        "name": storable(trace.name),
        "tags": [storable(tag) for tag in trace.tags],
        "steps": [
            (storable(span.name), storable(span.model or ""), span.seconds, span.cost_usd or 0.0)
            for span in trace.spans
        ],
        "state": state,
        "due_at": now,
        "record": packed(trace),
    }


def packed(trace: TraceRecord) -> bytes:
    """Return a trace as compressed JSON, without the names to be masked."""
    bare = replace(trace, names=())
    try:
        whole = to_json(bare, inf_nan_mode="strings", serialize_unknown=True)
    except ValueError:  # half a character, or what is no text
        whole = to_json(plain(bare), inf_nan_mode="strings")
    return zlib.compress(whole, 1)


def unpacked(record: bytes) -> TraceRecord:
    """Return the trace that `packed` wrote."""
    return _RECORD.validate_json(zlib.decompress(record))


def plain(value: object) -> Any:
    """Return a value as plain JSON; other objects, NaN and infinity become text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {storable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return storable(str(value))


def moment(nanoseconds: int) -> datetime:
    """Return a time of a span, to the microsecond."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _error_types(metadata: Mapping[str, Any]) -> list[str]:
    """Return the errors of the turn, or the exception that ended it, and that of its delivery."""
    names = str(metadata.get("error_types") or metadata.get("error_type") or "").split(",")
    names.append(str(metadata.get("send_error") or ""))
    return [storable(name.strip()) for name in names if name.strip()]

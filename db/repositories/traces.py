"""The local store of traces, over SQL: what an admin sees, and what waits to be sent elsewhere.

A trace is kept in the transaction that ends its turn, masked before. What an exporter claims no
other gets for a while: what is not settled then, since the process died, comes again.
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

LONGEST_QUESTION: Final = 200  # characters, in the list
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ROWS_AT_ONCE: Final = 1000

_RECORD: Final = TypeAdapter(TraceRecord)

Json = dict[str, Any]
Prepare = Callable[[TraceRecord], TraceRecord]

T: Final = table_of(TraceRow).c
FAILING_FIRST: Final[dict[Level, int]] = {"ERROR": 0, "WARNING": 1, "DEFAULT": 2}
SUMMARY: Final = tuple(getattr(TraceRow, each.name) for each in fields(TraceSummary))


@dataclass(frozen=True, slots=True)
class TraceRows:
    """How traces become rows: `prepare` makes of each what may be stored, and sent if `exported`.

    `hide` makes of what a person wrote what may be shown of it.
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
        """Store finished traces and their scores; what is stored already is replaced."""
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


class KeepingTraces(SqlRepository):
    """A repository that keeps traces, too; `rows` says how."""

    def __init__(
        self,
        sessions: Sessions,
        now: Callable[[], datetime] = utc_now,
        rows: TraceRows = LOCAL_TRACES,
    ) -> None:
        super().__init__(sessions, now)
        self._rows = rows


def trace_queue(sessions: Sessions, now: Callable[[], datetime] = utc_now) -> RowQueue[TraceRecord]:
    """Return the traces that wait to be sent."""
    return RowQueue(sessions, TraceRow, "trace_id", lambda row: unpacked(row.record), now)


class SqlTraceStore(KeepingTraces):
    """Traces in the database, on SQLite and Postgres alike. Writes commit."""

    async def save(self, traces: Sequence[TraceRecord]) -> None:
        """Keep finished traces, all or none; one that is kept already is replaced."""
        async with self._sessions.begin() as session:
            await self._rows.save(session, traces, self._now())

    async def get(self, trace_id: str) -> TraceRecord:
        """The trace with this id, or the only one whose id begins so.

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
        """The newest traces, at most `limit`; with `failing_first` the worst before all others."""
        query = select(*SUMMARY).where(TraceRow.record.is_not(None))
        if which is not None:
            query = _filtered(query, which)
        if failing_first:
            query = query.order_by(case(FAILING_FIRST, value=TraceRow.level, else_=2))
        query = query.order_by(TraceRow.started_at.desc(), TraceRow.trace_id).limit(max(limit, 0))
        async with self._sessions() as session:
            return [loaded(TraceSummary, row) for row in await session.execute(query)]

    async def traced(self, since: datetime) -> list[TracedTurn]:
        """The numbers of all traces since a moment, also of those whose words are forgotten."""
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
        """Forget what was said in older traces, and in the oldest beyond `most_bytes`.

        Their numbers stay until they are older than `numbers_older_than`. How many of them were
        still to be sent is returned.
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
    """From when on traces take `most_bytes` at most; None if all do."""
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
    """A trace as it is kept: without the names to be masked, as compressed JSON."""
    bare = replace(trace, names=())
    try:
        whole = to_json(bare, inf_nan_mode="strings", serialize_unknown=True)
    except ValueError:  # half a character, or what is no text
        whole = to_json(plain(bare), inf_nan_mode="strings")
    return zlib.compress(whole, 1)


def unpacked(record: bytes) -> TraceRecord:
    """The trace that `packed` wrote."""
    return _RECORD.validate_json(zlib.decompress(record))


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

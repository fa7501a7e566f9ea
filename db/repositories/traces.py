"""The local store of traces, over SQL: what an admin sees without Langfuse."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import RowMapping, case, delete, select

from agent.engine.trace_records import Level, TraceRecord
from agent.turn_records import TraceSummary
from db.admin_models import TraceRow
from db.engine import Sessions
from db.repositories.messages import utc_now
from db.rows import upsert
from db.trace_rows import from_json, to_row

FAILING_FIRST: Final[dict[Level, int]] = {"ERROR": 0, "WARNING": 1, "DEFAULT": 2}
SUMMARY: Final = (
    TraceRow.trace_id,
    TraceRow.started_at,
    TraceRow.ended_at,
    TraceRow.session,
    TraceRow.user,
    TraceRow.question,
    TraceRow.outcome,
    TraceRow.level,
    TraceRow.retry_count,
    TraceRow.cost_usd,
    TraceRow.tokens,
    TraceRow.error_types,
)


class SqlTraceStore:
    """Traces in the database, on SQLite and Postgres alike. Writes commit."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def save(self, traces: Sequence[TraceRecord]) -> None:
        """Keep finished traces, all or none; one that is kept already is replaced."""
        rows = [to_row(trace) for trace in {each.trace_id: each for each in traces}.values()]
        if not rows:
            return
        async with self._sessions.begin() as session:
            await session.execute(upsert(session, TraceRow), rows)

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
        old = delete(TraceRow).where(TraceRow.started_at < self._now() - older_than)
        async with self._sessions.begin() as session:
            return len((await session.scalars(old.returning(TraceRow.trace_id))).all())


def _summary(row: RowMapping) -> TraceSummary:
    return TraceSummary(**dict(row) | {"error_types": tuple(row["error_types"])})

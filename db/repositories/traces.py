"""Store traces and their scores, which admins read here, and queue them to be sent to Langfuse.

A trace is masked, and stored in the transactions that commit and end its turn. Its scores are those
of the turn itself, and the feedback of users. A score that is taken back stays without a value
until its deletion was sent. A score that is given after that has another id, since Langfuse deletes
whatever has the old id some time later.
"""

import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Row, case, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from agent.engine.run import Level
from agent.tracing.masking import Masking
from agent.tracing.records import ScoreRecord, TraceRecord
from db.engine import Sessions, SqlRepository, count_changed
from db.models import Base, ScoreRow, TraceRow, TurnRow, to_record, upsert, utc_now

log = logging.getLogger(__name__)

KEPT: Final = "kept"
WAITING: Final = "waiting"
SENT: Final = "sent"
REFUSED: Final = "refused"

Rows = Sequence[Row[Any]]
Q = TypeVar("Q", TraceRow, ScoreRow)

LAST: Final = "last"
MAX_QUESTION_CHARS: Final = 200  # in the list

_RECORD: Final = TypeAdapter(TraceRecord)

FAILING_FIRST: Final[dict[Level, int]] = {"ERROR": 0, "WARNING": 1, "DEFAULT": 2}


@dataclass(frozen=True, slots=True)
class TraceRows:
    """Stores traces: masked, and queued to be sent if `exported`."""

    masking: Masking = field(default_factory=Masking)
    exported: bool = False

    async def save(
        self, session: AsyncSession, traces: Sequence[TraceRecord], now: datetime
    ) -> None:
        """Store finished traces and their scores; traces that are stored already are replaced."""
        for trace in traces:
            try:
                shown = self.masking.trace(trace)
                row, scores = to_trace_row(shown), _score_rows(shown)
            except Exception as error:
                # The turn is over and answered; only its trace is lost.
                log.error("A trace cannot be stored: %s", type(error).__name__)  # noqa: TRY400
                continue
            await upsert(session, self._queued(row, now))
            await upsert(session, *(self._queued(score, now) for score in scores))

    async def save_verdict(self, session: AsyncSession, turn: TurnRow, now: datetime) -> None:
        """Store the feedback on a turn as scores of its trace; without feedback take them back."""
        if turn.trace_id is None:
            return
        liked = None if turn.verdict is None else float(turn.verdict == "liked")
        for score in (
            ScoreRecord("user_feedback", liked, "BOOLEAN", self.masking.words(turn.comment)),
            ScoreRecord("user_feedback_reason", turn.reason, "CATEGORICAL"),
        ):
            named = (ScoreRow.trace_id == turn.trace_id) & (ScoreRow.name == score.name)
            # Locked, so that an exporter cannot mark it as sent before its new value is stored.
            stored = select(ScoreRow).where(named).with_for_update()
            rows = (await session.scalars(stored)).all()
            row = next((row for row in rows if row.value is not None), None)
            if row is None and score.value is not None:
                again = f"-{len(rows)}" if rows else ""
                row = ScoreRow(
                    score_id=f"{turn.trace_id}-{score.name}{again}",
                    trace_id=turn.trace_id,
                    observation_id=turn.root_id,
                    at=turn.at,
                )
                session.add(row)
            if row is not None:
                row.name, row.value, row.kind, row.comment = astuple(score)
                self._queued(row, now)

    def _queued(self, row: Q, now: datetime) -> Q:
        row.state, row.due_at = WAITING if self.exported else KEPT, now
        return row


LOCAL_TRACE_ROWS: Final = TraceRows()


@dataclass(eq=False)
class TraceStoringRepository(SqlRepository):
    """The base of repositories that also store traces, by the rules of `rows`."""

    rows: TraceRows = LOCAL_TRACE_ROWS


class SqlTraceStore(TraceStoringRepository):
    """Traces in the database, on SQLite and Postgres alike. Writes commit."""

    async def get(self, trace_id: str) -> TraceRecord:
        """Return the trace with this id, or whose id alone begins with it; `last` is the newest.

        Raises:
            LookupError: none does, or several do; the message says which.
        """
        begins = TraceRow.trace_id.startswith(trace_id.lower(), autoescape=True)
        query = select(TraceRow.record).where(begins).order_by(TraceRow.trace_id).limit(3)
        if trace_id == LAST:
            query = select(TraceRow.record).order_by(TraceRow.started_at.desc()).limit(1)
        found = [unpack(record) for record in await self._all(query)]
        if len(found) > 1:
            ids = ", ".join(trace.trace_id for trace in found)
            raise LookupError(f"more than one trace begins with {trace_id!r}: {ids}")
        if not found:
            raise LookupError(f"there is no trace {trace_id!r} in the local store")
        of_trace = (ScoreRow.trace_id == found[0].trace_id) & ScoreRow.value.is_not(None)
        scores = select(ScoreRow.__table__).where(of_trace).order_by(ScoreRow.name)
        rows = await self._rows(scores)
        return replace(found[0], scores={row.name: to_record(ScoreRecord, row) for row in rows})

    async def list_summaries(
        self, limit: int, *, since: datetime | None = None, failed: bool = False
    ) -> Sequence[TraceRow]:
        """Return traces without their records, at most `limit`, failures first, then the newest.

        With `failed` only those that failed or fell back.
        """
        query = select(TraceRow).options(defer(TraceRow.record)).limit(limit)
        if since is not None:
            query = query.where(TraceRow.started_at >= since)
        if failed:
            query = query.where(TraceRow.level != "DEFAULT")
        worst = case(FAILING_FIRST, value=TraceRow.level, else_=2)
        query = query.order_by(worst, TraceRow.started_at.desc(), TraceRow.trace_id)
        return await self._all(query)

    async def forget(self, older_than: timedelta) -> int:
        """Delete older traces with their scores; return how many were never sent."""
        old = delete(TraceRow).where(TraceRow.started_at < self.now() - older_than)
        kept = select(TraceRow.trace_id)
        async with self.sessions.begin() as session:
            lost = await count_changed(session, old.where(TraceRow.state == WAITING))
            await session.execute(old)
            await session.execute(delete(ScoreRow).where(ScoreRow.trace_id.not_in(kept)))
        return lost


class RowQueue(SqlRepository):
    """The rows of traces, or of scores, that wait to be sent.

    A sender claims rows; then they are sent, refused, or due again. A claimed row belongs to one
    sender until it is due again. Every method commits.
    """

    def __init__(
        self, sessions: Sessions, model: type[Base], now: Callable[[], datetime] = utc_now
    ) -> None:
        super().__init__(sessions, now)
        self._table = model.__table__
        self._key = self._table.primary_key.columns[0]

    async def claim(self, limit: int, lease: timedelta) -> Rows:
        """Claim the rows that have been due longest, at most `limit`, for the time of `lease`."""
        now, columns = self.now(), self._table.c
        due = select(self._key).where(columns.state == WAITING, columns.due_at <= now)
        due = due.order_by(columns.due_at).limit(limit).with_for_update(skip_locked=True)
        claimed = update(self._table).where(self._key.in_(due.scalar_subquery()))
        claimed = claimed.values(due_at=now + lease).returning(self._table)
        async with self.sessions.begin() as session:
            rows: Rows = (await session.execute(claimed)).all()
            return rows

    async def resume(self) -> None:
        """Make all waiting rows due: call it when no other process is sending."""
        waiting = update(self._table).where(self._table.c.state == WAITING)
        await self._write(waiting.values(due_at=self.now()))

    async def settle(self, rows: Rows, *, refused: bool = False) -> None:
        """Mark rows as sent, or as refused for good; a row that changed meanwhile is due again."""
        await self._change(rows, state=REFUSED if refused else SENT)

    async def release(self, rows: Rows) -> None:
        """Make those rows due again that are not settled."""
        await self._change(rows, due_at=self.now())

    async def count_by_state(self) -> Mapping[str, int]:
        """Return how many rows are in each state."""
        query = select(self._table.c.state, func.count()).group_by(self._table.c.state)
        return {str(state): count for state, count in await self._rows(query)}

    async def _change(self, rows: Rows, **values: object) -> None:
        # A row that was stored again meanwhile has another time: it was not sent as it is now.
        state, due_at = self._table.c.state, self._table.c.due_at
        untouched = (state == WAITING) & due_at.in_({row.due_at for row in rows})
        keys = [row._mapping[self._key] for row in rows]
        await self._write(update(self._table).where(self._key.in_(keys), untouched).values(values))


def to_trace_row(trace: TraceRecord) -> TraceRow:
    """Return the row of a masked trace, not queued yet."""
    root, metadata = trace.root, trace.root.metadata
    question = root.input[: 2 * MAX_QUESTION_CHARS] if isinstance(root.input, str) else ""
    # The errors of the turn, or the exception that ended it, and that of its delivery.
    errors = (metadata.get("error_types") or metadata.get("error_type") or "").split(",")
    errors.append(metadata.get("send_error") or "")
    return TraceRow(
        trace_id=trace.trace_id,
        started_at=to_datetime(root.started_ns),
        ended_at=to_datetime(root.ended_ns or root.started_ns),
        user=trace.user,
        question=" ".join(question.split())[:MAX_QUESTION_CHARS],
        outcome=metadata.get("outcome", ""),
        level=root.level,
        cost_usd=metadata.get("cost_usd", 0.0),
        error_types=[*filter(None, errors)],
        name=trace.name,
        record=pack(trace),
    )


def _score_rows(trace: TraceRecord) -> list[ScoreRow]:
    """Return the rows of a trace's own scores; one of the same name is replaced."""
    return [
        ScoreRow(
            score_id=f"{trace.trace_id}-{score.name}",
            trace_id=trace.trace_id,
            observation_id=trace.root.span_id,
            at=to_datetime(trace.root.ended_ns or 0),
            **asdict(score),
        )
        for score in trace.scores.values()
    ]


def pack(trace: TraceRecord) -> bytes:
    """Return a masked trace as compressed JSON."""
    return zlib.compress(_RECORD.dump_json(trace, warnings=False), 1)


def unpack(record: bytes) -> TraceRecord:
    """Return the trace that `pack` wrote."""
    trace = _RECORD.validate_json(zlib.decompress(record))
    for span in trace.spans:
        span.trace = trace
    return trace


def to_datetime(nanoseconds: int) -> datetime:
    """Return a time of a span."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)

"""Store traces and their scores locally for admins, and queue them for export to Langfuse.

A trace is masked and compressed once, before the transaction that commits its turn stores it. The
one that ends the turn adds how its messages were sent. Scores come from the turn itself and from
users' feedback. A retracted score keeps its row, without a value, until its deletion was exported.
Later feedback gets a new id, since Langfuse deletes by id with a delay.
"""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from agent.engine.run import SpanLevel
from agent.tracing.masking import Masking
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord
from db.engine import Sessions, SqlRepository, count_changed
from db.models import (
    Base,
    ExportState,
    ScoreRow,
    TraceRow,
    TurnRow,
    utc_now,
)
from db.models.traces import UNSENDABLE
from db.statements import to_record, upsert

log = logging.getLogger(__name__)

Rows = Sequence[Row[Any]]
Q = TypeVar("Q", TraceRow, ScoreRow)
T = TypeVar("T")

DELETION_DELAY: Final = timedelta(minutes=2)
TIME_ASIDE: Final = timedelta(hours=1)

LAST: Final = "last"
MAX_QUESTION_CHARS: Final = 200  # in lists of traces

_TRACE: Final = TypeAdapter(TraceRecord)
_SPAN: Final = TypeAdapter(SpanRecord)

FAILED_LEVELS: Final[Sequence[SpanLevel]] = ("ERROR", "WARNING")
FINE_LEVEL: Final[SpanLevel] = "DEFAULT"


@dataclass(frozen=True, slots=True)
class PreparedTrace:
    """A trace and its scores, masked, as rows to be stored."""

    row: TraceRow
    scores: Sequence[ScoreRow]


@dataclass(frozen=True, slots=True)
class PreparedDelivery:
    """What the sending of a turn's messages changes in the row of its trace.

    `columns` are empty if no messages were sent.
    """

    trace_id: str
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TraceRows:
    """A writer of masked traces, which queues them for export if `is_exported`."""

    masking: Masking = field(default_factory=Masking)
    is_exported: bool = False

    async def prepare(self, trace: TraceRecord | None) -> PreparedTrace | None:
        """Mask and compress an ended trace, before the transaction that stores it.

        Return None if there is none, or if it fails: this must not fail the turn, which is
        answered.
        """
        if trace is None:
            return None
        try:
            # In a thread: a trace may be long, and other chats must not wait.
            return await asyncio.to_thread(self._prepare, trace)
        except Exception as error:
            log.error("A trace cannot be stored: %s", type(error).__name__)  # noqa: TRY400
            return None

    def _prepare(self, trace: TraceRecord) -> PreparedTrace:
        masked = self.masking.mask_trace(trace)
        return PreparedTrace(to_trace_row(masked), _to_score_rows(masked))

    async def prepare_delivery(
        self, trace: TraceRecord | None
    ) -> PreparedDelivery | None:
        """Mask and compress what was added to a prepared trace since: how it was delivered.

        Return None if there is no trace.
        """
        if trace is None:
            return None
        if trace.sending is None:
            return PreparedDelivery(trace.trace_id, {})
        try:
            return await asyncio.to_thread(self._prepare_delivery, trace, trace.sending)
        except Exception as error:
            log.error("A delivery cannot be stored: %s", type(error).__name__)  # noqa: TRY400
            return PreparedDelivery(trace.trace_id, {})

    def _prepare_delivery(
        self, trace: TraceRecord, sending: SpanRecord
    ) -> PreparedDelivery:
        summary = replace(trace.root, input=None, output=None)
        masked = self.masking.mask_trace(
            replace(trace, spans=[summary, sending], scores={})
        )
        root, masked_sending = masked.spans
        columns = {
            "ended_at": to_datetime(root.ended_ns or root.started_ns),
            "level": root.level,
            "error_types": _list_errors(root),
            "delivery": _pack(_SPAN, masked_sending),
        }
        return PreparedDelivery(trace.trace_id, columns)

    async def save_delivery(
        self, session: AsyncSession, prepared: PreparedDelivery | None, now: datetime
    ) -> bool:
        """Add to a stored trace how it was delivered, and export it; return whether it is stored.

        It is not if there is none, or if it was deleted since the turn was committed.
        """
        if prepared is None:
            return False
        queued = {"state": self._state, "refusal": "", "due_at": now}
        is_this = TraceRow.trace_id == prepared.trace_id
        stored = update(TraceRow).where(is_this).values(**queued, **prepared.columns)
        if not await count_changed(session, stored):
            return False
        if self.is_exported:
            # A withdrawn score keeps its time: at Langfuse its deletion must not overtake it.
            is_waiting = (
                ScoreRow.state == ExportState.WAITING
            ) & ScoreRow.value.is_not(None)
            scores = update(ScoreRow).where(
                ScoreRow.trace_id == prepared.trace_id, is_waiting
            )
            await session.execute(scores.values(due_at=now))
        return True

    async def save(
        self, session: AsyncSession, prepared: PreparedTrace | None, due_at: datetime
    ) -> None:
        """Store a trace and its scores, or replace stored ones; export them from `due_at` on."""
        if prepared is None:
            return
        await upsert(session, self._queued(prepared.row, due_at))
        await upsert(
            session, *(self._queued(score, due_at) for score in prepared.scores)
        )

    async def save_verdict(
        self, session: AsyncSession, turn: TurnRow, now: datetime
    ) -> None:
        """Store the feedback on a turn as scores of its trace; retract scores without a value."""
        if turn.trace_id is None:
            return
        liked = None if turn.verdict is None else float(turn.verdict == "liked")
        for score in (
            ScoreRecord(
                "user_feedback", liked, "BOOLEAN", self.masking.mask_words(turn.comment)
            ),
            ScoreRecord("user_feedback_reason", turn.reason, "CATEGORICAL"),
        ):
            await self._save_score(session, turn, score, now)

    async def _save_score(
        self, session: AsyncSession, turn: TurnRow, score: ScoreRecord, now: datetime
    ) -> None:
        is_score = (ScoreRow.trace_id == turn.trace_id) & (ScoreRow.name == score.name)
        # Lock the rows, so that an exporter cannot mark a changed score as sent.
        stored = select(ScoreRow).where(is_score).with_for_update()
        rows = (await session.scalars(stored)).all()
        row = next((row for row in rows if row.value is not None), None)
        if row is None and score.value is None:
            return
        if row is None:
            suffix = f"-{len(rows)}" if rows else ""
            row = ScoreRow(
                score_id=f"{turn.trace_id}-{score.name}{suffix}",
                trace_id=turn.trace_id,
                observation_id=turn.root_id,
                at=turn.at,
                due_at=now,
            )
            session.add(row)
        row.name, row.value, row.kind, row.comment = astuple(score)
        due_at = now
        if row.due_at > now:
            # It is being sent, and due just after its claim ends: so the older value is not the one
            # that stays, and the exporter sees that the row has changed.
            due_at = row.due_at + timedelta(microseconds=1)
        # Langfuse takes scores into a queue, and a deletion must not overtake its score there.
        self._queued(row, due_at + DELETION_DELAY if row.value is None else due_at)

    def _queued(self, row: Q, due_at: datetime) -> Q:
        row.state, row.refusal = self._state, ""
        row.due_at = due_at
        return row

    @property
    def _state(self) -> str:
        return ExportState.WAITING if self.is_exported else ExportState.KEPT


LOCAL_TRACE_ROWS: Final = TraceRows()


@dataclass(eq=False)
class TraceStoringRepository(SqlRepository):
    """The base of repositories that also store traces."""

    rows: TraceRows = LOCAL_TRACE_ROWS


class SqlTraceStore(TraceStoringRepository):
    """The stored traces."""

    async def get(self, trace_id: str) -> TraceRecord:
        """Return the only trace whose id begins with `trace_id`, or the newest for "last".

        Raises:
            LookupError: no trace matches, or several do; the message lists them.
        """
        matches = TraceRow.trace_id.startswith(trace_id.lower(), autoescape=True)
        query = select(TraceRow.record, TraceRow.delivery)
        if trace_id == LAST:
            query = query.order_by(TraceRow.started_at.desc()).limit(1)
        else:
            query = query.where(matches).order_by(TraceRow.trace_id).limit(3)
        traces = [
            unpack(record, delivery) for record, delivery in await self._rows(query)
        ]
        if len(traces) > 1:
            ids = ", ".join(trace.trace_id for trace in traces)
            raise LookupError(f"more than one trace begins with {trace_id!r}: {ids}")
        if not traces:
            raise LookupError(f"there is no trace {trace_id!r} in the local store")
        is_score = (ScoreRow.trace_id == traces[0].trace_id) & ScoreRow.value.is_not(
            None
        )
        scores = select(ScoreRow.__table__).where(is_score).order_by(ScoreRow.name)
        rows = await self._rows(scores)
        return replace(
            traces[0], scores={row.name: to_record(ScoreRecord, row) for row in rows}
        )

    async def list_summaries(
        self,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        failed: bool = False,
    ) -> Sequence[TraceRow]:
        """Return at most `limit` traces without their records, failures first, then the newest.

        If `failed` is set, return only traces of failed or rule-based answers.
        """
        levels = FAILED_LEVELS if failed else (*FAILED_LEVELS, FINE_LEVEL)
        newest_first = TraceRow.started_at.desc(), TraceRow.trace_id
        columns = defer(TraceRow.record), defer(TraceRow.delivery)
        query = select(TraceRow).options(*columns).order_by(*newest_first)
        if since is not None:
            query = query.where(TraceRow.started_at >= since)
        if until is not None:
            query = query.where(TraceRow.started_at < until)
        traces: list[TraceRow] = []
        # One query for each level: an index has the newest of a level.
        for level in levels:
            of_level = query.where(TraceRow.level == level).limit(limit - len(traces))
            traces += await self._values(of_level)
        return traces


class RefusedRows(NamedTuple):
    """Counts the rows of a queue that are in a `state` for a reason, and has the reason of one."""

    state: str
    rows: int
    reason: str


class RowQueue(SqlRepository):
    """The export queue of traces, or of scores.

    An exporter claims rows, then settles or releases them. A claimed row belongs to one exporter
    until its lease ends. Every method commits.
    """

    def __init__(
        self,
        sessions: Sessions,
        model: type[Base],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(sessions, now)
        self._table = model.__table__
        self._key = self._table.primary_key.columns[0]

    async def claim(self, limit: int, lease: timedelta) -> Rows:
        """Claim at most `limit` due rows, the longest due first, for the duration of `lease`."""
        now, columns = self.now(), self._table.c
        due = select(self._key).where(
            columns.state == ExportState.WAITING, columns.due_at <= now
        )
        due = (
            due.order_by(columns.due_at).limit(limit).with_for_update(skip_locked=True)
        )
        claimed = update(self._table).where(self._key.in_(due.scalar_subquery()))
        claimed = claimed.values(due_at=now + lease).returning(self._table)
        async with self.sessions.begin() as session:
            rows: Rows = (await session.execute(claimed)).all()
            return rows

    @asynccontextmanager
    async def claimed(self, limit: int, lease: timedelta) -> AsyncIterator[Rows]:
        """Claim rows for the block; if it fails, those that it has not settled are due again."""
        rows = await self.claim(limit, lease)
        try:
            yield rows
        except BaseException:  # a cancellation included
            await self.release(rows)
            raise

    async def resume(self) -> None:
        """Make the rows due that an ended process had claimed; call it when no other exports.

        A withdrawn score keeps its time: at Langfuse its deletion must not overtake it.
        """
        waiting = update(self._table).where(self._table.c.state == ExportState.WAITING)
        if self._table is ScoreRow.__table__:
            waiting = waiting.where(ScoreRow.value.is_not(None))
        await self._write(waiting.values(due_at=self.now()))

    async def settle(self, rows: Rows) -> None:
        """Mark rows as sent, unless they changed meanwhile."""
        await self._change(rows, state=ExportState.SENT, refusal="", due_at=self.now())

    async def refuse(self, row: Row[Any], words: str) -> None:
        """Mark a row as refused in the server's words, unless it changed meanwhile."""
        await self._change(
            [row], state=ExportState.REFUSED, refusal=words, due_at=self.now()
        )

    async def set_aside(self, row: Row[Any], reason: str) -> None:
        """Let a row that cannot be sent wait for an hour, unless it changed meanwhile."""
        await self._change([row], refusal=reason, due_at=self.now() + TIME_ASIDE)

    async def resend(self) -> int:
        """Make all rows due that were refused or set aside; return their number."""
        unsent = update(self._table).where(UNSENDABLE)
        return await self._write(
            unsent.values(state=ExportState.WAITING, refusal="", due_at=self.now())
        )

    async def list_problems(self) -> Sequence[RefusedRows]:
        """Return how many rows were refused, how many are set aside, and a reason of each."""
        columns = self._table.c
        query = select(columns.state, func.count(), func.max(columns.refusal))
        query = query.where(UNSENDABLE).group_by(columns.state).order_by(columns.state)
        return [RefusedRows(*row) for row in await self._rows(query)]

    async def release(self, rows: Rows) -> None:
        """Make the unsettled rows among `rows` due again."""
        await self._change(rows, due_at=self.now())

    async def count_by_state(self) -> Mapping[str, int]:
        """Return the number of rows in each state."""
        query = select(self._table.c.state, func.count()).group_by(self._table.c.state)
        return {str(state): count for state, count in await self._rows(query)}

    async def _change(self, rows: Rows, **values: object) -> None:
        # A row stored again since it was claimed has a new `due_at`: its new content is unsent.
        state, due_at = self._table.c.state, self._table.c.due_at
        is_unchanged = (state == ExportState.WAITING) & due_at.in_(
            {row.due_at for row in rows}
        )
        keys = [row._mapping[self._key] for row in rows]
        if not keys:
            return
        await self._write(
            update(self._table).where(self._key.in_(keys), is_unchanged).values(values)
        )


def to_trace_row(trace: TraceRecord) -> TraceRow:
    """Return the row of a masked trace; the caller sets its state and `due_at`."""
    root, metadata = trace.root, trace.root.metadata
    question = (
        root.input[: 2 * MAX_QUESTION_CHARS] if isinstance(root.input, str) else ""
    )
    return TraceRow(
        trace_id=trace.trace_id,
        started_at=to_datetime(root.started_ns),
        ended_at=to_datetime(root.ended_ns or root.started_ns),
        user=trace.user,
        question=" ".join(question.split())[:MAX_QUESTION_CHARS],
        outcome=metadata.get("outcome", ""),
        level=root.level,
        cost_usd=metadata.get("cost_usd", 0.0),
        error_types=_list_errors(root),
        name=trace.name,
        record=_pack(_TRACE, trace),
        delivery=None,
    )


def _list_errors(root: SpanRecord) -> list[str]:
    """Return the errors of a turn, or the exception that ended it, and that of its delivery."""
    metadata = root.metadata
    errors = list(metadata.get("error_types") or ())
    if not errors and "error_type" in metadata:
        errors.append(metadata["error_type"])
    if "send_error" in metadata:
        errors.append(metadata["send_error"])
    return errors


def _to_score_rows(trace: TraceRecord) -> list[ScoreRow]:
    """Return the rows of a trace's own scores; their ids are stable, so saving replaces them."""
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


def _pack(adapter: TypeAdapter[T], value: T) -> bytes:
    """Return a masked trace, or a span of one, as compressed JSON."""
    return zlib.compress(adapter.dump_json(value, warnings=False), 1)


def unpack(record: bytes, delivery: bytes | None) -> TraceRecord:
    """Return the trace of two columns of its row, with the span in which it was sent."""
    trace = _TRACE.validate_json(zlib.decompress(record))
    if delivery is not None:
        trace.spans.append(_SPAN.validate_json(zlib.decompress(delivery)))
        trace.summarize()
    return trace


def to_datetime(nanoseconds: int) -> datetime:
    """Return the UTC datetime of a span's time stamp."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)

"""Store traces and their scores locally for admins, and queue them for export to Langfuse.

A trace is masked and compressed once, before the transaction that commits its turn. That
transaction stores it. A later transaction, which ends the turn, adds how the messages were sent.
Scores come from the turn itself and from the feedback of users. A score that was taken back keeps
its row without a value, until its deletion is exported. Later feedback gets a new id: Langfuse
deletes scores by their ids, some time after it was asked to.
"""

import asyncio
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from agent.engine.run import SpanLevel
from agent.tracing.masking import Masking
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord
from db.engine import SqlRepository, count_changed
from db.models import (
    ExportState,
    ScoreRow,
    TraceRow,
    TurnRow,
)
from db.statements import to_record, upsert

log = logging.getLogger(__name__)

T = TypeVar("T")

DELETION_DELAY: Final = timedelta(minutes=2)
"""How long after a score its deletion is sent, so that it does not overtake the score."""
LAST: Final = "last"
"""The word for the newest trace where the id of a trace is asked for."""
MAX_QUESTION_CHARS: Final = 200
"""How much of a question is shown in lists of traces."""
MAX_NAMED_TRACES: Final = 3
"""How many traces an error names at most if several ids begin with the text asked for."""

_TRACE_ADAPTER: Final = TypeAdapter(TraceRecord)
_SPAN_ADAPTER: Final = TypeAdapter(SpanRecord)

FAILED_LEVELS: Final[Sequence[SpanLevel]] = ("ERROR", "WARNING")
"""The levels of turns that failed or that rules answered, the worse one first."""
FINE_LEVEL: Final[SpanLevel] = "DEFAULT"
"""The level of all other turns."""


@dataclass(frozen=True, slots=True)
class PreparedTrace:
    """The rows of a masked trace and its scores, ready to be stored."""

    row: TraceRow
    scores: Sequence[ScoreRow]


@dataclass(frozen=True, slots=True)
class PreparedDelivery:
    """The columns of a trace's row that change when the messages of its turn were sent.

    There are no columns if no messages were sent, or if the delivery could not be prepared.
    """

    trace_id: str
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TraceRows:
    """Writes masked traces, and queues them for export if `is_exported`."""

    masking: Masking = field(default_factory=Masking)
    is_exported: bool = False

    async def prepare(self, trace: TraceRecord | None) -> PreparedTrace | None:
        """Mask and compress a trace that has ended, before the transaction that stores it.

        Return None if there is no trace. Return None also after an error: the turn has an answer,
        and must not fail because of its trace.
        """
        if trace is None:
            return None
        try:
            # This runs in a thread, because a trace may be long, and other chats must not wait.
            return await asyncio.to_thread(self._prepare, trace)
        except Exception as error:
            # Only the type is logged, because the message of the error may quote the trace.
            log.error("A trace cannot be stored: %s", type(error).__name__)  # noqa: TRY400
            return None

    def _prepare(self, trace: TraceRecord) -> PreparedTrace:
        """Mask and compress a trace."""
        masked = self.masking.mask_trace(trace)
        return PreparedTrace(to_trace_row(masked), _to_score_rows(masked))

    async def prepare_delivery(
        self, trace: TraceRecord | None
    ) -> PreparedDelivery | None:
        """Mask and compress what the delivery of the messages has added to a trace.

        Return None if there is no trace. After an error, return a delivery without columns, so that
        the trace is exported without it.
        """
        if trace is None:
            return None
        if trace.sending is None:
            return PreparedDelivery(trace.trace_id, {})
        try:
            return await asyncio.to_thread(self._prepare_delivery, trace, trace.sending)
        except Exception as error:
            # Only the type is logged, because the message of the error may quote the trace.
            log.error("A delivery cannot be stored: %s", type(error).__name__)  # noqa: TRY400
            return PreparedDelivery(trace.trace_id, {})

    def _prepare_delivery(
        self, trace: TraceRecord, sending: SpanRecord
    ) -> PreparedDelivery:
        """Return what the delivery adds to a trace.

        The delivery adds a span for the sending, and changes the end, the level and the errors of
        the turn.
        """
        # The input and the output of the turn were stored before, so they are not masked again.
        summary = replace(trace.root, input=None, output=None)
        addition = replace(trace, spans=[summary, sending], scores={})
        masked = self.masking.mask_trace(addition)
        root, masked_sending = masked.spans
        columns = {
            "ended_at": to_datetime(root.ended_ns or root.started_ns),
            "level": root.level,
            "error_types": _list_errors(root),
            "delivery": _pack(_SPAN_ADAPTER, masked_sending),
        }
        return PreparedDelivery(trace.trace_id, columns)

    async def save_delivery(
        self,
        session: AsyncSession,
        prepared: PreparedDelivery | None,
        now: datetime,
    ) -> bool:
        """Add to a stored trace how its messages were sent, and let it be exported.

        Return False if there is no such trace, or if it was deleted since the turn was committed.
        """
        if prepared is None:
            return False
        add_delivery = (
            update(TraceRow)
            .where(TraceRow.trace_id == prepared.trace_id)
            .values(
                state=self._state,
                refusal="",
                due_at=now,
                **prepared.columns,
            )
        )
        has_trace = await count_changed(session, add_delivery)
        if not has_trace:
            return False
        if self.is_exported:
            scores = update(ScoreRow).where(
                ScoreRow.trace_id == prepared.trace_id,
                ScoreRow.state == ExportState.WAITING,
                # A score that was taken back keeps its later time, because the request to delete
                # it must not overtake the score.
                ScoreRow.value.is_not(None),
            )
            await session.execute(scores.values(due_at=now))
        return True

    async def save(
        self,
        session: AsyncSession,
        prepared: PreparedTrace | None,
        due_at: datetime,
    ) -> None:
        """Store a trace and its scores, or replace the stored ones.

        The trace and its scores are exported at `due_at` or later.
        """
        if prepared is None:
            return
        self._queue(prepared.row, due_at)
        await upsert(session, prepared.row)
        for score in prepared.scores:
            self._queue(score, due_at)
        await upsert(session, *prepared.scores)

    async def save_verdict(
        self,
        session: AsyncSession,
        turn: TurnRow,
        now: datetime,
    ) -> None:
        """Store the feedback on a turn as scores of its trace.

        Take back the score of a verdict or a reason that the turn no longer has.
        """
        if turn.trace_id is None:
            return
        # Langfuse wants a boolean score as 1.0 or 0.0. None takes the score back.
        is_liked: float | None = None
        if turn.verdict is not None:
            is_liked = float(turn.verdict == "liked")
        comment = self.masking.mask_words(turn.comment)
        feedback = ScoreRecord("user_feedback", is_liked, "BOOLEAN", comment)
        await self._save_score(session, turn, feedback, now)
        reason = ScoreRecord("user_feedback_reason", turn.reason, "CATEGORICAL")
        await self._save_score(session, turn, reason, now)

    async def _save_score(
        self,
        session: AsyncSession,
        turn: TurnRow,
        score: ScoreRecord,
        now: datetime,
    ) -> None:
        """Store a score, or change the stored score of this name.

        If the new score has no value, take the stored score back.
        """
        rows = await _read_scores_of_name(session, turn, score.name)
        # At most one row has a value. The others are scores that were taken back.
        valid_rows = [row for row in rows if row.value is not None]
        if not valid_rows and score.value is None:
            # There is nothing to take back.
            return
        if valid_rows:
            row = valid_rows[0]
        else:
            row = _make_score_row(turn, score.name, taken_back_count=len(rows))
            row.due_at = now
            session.add(row)
        row.value = score.value
        row.kind = score.kind
        row.comment = score.comment
        due_at = now
        if row.due_at > now:
            # An exporter has claimed the row until `due_at`, and may be sending the old value. The
            # new value is due just after that time, so that it replaces the old one. The exporter
            # sees by the changed time that it must not mark the row as sent.
            due_at = row.due_at + timedelta(microseconds=1)
        if row.value is None:
            due_at += DELETION_DELAY
        self._queue(row, due_at)

    def _queue(self, row: TraceRow | ScoreRow, due_at: datetime) -> None:
        """Let a row be exported at `due_at`, or only be kept if rows are not exported."""
        row.state = self._state
        row.refusal = ""
        row.due_at = due_at

    @property
    def _state(self) -> str:
        """Return the state of a row that is stored or changed."""
        if self.is_exported:
            return ExportState.WAITING
        return ExportState.KEPT


async def _read_scores_of_name(
    session: AsyncSession,
    turn: TurnRow,
    name: str,
) -> Sequence[ScoreRow]:
    """Return the scores of a turn with this name.

    Their rows are locked, so that an exporter cannot mark a changed score as sent.
    """
    scores = (
        select(ScoreRow)
        .where(
            ScoreRow.trace_id == turn.trace_id,
            ScoreRow.name == name,
        )
        .with_for_update()
    )
    found = await session.scalars(scores)
    return found.all()


def _make_score_row(
    turn: TurnRow,
    name: str,
    *,
    taken_back_count: int,
) -> ScoreRow:
    """Return the row of a new score of a turn.

    Its id differs from the ids of the scores of this name that were taken back before.
    """
    score_id = f"{turn.trace_id}-{name}"
    if taken_back_count:
        score_id += f"-{taken_back_count}"
    return ScoreRow(
        score_id=score_id,
        name=name,
        trace_id=turn.trace_id,
        observation_id=turn.root_id,
        at=turn.at,
    )


LOCAL_TRACE_ROWS: Final = TraceRows()


@dataclass(eq=False)
class TraceStoringRepository(SqlRepository):
    """The base of repositories that also store traces."""

    rows: TraceRows = LOCAL_TRACE_ROWS


class SqlTraceStore(TraceStoringRepository):
    """The stored traces."""

    async def get(self, trace_id: str) -> TraceRecord:
        """Return the only trace whose id begins with `trace_id`, or the newest one for "last".

        Raises:
            LookupError: there is no such trace, or there are several. The message names them.
        """
        query = select(TraceRow.record, TraceRow.delivery)
        if trace_id == LAST:
            query = query.order_by(TraceRow.started_at.desc()).limit(1)
        else:
            start = trace_id.lower()
            matches = TraceRow.trace_id.startswith(start, autoescape=True)
            query = query.where(matches).order_by(TraceRow.trace_id)
            query = query.limit(MAX_NAMED_TRACES)
        rows = await self._rows(query)
        traces = [unpack(record, delivery) for record, delivery in rows]
        if len(traces) > 1:
            ids = ", ".join([trace.trace_id for trace in traces])
            raise LookupError(f"more than one trace begins with {trace_id!r}: {ids}")
        if not traces:
            raise LookupError(f"there is no trace {trace_id!r} in the local store")
        (trace,) = traces
        scores = await self._read_scores(trace.trace_id)
        return replace(trace, scores=scores)

    async def _read_scores(self, trace_id: str) -> dict[str, ScoreRecord]:
        """Return the scores of a trace that were not taken back, by their names."""
        scores = (
            select(ScoreRow.__table__)
            .where(
                ScoreRow.trace_id == trace_id,
                ScoreRow.value.is_not(None),
            )
            .order_by(ScoreRow.name)
        )
        rows = await self._rows(scores)
        return {row.name: to_record(ScoreRecord, row) for row in rows}

    async def list_summaries(
        self,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        failed: bool = False,
    ) -> Sequence[TraceRow]:
        """Return at most `limit` traces without their records.

        Failed turns come first, then turns that rules answered, then all others. Among traces of
        the same level, the newest come first. If `failed`, leave out those others.
        """
        levels = list(FAILED_LEVELS)
        if not failed:
            levels.append(FINE_LEVEL)
        query = (
            select(TraceRow)
            .options(defer(TraceRow.record), defer(TraceRow.delivery))
            .order_by(TraceRow.started_at.desc(), TraceRow.trace_id)
        )
        if since is not None:
            query = query.where(TraceRow.started_at >= since)
        if until is not None:
            query = query.where(TraceRow.started_at < until)
        traces: list[TraceRow] = []
        # One query for each level, because an index has the levels with the newest traces of each.
        for level in levels:
            query_of_level = query.where(TraceRow.level == level)
            missing_count = limit - len(traces)
            traces += await self._values(query_of_level.limit(missing_count))
        return traces


def to_trace_row(trace: TraceRecord) -> TraceRow:
    """Return the row of a masked trace. The caller sets its state and `due_at`."""
    root = trace.root
    question = ""
    if isinstance(root.input, str):
        # The input may be very long, so it is cut before its spaces are collapsed. It is cut to
        # twice the length, because it becomes shorter with the spaces that are removed.
        start = root.input[: 2 * MAX_QUESTION_CHARS]
        question = " ".join(start.split())
    return TraceRow(
        trace_id=trace.trace_id,
        started_at=to_datetime(root.started_ns),
        ended_at=to_datetime(root.ended_ns or root.started_ns),
        user=trace.user,
        question=question[:MAX_QUESTION_CHARS],
        outcome=root.metadata.get("outcome", ""),
        level=root.level,
        cost_usd=root.metadata.get("cost_usd", 0.0),
        error_types=_list_errors(root),
        name=trace.name,
        record=_pack(_TRACE_ADAPTER, trace),
        delivery=None,
    )


def _list_errors(root: SpanRecord) -> list[str]:
    """Return the types of the errors of a turn and of its delivery.

    The exception that ended the turn counts only if the turn has no other errors.
    """
    metadata = root.metadata
    errors = list(metadata.get("error_types", ()))
    if not errors and "error_type" in metadata:
        errors.append(metadata["error_type"])
    if "send_error" in metadata:
        errors.append(metadata["send_error"])
    return errors


def _to_score_rows(trace: TraceRecord) -> list[ScoreRow]:
    """Return the rows of a trace's own scores.

    Their ids are always the same, so that storing them again replaces them.
    """
    rows: list[ScoreRow] = []
    for score in trace.scores.values():
        row = ScoreRow(
            score_id=f"{trace.trace_id}-{score.name}",
            trace_id=trace.trace_id,
            observation_id=trace.root.span_id,
            at=to_datetime(trace.root.ended_ns or 0),
            **asdict(score),
        )
        rows.append(row)
    return rows


def _pack(adapter: TypeAdapter[T], value: T) -> bytes:
    """Return a masked trace, or one of its spans, as compressed JSON."""
    json = adapter.dump_json(value, warnings=False)
    return zlib.compress(json, level=1)  # the fastest level, because it delays the turn


def unpack(record: bytes, delivery: bytes | None) -> TraceRecord:
    """Return the trace that two columns of its row hold: its record and its delivery."""
    trace = _TRACE_ADAPTER.validate_json(zlib.decompress(record))
    if delivery is not None:
        sending = _SPAN_ADAPTER.validate_json(zlib.decompress(delivery))
        trace.spans.append(sending)
        trace.summarize()
    return trace


def to_datetime(nanoseconds: int) -> datetime:
    """Return the UTC datetime of a span's time stamp."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)

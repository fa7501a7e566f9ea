"""Store the scores of traces: those of the turn itself, and the feedback of users.

A score that is taken back stays without a value until its deletion was sent. A score that is given
after that has another id, since Langfuse deletes whatever has the old id some time later.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.tracing.records import ScoreRecord, TraceRecord
from db.models import ScoreRow, TraceRow, TurnRow, insert, table_of, upsert

S: Final = table_of(ScoreRow).c


async def save_scores(session: AsyncSession, trace: TraceRecord, state: str, now: datetime) -> None:
    """Store the scores of a turn; a score of the same name is replaced."""
    root = trace.root
    known = {
        "trace_id": trace.trace_id,
        "observation_id": root.span_id,
        "at": datetime.fromtimestamp((root.ended_ns or 0) / 1e9, UTC),
        "state": state,
        "due_at": now,
    }
    scores = trace.scores.values()
    rows = [
        {"score_id": f"{trace.trace_id}-{score.name}", **asdict(score), **known} for score in scores
    ]
    if rows:
        await session.execute(upsert(session, ScoreRow), rows)


async def save_verdict(
    session: AsyncSession, turn: TurnRow, hide: Callable[[str], str], state: str, now: datetime
) -> None:
    """Store the feedback on a turn as scores of its trace; without feedback they are taken back."""
    for score in verdict_scores(turn, hide):
        named = (S.trace_id == turn.trace_id) & (S.name == score.name)
        ids = select(S.score_id).where(named)
        live = await session.scalar(ids.where(S.value.is_not(None)))
        values = asdict(score) | {"state": state, "due_at": now}
        if live is not None:
            changed = update(table_of(ScoreRow)).where(S.score_id == live)
            await session.execute(changed.values(values))
        elif score.value is not None:
            earlier = len((await session.scalars(ids)).all())
            row = {
                "score_id": f"{turn.trace_id}-{score.name}" + (f"-{earlier}" if earlier else ""),
                "trace_id": turn.trace_id,
                "observation_id": turn.root_id,
                "at": turn.at,
            }
            await session.execute(insert(session, ScoreRow), row | values)


def verdict_scores(turn: TurnRow, hide: Callable[[str], str]) -> tuple[ScoreRecord, ScoreRecord]:
    """Return feedback as scores."""
    liked = None if turn.verdict is None else float(turn.verdict == "liked")
    return (
        ScoreRecord("user_feedback", liked, "BOOLEAN", hide(turn.comment)),
        ScoreRecord("user_feedback_reason", turn.reason, "CATEGORICAL"),
    )


async def scores_of(session: AsyncSession, trace_id: str) -> dict[str, ScoreRecord]:
    """Return the scores of a trace by name."""
    query = select(S.name, S.value, S.kind, S.comment)
    query = query.where(S.trace_id == trace_id, S.value.is_not(None)).order_by(S.name)
    rows = await session.execute(query)
    return {row.name: ScoreRecord(row.name, row.value, row.kind, row.comment) for row in rows}


async def forget_scores(session: AsyncSession) -> None:
    """Delete the scores of traces that are gone."""
    known = select(TraceRow.trace_id)
    await session.execute(delete(table_of(ScoreRow)).where(S.trace_id.not_in(known)))

"""Turns as conversations to evaluate with: what was asked, what stood before it, what was wrong."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from agent.engine.history import StoredMessage
from db.admin_models import FeedbackRow, TurnRow
from db.engine import Sessions
from db.models import MessageRow
from db.repositories.messages import to_message

HISTORY: Final = 10
"""Messages before a turn that are exported with it."""

Asked = aliased(MessageRow)
Said = aliased(MessageRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTurn:
    """A turn in the words that are remembered of it; nothing in it says who wrote them."""

    turn_id: int
    question: str
    answer: str
    history: tuple[StoredMessage, ...]
    retries: int
    outcome: str
    verdict: str | None = None
    reason: str | None = None
    comment: str = ""
    trace_id: str | None = None


async def exported_turns(
    sessions: Sessions,
    *,
    since: datetime | None = None,
    disliked: bool = False,
    retried: bool = False,
) -> list[ExportedTurn]:
    """The turns since a moment whose words are still remembered, oldest first.

    Only those that are `disliked`, or needed retries, or both, if asked for.
    """
    query = _turns()
    if since is not None:
        query = query.where(TurnRow.at >= since)
    if disliked:
        query = query.where(FeedbackRow.verdict == "disliked")
    if retried:
        query = query.where(TurnRow.retries > 0)
    async with sessions() as session:
        found = (await session.execute(query)).all()
        return [await _exported(session, *row) for row in found]


def _turns() -> Select[TurnRow, FeedbackRow | None, MessageRow, MessageRow | None]:
    asked = (Asked.turn_id == TurnRow.turn_id) & (Asked.role == "user")
    said = (Said.turn_id == TurnRow.turn_id) & (Said.role == "assistant")
    return (
        select(TurnRow, FeedbackRow, Asked, Said)
        .join(Asked, asked)
        .join(Said, said, isouter=True)
        .join(FeedbackRow, FeedbackRow.turn_id == TurnRow.turn_id, isouter=True)
        .order_by(TurnRow.at, TurnRow.turn_id)
    )


async def _exported(
    session: AsyncSession,
    turn: TurnRow,
    feedback: FeedbackRow | None,
    asked: MessageRow,
    said: MessageRow | None,
) -> ExportedTurn:
    return ExportedTurn(
        turn_id=turn.turn_id,
        question=asked.content,
        answer=said.content if said else "",
        history=await _before(session, asked),
        retries=turn.retries,
        outcome=turn.outcome,
        verdict=feedback.verdict if feedback else None,
        reason=feedback.reason if feedback else None,
        comment=feedback.comment if feedback else "",
        trace_id=turn.trace_id,
    )


async def _before(session: AsyncSession, asked: MessageRow) -> tuple[StoredMessage, ...]:
    earlier = (MessageRow.chat_id == asked.chat_id) & (MessageRow.id < asked.id)
    query = select(MessageRow).where(earlier).order_by(MessageRow.id.desc()).limit(HISTORY)
    newest_first = await session.scalars(query)
    messages = [to_message(row) for row in newest_first]
    return tuple(reversed(messages))

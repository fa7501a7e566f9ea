"""What people think of answers, over SQL.

A turn has one row of feedback. Every change is one statement, so that presses that come at once
on several replicas are counted one after the other.
"""

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Row, Select, literal, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.repositories import Feedback, FeedbackReason, Verdict
from db.engine import SqlRepository
from db.models import FeedbackRow, TraceRow, TurnRow, UtcDateTime, insert_into, record_of, storable

LONGEST_COMMENT: Final = 1000  # characters

NOTHING_SAID: Final[dict[str, object]] = {
    "reason": None,
    "comment": "",
    "asked_chat_id": None,
    "asked_message_id": None,
}


class SqlFeedbackRepository(SqlRepository):
    """Fulfils `agent.repositories.FeedbackRepository` on SQLite and Postgres alike. Writes commit.

    Whoever rates or comments on a turn that is not known (any more) gets None: old buttons are
    pressed every day. What changes nothing leaves the revision as it is.
    """

    async def rate(self, turn_id: int, verdict: Verdict | None) -> Feedback | None:
        other = FeedbackRow.verdict.is_distinct_from(verdict)
        async with self._sessions.begin() as session:
            if verdict is not None:
                await self._rate_first(session, turn_id, verdict)
            await self._change(session, turn_id, other, verdict=verdict, **NOTHING_SAID)
            return await _load(session, turn_id)

    async def reason(self, turn_id: int, reason: FeedbackReason) -> Feedback | None:
        other = FeedbackRow.reason.is_distinct_from(reason)
        return await self._say(turn_id, other, reason=reason)

    async def comment(self, turn_id: int, text: str) -> Feedback | None:
        comment = storable(text).strip()[:LONGEST_COMMENT]
        return await self._say(turn_id, FeedbackRow.comment != comment, comment=comment)

    async def asked(self, turn_id: int, chat_id: int, message_id: int) -> None:
        of_turn = (FeedbackRow.turn_id == turn_id) & (FeedbackRow.verdict == "disliked")
        asked = {"asked_chat_id": chat_id, "asked_message_id": message_id}
        await self._write(update(FeedbackRow).where(of_turn).values(asked))

    async def asked_about(self, chat_id: int, message_id: int) -> int | None:
        query = select(FeedbackRow.turn_id).where(
            FeedbackRow.asked_chat_id == chat_id, FeedbackRow.asked_message_id == message_id
        )
        async with self._sessions() as session:
            return await session.scalar(query.limit(1))

    async def get(self, turn_id: int) -> Feedback | None:
        async with self._sessions() as session:
            return await _load(session, turn_id)

    async def of_trace(self, trace_id: str) -> Feedback | None:
        """What is thought of the turn with this trace; None if nobody ever said."""
        async with self._sessions() as session:
            row = (await session.execute(_joined().where(TurnRow.trace_id == trace_id))).first()
            return _feedback(row) if row else None

    async def undelivered(self, limit: int = 50) -> list[Feedback]:
        changed = FeedbackRow.revision > FeedbackRow.delivered_revision
        unsent = select(TraceRow.trace_id).where(
            TraceRow.trace_id == TurnRow.trace_id, TraceRow.state != "sent"
        )
        query = (
            _joined()
            .where(changed, TurnRow.trace_id.is_not(None), ~unsent.exists())
            .order_by(FeedbackRow.updated_at, FeedbackRow.turn_id)
            .limit(max(limit, 0))
        )
        async with self._sessions() as session:
            return [_feedback(row) for row in await session.execute(query)]

    async def delivered(self, turn_id: int, revision: int) -> None:
        behind = FeedbackRow.delivered_revision < revision
        of_turn = update(FeedbackRow).where(FeedbackRow.turn_id == turn_id, behind)
        await self._write(of_turn.values(delivered_revision=revision))

    async def _rate_first(self, session: AsyncSession, turn_id: int, verdict: Verdict) -> None:
        """Insert the first verdict on a turn, if there is such a turn."""
        row = {
            "turn_id": TurnRow.turn_id,
            "verdict": literal(verdict),
            "comment": literal(""),
            "revision": literal(1),
            "delivered_revision": literal(0),
            "updated_at": literal(self._now(), UtcDateTime),
        }
        of_turn = select(*row.values()).where(TurnRow.turn_id == turn_id)
        insert = insert_into(session, FeedbackRow).from_select(list(row), of_turn)
        await session.execute(insert.on_conflict_do_nothing())

    async def _say(self, turn_id: int, other: ColumnElement[bool], **said: str) -> Feedback | None:
        disliked = FeedbackRow.verdict == "disliked"
        async with self._sessions.begin() as session:
            await self._change(session, turn_id, disliked & other, **said)
            found = await _load(session, turn_id)
        return found if found and found.verdict == "disliked" else None

    async def _change(
        self, session: AsyncSession, turn_id: int, where: ColumnElement[bool], **values: object
    ) -> None:
        row = update(FeedbackRow).where(FeedbackRow.turn_id == turn_id, where)
        counted = {"revision": FeedbackRow.revision + 1, "updated_at": self._now()}
        await session.execute(row.values(values | counted))


def _joined() -> Select[FeedbackRow, str | None, str | None, datetime]:
    return select(FeedbackRow, TurnRow.trace_id, TurnRow.root_id, TurnRow.at).join(
        TurnRow, TurnRow.turn_id == FeedbackRow.turn_id
    )


async def _load(session: AsyncSession, turn_id: int) -> Feedback | None:
    found = (await session.execute(_joined().where(FeedbackRow.turn_id == turn_id))).first()
    return _feedback(found) if found else None


def _feedback(found: Row[FeedbackRow, str | None, str | None, datetime]) -> Feedback:
    row, trace_id, root_id, answered_at = found
    return record_of(Feedback, row, trace_id=trace_id, root_id=root_id, answered_at=answered_at)

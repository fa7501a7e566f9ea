"""The turns that have ended, over SQL."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.turn_records import DayStats, Spent, TurnRecord
from db.admin_models import AnswerRow, FeedbackRow, TurnRow
from db.engine import Sessions
from db.repositories.messages import utc_now
from db.rows import upsert
from db.search_text import storable
from db.turn_stats import CountedTurn, by_day


class SqlTurnRepository:
    """Fulfils `agent.ports.TurnRepository` on SQLite and Postgres alike."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def record(self, turn: TurnRecord) -> None:
        """Keep a turn and its answers, once however often it is recorded. Commits.

        Messages that an interrupted run of the same turn sent stay answers of it: a person may
        react to either.
        """
        answers = [
            {"chat_id": turn.chat_id, "message_id": each, "turn_id": turn.turn_id}
            for each in dict.fromkeys(turn.message_ids)
        ]
        async with self._sessions.begin() as session:
            await session.execute(upsert(session, TurnRow).values(_row(turn)))
            if answers:
                await session.execute(upsert(session, AnswerRow).values(answers))

    async def get(self, turn_id: int) -> TurnRecord | None:
        """A turn, None if it is not known."""
        async with self._sessions() as session:
            return await _load(session, turn_id)

    async def of_message(self, chat_id: int, message_id: int) -> TurnRecord | None:
        """The turn that a message of the bot answered."""
        async with self._sessions() as session:
            answer = await session.get(AnswerRow, (chat_id, message_id))
            return await _load(session, answer.turn_id) if answer else None

    async def last(self, chat_id: int) -> TurnRecord | None:
        """The turn of a chat that ended last; None if there is none."""
        of_chat = select(TurnRow.turn_id).where(TurnRow.chat_id == chat_id)
        async with self._sessions() as session:
            found = await session.scalar(of_chat.order_by(TurnRow.at.desc()).limit(1))
            return None if found is None else await _load(session, found)

    async def spent(self, since: datetime, user_id: int | None = None) -> Spent:
        """What a person, or everyone, has used since a moment."""
        query = select(
            func.coalesce(func.sum(TurnRow.requests), 0),
            func.coalesce(func.sum(TurnRow.tokens), 0),
            func.coalesce(func.sum(TurnRow.cost_usd), 0.0),
        ).where(TurnRow.at >= since)
        if user_id is not None:
            query = query.where(TurnRow.user_id == user_id)
        async with self._sessions() as session:
            requests, tokens, cost = (await session.execute(query)).one()
        return Spent(int(requests), int(tokens), float(cost))

    async def days(self, since: datetime) -> list[DayStats]:
        """Every day (UTC) from that of `since` until today, oldest first.

        Each is whole: the first begins at midnight. A day without turns counts nothing.
        """
        first, last = since.astimezone(UTC).date(), self._now().astimezone(UTC).date()
        query = (
            select(
                TurnRow.at,
                TurnRow.user_id,
                TurnRow.outcome,
                TurnRow.retries,
                TurnRow.tokens,
                TurnRow.cost_usd,
                TurnRow.seconds,
                FeedbackRow.verdict,
            )
            .join(FeedbackRow, FeedbackRow.turn_id == TurnRow.turn_id, isouter=True)
            .where(TurnRow.at >= datetime.combine(first, time(), UTC))
        )
        async with self._sessions() as session:
            turns = [CountedTurn(*row) for row in await session.execute(query)]
        return by_day(turns, first, last)

    async def forget(self, older_than: timedelta) -> int:
        """Delete turns that are older, with their answers and feedback; how many there were."""
        old = delete(TurnRow).where(TurnRow.at < self._now() - older_than)
        async with self._sessions.begin() as session:
            return len((await session.scalars(old.returning(TurnRow.turn_id))).all())


def _row(turn: TurnRecord) -> dict[str, object]:
    return {
        "turn_id": turn.turn_id,
        "chat_id": turn.chat_id,
        "user_id": turn.user_id,
        "at": turn.at,
        "outcome": storable(turn.outcome),
        "seconds": turn.seconds,
        "requests": turn.requests,
        "retries": turn.retries,
        "tokens": turn.tokens,
        "cost_usd": turn.cost_usd,
        "error_types": [storable(name) for name in turn.error_types],
        "trace_id": turn.trace_id,
        "root_id": turn.root_id,
    }


async def _load(session: AsyncSession, turn_id: int) -> TurnRecord | None:
    row = await session.get(TurnRow, turn_id)
    if row is None:
        return None
    answers = select(AnswerRow.message_id).where(AnswerRow.turn_id == turn_id)
    message_ids = await session.scalars(answers.order_by(AnswerRow.message_id))
    return TurnRecord(
        turn_id=row.turn_id,
        chat_id=row.chat_id,
        user_id=row.user_id,
        at=row.at,
        outcome=row.outcome,
        seconds=row.seconds,
        requests=row.requests,
        retries=row.retries,
        tokens=row.tokens,
        cost_usd=row.cost_usd,
        error_types=tuple(row.error_types),
        trace_id=row.trace_id,
        root_id=row.root_id,
        message_ids=tuple(message_ids),
    )

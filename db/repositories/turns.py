"""The turns that have ended, over SQL."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Final

from sqlalchemy import Delete, Select, delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from agent.engine.limits import Spent
from agent.turn_records import Spending, Stats, TurnRecord
from db.admin_models import AnswerRow, FeedbackRow, TurnRow, UnderWayRow
from db.engine import Sessions
from db.repositories.messages import utc_now
from db.rows import upsert
from db.search_text import storable
from db.turn_stats import CountedTurn, stats_of

LOCK: Final = 0x70726F73
"""The number of the lock that turns begin under, one after the other; no other code uses it."""
ROWS_AT_ONCE: Final = 1000
"""So that others get their turn between: a busy week has 100,000 rows."""
LONGEST_TURN: Final = timedelta(hours=1)
"""A turn that began earlier and has not ended is not under way any more: its process died."""


class SqlTurnRepository:
    """Fulfils `agent.repositories.TurnRepository` on SQLite and Postgres alike."""

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
            await session.execute(_under_way_is_over(turn.turn_id))
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

    async def begin(self, turn_id: int, user_id: int, at: datetime, since: datetime) -> Spending:
        """Note that a person's turn begins; what was used `since`, and what else is under way.

        Turns begin one after the other: of two at once, the second sees the first. Commits.
        """
        async with self._sessions.begin() as session:
            # SQLite locks with the first write, Postgres has to be told.
            if session.get_bind().dialect.name == "postgresql":
                await session.execute(
                    text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK}
                )
            begun = {"turn_id": turn_id, "user_id": user_id, "since": at}
            await session.execute(upsert(session, UnderWayRow).values(begun))
            others = select(func.count()).where(
                UnderWayRow.since > at - LONGEST_TURN, UnderWayRow.turn_id != turn_id
            )
            theirs = others.where(UnderWayRow.user_id == user_id)
            by_everyone, turns = await _spent(session, _sums(since))
            by_person, _ = await _spent(session, _sums(since).where(TurnRow.user_id == user_id))
            return Spending(
                by_person=by_person,
                by_everyone=by_everyone,
                turns=turns,
                persons_under_way=await session.scalar(theirs) or 0,
                under_way=await session.scalar(others) or 0,
            )

    async def stats(self, since: datetime) -> Stats:
        """Every day (UTC) from that of `since` until today, and all of them together.

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
            rows = await session.stream(query, execution_options={"yield_per": ROWS_AT_ONCE})
            turns = [CountedTurn(*row) async for row in rows]
        return await asyncio.to_thread(stats_of, turns, first, last)

    async def forget(self, older_than: timedelta) -> int:
        """Delete turns that are older, with their answers and feedback; how many there were."""
        old = delete(TurnRow).where(TurnRow.at < self._now() - older_than)
        lost = delete(UnderWayRow).where(UnderWayRow.since < self._now() - LONGEST_TURN)
        async with self._sessions.begin() as session:
            await session.execute(lost)
            return len((await session.scalars(old.returning(TurnRow.turn_id))).all())


def _under_way_is_over(turn_id: int) -> Delete:
    return delete(UnderWayRow).where(UnderWayRow.turn_id == turn_id)


def _sums(since: datetime) -> Select[int, int, float, int]:
    """What turns that ended took together, and how many of them asked a model."""
    return select(
        func.coalesce(func.sum(TurnRow.requests), 0),
        func.coalesce(func.sum(TurnRow.tokens), 0),
        func.coalesce(func.sum(TurnRow.cost_usd), 0.0),
        func.count().filter(TurnRow.requests > 0),
    ).where(TurnRow.at >= since)


async def _spent(session: AsyncSession, sums: Select[int, int, float, int]) -> tuple[Spent, int]:
    requests, tokens, cost, turns = (await session.execute(sums)).one()
    return Spent(int(requests), int(tokens), float(cost)), int(turns)


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

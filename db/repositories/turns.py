"""The turns that have ended, over SQL, and what people think of them.

A turn has one row of feedback. Every change of it is one statement, so that presses that come at
once on several replicas are counted one after the other.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from statistics import median
from typing import Final, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from agent.conversation import StoredMessage
from agent.engine.limits import Spent
from agent.numbers import percentile
from agent.text import storable
from agent.tracing.records import TraceRecord
from agent.turn import Change
from db.engine import Sessions, take_turns
from db.models import (
    FactRow,
    FeedbackRow,
    MessageRow,
    OutboxRow,
    TurnRow,
    UnderWayRow,
    UtcDateTime,
    WineGrapeRow,
    insert,
    storable_value,
    upsert,
)
from db.records import (
    DayStats,
    EndedTurn,
    Feedback,
    FeedbackReason,
    Spending,
    Stats,
    TurnRecord,
    Verdict,
)
from db.repositories.people import change, store_messages
from db.repositories.traces import KeepingTraces, TraceRows

LOCK: Final = 0x70726F73
"""The number of the lock that turns begin under, one after the other; no other code uses it."""
ROWS_AT_ONCE: Final = 1000
"""So that others get their turn between: a busy week has 100,000 rows."""
HISTORY: Final = 10
"""Messages before a turn that are exported with it."""
LONGEST_TURN: Final = timedelta(hours=1)
"""A turn that began earlier and has not ended is not under way any more: its process died."""

Asked = aliased(MessageRow)
Said = aliased(MessageRow)


class TurnRepository(KeepingTraces):
    """The turns that have ended."""

    async def record(
        self,
        turn: TurnRecord,
        said: Sequence[StoredMessage] = (),
        trace: TraceRecord | None = None,
        changes: Sequence[Change] = (),
        messages: Sequence[OutboxRow] = (),
    ) -> None:
        await self.save(EndedTurn(turn, tuple(said), trace, tuple(changes)), messages)

    async def save(self, ended: EndedTurn, messages: Sequence[OutboxRow] = ()) -> None:
        """Store a turn and its messages to send, whole or not at all."""
        async with self._sessions.begin() as session:
            await save_turn(session, ended, self._now(), self._rows)
            session.add_all(messages)

    async def change(self, changes: Sequence[Change]) -> None:
        """Change what is remembered of people."""
        async with self._sessions.begin() as session:
            await change(session, changes, self._now())

    async def get(self, turn_id: int) -> TurnRecord | None:
        """Return a turn, None if it is not known."""
        return await self._load(TurnRow.turn_id == turn_id)

    async def of_message(self, chat_id: int, message_id: int) -> TurnRecord | None:
        """Return the turn that a message of the bot answered."""
        of_message = (OutboxRow.chat_id == chat_id) & (OutboxRow.message_id == message_id)
        return await self._load(TurnRow.turn_id.in_(select(OutboxRow.turn_id).where(of_message)))

    async def last(self, chat_id: int) -> TurnRecord | None:
        """Return the turn of a chat that ended last; None if there is none."""
        return await self._load(TurnRow.chat_id == chat_id)

    async def _load(self, where: ColumnElement[bool]) -> TurnRecord | None:
        newest = select(TurnRow).where(where).order_by(TurnRow.at.desc()).limit(1)
        async with self._sessions() as session:
            row = await session.scalar(newest)
        if row is None:
            return None
        values = {each.name: getattr(row, each.name) for each in fields(TurnRecord)}
        return TurnRecord(**values | {"error_types": tuple(row.error_types)})

    async def may_be_lost(self, chat_id: int) -> bool:
        """Return whether a message of the chat's last answer may not have arrived."""
        last = select(TurnRow.turn_id).where(TurnRow.chat_id == chat_id)
        last = last.order_by(TurnRow.at.desc()).limit(1)
        lost = select(OutboxRow.id).where(
            OutboxRow.turn_id == last.scalar_subquery(), OutboxRow.error == "ambiguous"
        )
        async with self._sessions() as session:
            return await session.scalar(lost.limit(1)) is not None

    async def begin(self, turn_id: int, user_id: int, at: datetime, since: datetime) -> Spending:
        """Note that a person's turn begins; what was used `since`, and what else is under way.

        Turns begin one after the other: of two at once, the second sees the first. Commits.
        """
        under_way = UnderWayRow.since > at - LONGEST_TURN, UnderWayRow.turn_id != turn_id
        others = select(func.count(), func.count().filter(UnderWayRow.user_id == user_id))
        begun = {"turn_id": turn_id, "user_id": user_id, "since": at}
        async with self._sessions.begin() as session:
            await take_turns(session, LOCK)
            await session.execute(upsert(session, UnderWayRow), begun)
            by_everyone, turns = await _spent(session, _sums(since))
            by_person, _ = await _spent(session, _sums(since).where(TurnRow.user_id == user_id))
            count, theirs = (await session.execute(others.where(*under_way))).one()
        return Spending(by_person, by_everyone, turns, theirs, count)

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
        lost = UnderWayRow.since < self._now() - LONGEST_TURN
        await self._write(delete(UnderWayRow).where(lost))
        return await self._write(delete(TurnRow).where(TurnRow.at < self._now() - older_than))


async def save_turn(
    session: AsyncSession,
    ended: EndedTurn,
    now: datetime,
    rows: TraceRows,
    waits: timedelta = timedelta(0),
) -> None:
    """Store a turn: its record, what was said, its trace, and what it changes of people.

    The trace `waits` for so long before it is sent.
    """

    if (turn := ended.record) is not None:
        if ended.said:
            await store_messages(session, turn.chat_id, ended.said, turn.turn_id, now)
        await session.execute(delete(UnderWayRow).where(UnderWayRow.turn_id == turn.turn_id))
        row = {each.name: storable_value(getattr(turn, each.name)) for each in fields(turn)}
        await session.execute(upsert(session, TurnRow), row)
    if ended.trace is not None:
        await rows.save(session, [ended.trace], now + waits)
    await change(session, ended.changes, now)


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


class CountedTurn(NamedTuple):
    """What of a turn is counted."""

    at: datetime
    user_id: int
    outcome: str
    retries: int
    tokens: int
    cost_usd: float
    seconds: float
    verdict: str | None


def stats_of(turns: Sequence[CountedTurn], first: date, last: date) -> Stats:
    """The numbers of every day (UTC) from `first` to `last`, those without turns included."""
    of_day: dict[date, list[CountedTurn]] = defaultdict(list)
    for turn in turns:
        of_day[turn.at.astimezone(UTC).date()].append(turn)
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    by_day = tuple(_counted(day, of_day[day]) for day in days)
    return Stats(by_day, _counted(first, turns))


def _counted(day: date, turns: Sequence[CountedTurn]) -> DayStats:
    seconds = [turn.seconds for turn in turns]
    verdicts = Counter(turn.verdict for turn in turns)
    return DayStats(
        day=day,
        people=len({turn.user_id for turn in turns if turn.user_id}),  # 0: the HTTP API
        turns=len(turns),
        retried=sum(turn.retries > 0 for turn in turns),
        outcomes=dict(Counter(turn.outcome for turn in turns)),
        liked=verdicts["liked"],
        disliked=verdicts["disliked"],
        tokens=sum(turn.tokens for turn in turns),
        cost_usd=sum(turn.cost_usd for turn in turns),
        median_seconds=median(seconds) if seconds else 0.0,
        p95_seconds=percentile(seconds, 0.95),
    )


async def exported_turns(
    sessions: Sessions,
    hide: Callable[[str], str],
    *,
    since: datetime | None = None,
    disliked: bool = False,
    retried: bool = False,
) -> list[dict[str, object]]:
    """The turns since a moment whose words are still remembered, as lines of a dataset.

    Oldest first, and only those that are `disliked`, or needed retries, or both, if asked for. They
    do not say who wrote, and hold of the words what `hide` leaves.
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
        return [await _exported(session, hide, row) for row in found if row[2].content.strip()]


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
    hide: Callable[[str], str],
    row: Row[TurnRow, FeedbackRow | None, MessageRow, MessageRow | None],
) -> dict[str, object]:
    turn, feedback, asked, said = row
    is_disliked = feedback is not None and feedback.verdict == "disliked"
    note = [feedback.reason, hide(feedback.comment)] if feedback else []
    return {
        "id": f"turn-{turn.turn_id}",
        "kind": "disliked" if is_disliked else "retried" if turn.retries else "turn",
        "messages": [hide(asked.content)],
        "history": [
            {"role": each.role, "content": hide(each.content), "wine_ids": each.wine_ids}
            for each in await _before(session, asked)
        ],
        "expect": {},
        "note": ": ".join(filter(None, note)),
        "answer": hide(said.content) if said else "",
        "outcome": turn.outcome,
        "trace_id": turn.trace_id,
    }


async def _before(session: AsyncSession, asked: MessageRow) -> list[MessageRow]:
    earlier = (MessageRow.chat_id == asked.chat_id) & (MessageRow.id < asked.id)
    query = select(MessageRow).where(earlier).order_by(MessageRow.id.desc()).limit(HISTORY)
    return list(await session.scalars(query))[::-1]


RATED: Final = "rated"
LONGEST_COMMENT: Final = 1000  # characters


class FeedbackRepository(KeepingTraces):
    """The feedback of users on answers; writes commit.

    Whoever rates or comments on a turn that is not known (any more) gets None: old buttons are
    pressed every day.
    """

    async def rate(self, turn_id: int, verdict: Verdict | None) -> Feedback | None:
        """Store the verdict on a turn, or take it back; a change clears what was disliked."""
        other = FeedbackRow.verdict.is_distinct_from(verdict)
        nothing_said = {"reason": None, "comment": ""}
        async with self._sessions.begin() as session:
            if verdict is not None:
                await self._rate_first(session, turn_id, verdict)
            await self._change(session, turn_id, other, verdict=verdict, **nothing_said)
            await _rate_taste(session, turn_id, verdict, self._now())
            return await self._scored(session, turn_id)

    async def reason(self, turn_id: int, reason: FeedbackReason) -> Feedback | None:
        """Store what was wrong with a disliked turn; None if it is not disliked."""
        other = FeedbackRow.reason.is_distinct_from(reason)
        return await self._say(turn_id, other, reason=reason)

    async def comment(self, turn_id: int, text: str) -> Feedback | None:
        """Store what a person wrote about a disliked turn, cut; None if it is not disliked."""
        comment = storable(text).strip()[:LONGEST_COMMENT]
        return await self._say(turn_id, FeedbackRow.comment != comment, comment=comment)

    async def asked_about(self, chat_id: int, message_id: int) -> int | None:
        """Return the turn that a message asked about; None once the verdict was taken back."""
        disliked = select(FeedbackRow.turn_id).where(FeedbackRow.verdict == "disliked")
        query = select(OutboxRow.asks_about).where(
            OutboxRow.chat_id == chat_id,
            OutboxRow.message_id == message_id,
            OutboxRow.asks_about.in_(disliked),
        )
        async with self._sessions() as session:
            return await session.scalar(query.limit(1))

    async def get(self, turn_id: int) -> Feedback | None:
        """Return what is thought of a turn; None if nobody ever said."""
        async with self._sessions() as session:
            return await _load_feedback(session, FeedbackRow.turn_id == turn_id)

    async def of_trace(self, trace_id: str) -> Feedback | None:
        """Return what is thought of the turn with this trace; None if nobody ever said."""
        async with self._sessions() as session:
            return await _load_feedback(session, TurnRow.trace_id == trace_id)

    async def _rate_first(self, session: AsyncSession, turn_id: int, verdict: Verdict) -> None:
        """Insert the first verdict on a turn, if there is such a turn."""
        row = {
            "turn_id": TurnRow.turn_id,
            "verdict": literal(verdict),
            "comment": literal(""),
            "updated_at": literal(self._now(), UtcDateTime),
        }
        of_turn = select(*row.values()).where(TurnRow.turn_id == turn_id)
        rated = insert(session, FeedbackRow).from_select(list(row), of_turn)
        await session.execute(rated.on_conflict_do_nothing())

    async def _say(self, turn_id: int, other: ColumnElement[bool], **said: str) -> Feedback | None:
        disliked = FeedbackRow.verdict == "disliked"
        async with self._sessions.begin() as session:
            await self._change(session, turn_id, disliked & other, **said)
            found = await self._scored(session, turn_id)
        return found if found and found.verdict == "disliked" else None

    async def _scored(self, session: AsyncSession, turn_id: int) -> Feedback | None:
        """Return what is thought of a turn now, and make the scores of its trace say so."""
        feedback, now = await _load_feedback(session, FeedbackRow.turn_id == turn_id), self._now()
        await self._rows.save_verdict(session, feedback, now)
        return feedback

    async def _change(
        self, session: AsyncSession, turn_id: int, where: ColumnElement[bool], **values: object
    ) -> None:
        row = update(FeedbackRow).where(FeedbackRow.turn_id == turn_id, where)
        await session.execute(row.values(values | {"updated_at": self._now()}))


def _rated() -> Select[FeedbackRow, TurnRow]:
    return select(FeedbackRow, TurnRow).join(TurnRow, TurnRow.turn_id == FeedbackRow.turn_id)


async def _load_feedback(session: AsyncSession, where: ColumnElement[bool]) -> Feedback | None:
    fresh = _rated().where(where).execution_options(populate_existing=True)
    row = (await session.execute(fresh)).first()
    return _feedback_of(*row) if row else None


def _feedback_of(row: FeedbackRow, turn: TurnRow) -> Feedback:
    return Feedback(
        turn_id=row.turn_id,
        verdict=cast("Verdict | None", row.verdict),
        reason=cast("FeedbackReason | None", row.reason),
        comment=row.comment,
        trace_id=turn.trace_id,
        root_id=turn.root_id,
        answered_at=turn.at,
    )


async def _rate_taste(
    session: AsyncSession, turn_id: int, verdict: Verdict | None, now: datetime
) -> None:
    """Have a verdict say of a person's taste what the first grapes of the wines shown tell."""
    rated = (FactRow.turn_id == turn_id) & (FactRow.kind == RATED)
    await session.execute(delete(FactRow).where(rated))
    turn = await session.get(TurnRow, turn_id)
    if verdict is None or turn is None or not turn.user_id:
        return
    shown = select(MessageRow.wine_ids).where(MessageRow.turn_id == turn_id)
    ids = {wine_id for listed in await session.scalars(shown) for wine_id in listed}
    first = select(WineGrapeRow.grape).where(
        WineGrapeRow.wine_id.in_(ids), WineGrapeRow.position == 0
    )
    said = "+" if verdict == "liked" else "-"
    grapes = sorted({*await session.scalars(first)}) if ids else []
    session.add_all(
        FactRow(
            user_id=turn.user_id,
            kind=RATED,
            value=f"grapes={grape}",
            turn_id=turn_id,
            said=said,
            at=now,
        )
        for grape in grapes
    )

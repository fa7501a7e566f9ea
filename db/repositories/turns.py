"""Turns: their records, usage, statistics, feedback, and export as a dataset."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from agent.engine.run import Spent
from agent.text import strip_unstorable
from agent.tracing.records import TraceRecord
from agent.turn import Change, StoredMessage
from db.engine import Sessions
from db.models import ChatRow, FactRow, MessageRow, OutboxRow, TurnRow, WineRow, insert_new, upsert
from db.repositories.people import apply_changes
from db.repositories.traces import TraceRows, TraceStoringRepository

HISTORY_LENGTH: Final = 10
"""The number of previous messages that are exported with a turn."""
RATED: Final = "rated"  # the kind of a fact inferred from a verdict
MAX_COMMENT_CHARS: Final = 1000

Verdict = Literal["liked", "disliked"]

UserMessage = aliased(MessageRow)
Answer = aliased(MessageRow)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """Everything that is stored of a turn."""

    record: TurnRow
    messages: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()


class TurnRepository(TraceStoringRepository):
    """The turns, and users' feedback on them."""

    async def save(self, ended: EndedTurn) -> None:
        """Store a turn in one transaction."""
        async with self.sessions.begin() as session:
            await save_turn(session, ended, self.now(), self.rows)

    async def apply(self, changes: Sequence[Change]) -> None:
        async with self.sessions.begin() as session:
            await apply_changes(session, changes, self.now())

    async def get(self, turn_id: int) -> TurnRow | None:
        return await self._newest(TurnRow.turn_id == turn_id)

    async def find_by_message(self, chat_id: int, message_id: int) -> TurnRow | None:
        """Return the turn whose answer includes a message; None if there is none."""
        is_message = (OutboxRow.chat_id == chat_id) & (OutboxRow.message_id == message_id)
        return await self._newest(TurnRow.turn_id.in_(select(OutboxRow.turn_id).where(is_message)))

    async def find_last(self, chat_id: int) -> TurnRow | None:
        """Return the newest turn of a chat; None if there is none."""
        return await self._newest(TurnRow.chat_id == chat_id)

    async def _newest(self, where: ColumnElement[bool]) -> TurnRow | None:
        newest = select(TurnRow).where(where).order_by(TurnRow.at.desc())
        return await self._first_value(newest.limit(1))

    async def sum_usage(self, since: datetime, user_id: int | None = None) -> Spent:
        """Return the usage since a time, of one user or of all if `user_id` is None."""
        totals = select(func.sum(TurnRow.requests), func.sum(TurnRow.cost_usd))
        totals = totals.where(TurnRow.at >= since)
        if user_id is not None:
            totals = totals.where(TurnRow.user_id == user_id)
        [(requests, cost)] = await self._rows(totals)
        return Spent(requests=int(requests or 0), cost_usd=float(cost or 0))

    async def list_by_day(self, since: datetime) -> dict[date, list[TurnRow]]:
        """Return the turns by UTC day, for every day from the day of `since` to today."""
        first = since.astimezone(UTC).date()
        day_count = (self.now().astimezone(UTC).date() - first).days + 1
        since_midnight = TurnRow.at >= datetime.combine(first, time(), UTC)
        days: dict[date, list[TurnRow]] = {first + timedelta(n): [] for n in range(day_count)}
        for turn in await self._values(select(TurnRow).where(since_midnight)):
            days.setdefault(turn.at.date(), []).append(turn)
        return days

    async def rate(self, turn_id: int, verdict: Verdict | None) -> TurnRow | None:
        """Store the verdict on a turn, or retract it with None; return the turn.

        A changed verdict clears reason and comment. Return None for an unknown turn: users press
        buttons of deleted turns every day.
        """
        is_changed = TurnRow.verdict.is_distinct_from(verdict)
        return await self._set_feedback(
            turn_id, is_changed, verdict=verdict, reason=None, comment=""
        )

    async def explain(
        self, turn_id: int, field: Literal["reason", "comment"], text: str
    ) -> TurnRow | None:
        """Store the reason for a dislike, or a truncated comment; return the turn, if any."""
        text = strip_unstorable(text).strip()[:MAX_COMMENT_CHARS]
        return await self._set_feedback(turn_id, TurnRow.verdict == "disliked", **{field: text})

    async def _set_feedback(
        self, turn_id: int, where: ColumnElement[bool], **values: str | None
    ) -> TurnRow | None:
        """Change the feedback on a turn, and the taste and scores that follow from it."""
        is_turn = TurnRow.turn_id == turn_id
        async with self.sessions.begin() as session:
            # One conditional statement, so that simultaneous presses on two replicas both count.
            await session.execute(update(TurnRow).where(is_turn, where).values(values))
            if turn := await session.scalar(select(TurnRow).where(is_turn)):
                await _rate_taste(session, turn, self.now())
                await self.rows.save_verdict(session, turn, self.now())
        return turn

    async def forget(self, older_than: timedelta) -> int:
        """Delete older turns with their answers and feedback; return their number."""
        return await self._write(delete(TurnRow).where(TurnRow.at < self.now() - older_than))


async def save_turn(
    session: AsyncSession,
    ended: EndedTurn,
    now: datetime,
    rows: TraceRows,
    trace_delay: timedelta = timedelta(0),
) -> None:
    """Store a turn: its record, messages, trace, and changes of user data.

    The trace is exported after `trace_delay`.
    """
    await _save_messages(session, ended, now)
    await upsert(session, ended.record)
    if ended.trace is not None:
        await rows.save(session, [ended.trace], now + trace_delay)
    await apply_changes(session, ended.changes, now)


async def _save_messages(session: AsyncSession, ended: EndedTurn, now: datetime) -> None:
    """Store new messages of a turn, under the current id of a group that was migrated."""
    chat = await session.get(ChatRow, ended.record.chat_id) if ended.messages else None
    rows = [
        MessageRow(
            chat_id=(chat and chat.migrated_to) or ended.record.chat_id,
            role=message.role,
            content=strip_unstorable(message.content),
            wine_ids=[strip_unstorable(wine_id) for wine_id in message.wine_ids],
            created_at=now,
            turn_id=ended.record.turn_id,
            thread_id=message.thread_id,
            attachment=strip_unstorable(message.attachment),
        )
        for message in ended.messages
    ]
    await insert_new(session, *rows)


async def export_turns(
    sessions: Sessions,
    mask: Callable[[str], str],
    since: datetime | None = None,
    *,
    disliked: bool = False,
) -> list[dict[str, object]]:
    """Return turns with stored messages as lines of a dataset, the oldest first.

    If `disliked` is set, return only those. The lines contain no user, and `mask` masks all text.
    """
    is_question = (UserMessage.turn_id == TurnRow.turn_id) & (UserMessage.role == "user")
    is_answer = (Answer.turn_id == TurnRow.turn_id) & (Answer.role == "assistant")
    query = select(TurnRow, UserMessage, Answer)
    query = query.join(UserMessage, is_question).join(Answer, is_answer)
    if disliked:
        query = query.where(TurnRow.verdict == "disliked")
    if since is not None:
        query = query.where(TurnRow.at >= since)
    lines: list[dict[str, object]] = []
    async with sessions() as session:
        for turn, question, answer in await session.execute(query.order_by(TurnRow.at)):
            is_earlier = (MessageRow.chat_id == question.chat_id) & (MessageRow.id < question.id)
            earlier = (
                select(MessageRow)
                .where(is_earlier)
                .order_by(MessageRow.id.desc())
                .limit(HISTORY_LENGTH)
            )
            history = [
                {"role": row.role, "content": mask(row.content), "wine_ids": row.wine_ids}
                for row in await session.scalars(earlier.limit(HISTORY_LENGTH))
            ]
            lines.append(
                {
                    "id": f"turn-{turn.turn_id}",
                    "kind": turn.verdict or "turn",
                    "messages": [mask(question.content)],
                    "history": history[::-1],
                    "expect": {},
                    "note": ": ".join(filter(None, [turn.reason, mask(turn.comment)])),
                    "answer": mask(answer.content),
                    "outcome": turn.outcome,
                    "trace_id": turn.trace_id,
                }
            )
    return lines


async def _rate_taste(session: AsyncSession, turn: TurnRow, now: datetime) -> None:
    """Replace the taste inferred from a turn: the main grapes of the wines it recommended."""
    is_rating = (FactRow.turn_id == turn.turn_id) & (FactRow.kind == RATED)
    await session.execute(delete(FactRow).where(is_rating))
    if turn.verdict is None or not turn.user_id:
        return
    id_lists = select(MessageRow.wine_ids).where(MessageRow.turn_id == turn.turn_id)
    ids = {wine_id for wine_ids in await session.scalars(id_lists) for wine_id in wine_ids}
    blends = await session.scalars(select(WineRow.grapes).where(WineRow.id.in_(ids)))
    sign = "+" if turn.verdict == "liked" else "-"
    for grape in sorted({grapes[0] for grapes in blends if grapes}):
        value = f"grapes={grape}"
        fact = FactRow(
            user_id=turn.user_id, kind=RATED, turn_id=turn.turn_id, value=value, said=sign, at=now
        )
        session.add(fact)

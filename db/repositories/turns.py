"""Turns: their records and usage, statistics, feedback, lines of a dataset."""

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

HISTORY: Final = 10
"""Messages before a turn that are exported with it."""
RATED: Final = "rated"
LONGEST_COMMENT: Final = 1000  # characters

Verdict = Literal["liked", "disliked"]

UserMessage = aliased(MessageRow)
Answer = aliased(MessageRow)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn as it is stored: its record, its messages, its trace, its changes."""

    record: TurnRow
    messages: tuple[StoredMessage, ...] = ()
    trace: TraceRecord | None = None
    changes: tuple[Change, ...] = ()


class TurnRepository(TraceStoringRepository):
    """The turns of a database, and the feedback of users on them. Writes commit."""

    async def save(self, ended: EndedTurn) -> None:
        """Store a turn, whole or not at all."""
        async with self.sessions.begin() as session:
            await save_turn(session, ended, self.now(), self.rows)

    async def apply(self, changes: Sequence[Change]) -> None:
        async with self.sessions.begin() as session:
            await apply_changes(session, changes, self.now())

    async def get(self, turn_id: int) -> TurnRow | None:
        return await self._newest(TurnRow.turn_id == turn_id)

    async def find_by_message(self, chat_id: int, message_id: int) -> TurnRow | None:
        """Return the turn whose answer includes this message of the bot; None if there is none."""
        of_message = (OutboxRow.chat_id == chat_id) & (OutboxRow.message_id == message_id)
        return await self._newest(TurnRow.turn_id.in_(select(OutboxRow.turn_id).where(of_message)))

    async def find_last(self, chat_id: int) -> TurnRow | None:
        """Return the turn of a chat that ended last; None if there is none."""
        return await self._newest(TurnRow.chat_id == chat_id)

    async def _newest(self, where: ColumnElement[bool]) -> TurnRow | None:
        newest = select(TurnRow).where(where).order_by(TurnRow.at.desc())
        return await self._first(newest.limit(1))

    async def sum_usage(self, since: datetime, user_id: int | None = None) -> Spent:
        """Return the usage of a user since a moment, or that of everyone."""
        used = select(func.sum(TurnRow.requests), func.sum(TurnRow.cost_usd))
        used = used.where(TurnRow.at >= since)
        if user_id is not None:
            used = used.where(TurnRow.user_id == user_id)
        [(requests, cost)] = await self._rows(used)
        return Spent(requests=int(requests or 0), cost_usd=float(cost or 0))

    async def list_by_day(self, since: datetime) -> dict[date, list[TurnRow]]:
        """Return the turns of every day (UTC) from that of `since` until today."""
        first, last = since.astimezone(UTC).date(), self.now().astimezone(UTC).date()
        since_midnight = TurnRow.at >= datetime.combine(first, time(), UTC)
        numbers = range((last - first).days + 1)
        days: dict[date, list[TurnRow]] = {first + timedelta(days=number): [] for number in numbers}
        for turn in await self._all(select(TurnRow).where(since_midnight)):
            days.setdefault(turn.at.date(), []).append(turn)
        return days

    async def rate(self, turn_id: int, verdict: Verdict | None) -> TurnRow | None:
        """Store the verdict on a turn, None to retract it; a change clears reason and comment.

        Like all feedback it is one statement, so that simultaneous presses on several replicas are
        all counted. For an unknown turn nothing is stored: buttons of deleted turns are pressed
        every day.
        """
        is_other = TurnRow.verdict.is_distinct_from(verdict)
        return await self._set_feedback(turn_id, is_other, verdict=verdict, reason=None, comment="")

    async def explain(
        self, turn_id: int, field: Literal["reason", "comment"], text: str
    ) -> TurnRow | None:
        """Store the reason for a dislike, or a comment on it, cut; return the turn."""
        text = strip_unstorable(text).strip()[:LONGEST_COMMENT]
        return await self._set_feedback(turn_id, TurnRow.verdict == "disliked", **{field: text})

    async def _set_feedback(
        self, turn_id: int, where: ColumnElement[bool], **values: str | None
    ) -> TurnRow | None:
        """Change the feedback on a turn, and the taste and score it sets; return the turn."""
        is_it = TurnRow.turn_id == turn_id
        async with self.sessions.begin() as session:
            await session.execute(update(TurnRow).where(is_it, where).values(values))
            if turn := await session.scalar(select(TurnRow).where(is_it)):
                await _rate_taste(session, turn, self.now())
                await self.rows.save_verdict(session, turn, self.now())
        return turn

    async def forget(self, older_than: timedelta) -> int:
        """Delete turns that are older, with their answers and feedback; return how many."""
        return await self._write(delete(TurnRow).where(TurnRow.at < self.now() - older_than))


async def save_turn(
    session: AsyncSession,
    ended: EndedTurn,
    now: datetime,
    rows: TraceRows,
    waits: timedelta = timedelta(0),
) -> None:
    """Store a turn: its record, its messages, its trace, and its changes of facts and bottles.

    The trace is sent after the time `waits`.
    """
    turn = ended.record
    await _save_messages(session, ended, now)
    await upsert(session, turn)
    if ended.trace is not None:
        await rows.save(session, [ended.trace], now + waits)
    await apply_changes(session, ended.changes, now)


async def _save_messages(session: AsyncSession, ended: EndedTurn, now: datetime) -> None:
    """Store the messages of a turn, once, under the present id of their chat."""
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
    hide: Callable[[str], str],
    since: datetime | None = None,
    *,
    disliked: bool = False,
) -> list[dict[str, object]]:
    """Return the turns, or only `disliked` ones, that have messages, as lines of a dataset.

    The oldest come first. The lines name no user, and `hide` masks their messages.
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
            earlier = (MessageRow.chat_id == question.chat_id) & (MessageRow.id < question.id)
            before = select(MessageRow).where(earlier).order_by(MessageRow.id.desc()).limit(HISTORY)
            history = [
                {"role": row.role, "content": hide(row.content), "wine_ids": row.wine_ids}
                for row in await session.scalars(before)
            ]
            lines.append(
                {
                    "id": f"turn-{turn.turn_id}",
                    "kind": turn.verdict or "turn",
                    "messages": [hide(question.content)],
                    "history": history[::-1],
                    "expect": {},
                    "note": ": ".join(filter(None, [turn.reason, hide(turn.comment)])),
                    "answer": hide(answer.content),
                    "outcome": turn.outcome,
                    "trace_id": turn.trace_id,
                }
            )
    return lines


async def _rate_taste(session: AsyncSession, turn: TurnRow, now: datetime) -> None:
    """Store a verdict on a turn as the user's taste for the first grapes of its wines."""
    is_rating = (FactRow.turn_id == turn.turn_id) & (FactRow.kind == RATED)
    await session.execute(delete(FactRow).where(is_rating))
    if turn.verdict is None or not turn.user_id:
        return
    shown = select(MessageRow.wine_ids).where(MessageRow.turn_id == turn.turn_id)
    ids = {wine_id for listed in await session.scalars(shown) for wine_id in listed}
    blends = await session.scalars(select(WineRow.grapes).where(WineRow.id.in_(ids)))
    said = "+" if turn.verdict == "liked" else "-"
    for grape in sorted({grapes[0] for grapes in blends if grapes}):
        value = f"grapes={grape}"
        fact = FactRow(
            user_id=turn.user_id, kind=RATED, turn_id=turn.turn_id, value=value, said=said, at=now
        )
        session.add(fact)

"""Read the records of turns, and export turns as a dataset."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    Subquery,
    and_,
    func,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased, load_only

from db.engine import Sessions, SqlRepository
from db.models import MessageRow, OutboxRow, SettingRow, TurnRow, UpdateRow

HISTORY_LENGTH: Final = 10
"""How many previous messages are exported with a turn at most."""
HISTORIES_AT_ONCE: Final = 20
"""For how many turns one statement reads the previous messages."""

Question = aliased(MessageRow)
Answer = aliased(MessageRow)
IS_HIDDEN: Final = or_(
    TurnRow.hides_words,
    select(SettingRow.user_id)
    .where(
        SettingRow.user_id == TurnRow.user_id,
        SettingRow.name == "traces",
        SettingRow.value == "numbers",
    )
    .exists(),
)
"""The condition that the user of a turn keeps their words out of traces, or did so at the turn."""


class TurnRepository(SqlRepository):
    """The turns, with users' feedback on them."""

    async def get(self, turn_id: int) -> TurnRow | None:
        """Return a turn, or None if it is not stored."""
        return await self._newest(TurnRow.turn_id == turn_id)

    async def find_by_message(self, chat_id: int, message_id: int) -> TurnRow | None:
        """Return the turn whose answer includes a message of the bot, or None."""
        turn_ids = select(OutboxRow.turn_id).where(
            OutboxRow.chat_id == chat_id,
            OutboxRow.message_id == message_id,
        )
        return await self._newest(TurnRow.turn_id.in_(turn_ids))

    async def find_by_question(
        self,
        chat_id: int,
        message_id: int,
        before_update: int,
    ) -> int | None:
        """Return the id of the newest turn that answered a user's message, or an edit of it.

        Only updates before `before_update` count. Return None if no turn answered it.
        """
        newest = (
            select(UpdateRow.turn_id)
            .where(
                UpdateRow.chat_id == chat_id,
                UpdateRow.message_id == message_id,
                UpdateRow.update_id < before_update,
            )
            .order_by(UpdateRow.update_id.desc())
            .limit(1)
        )
        return await self._first_value(newest)

    async def find_last(self, chat_id: int) -> TurnRow | None:
        """Return the newest turn of a chat, or None."""
        return await self._newest(TurnRow.chat_id == chat_id)

    async def _newest(self, is_wanted: ColumnElement[bool]) -> TurnRow | None:
        """Return the newest turn that meets a condition, or None."""
        newest_first = select(TurnRow).where(is_wanted).order_by(TurnRow.at.desc())
        return await self._first_value(newest_first.limit(1))


async def export_turns(
    sessions: Sessions,
    mask: Callable[[str], str],
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    disliked: bool = False,
) -> list[dict[str, object]]:
    """Return turns with stored messages as lines of a dataset, the oldest first.

    If `disliked`, return only turns with a disliked answer. The lines do not say who asked. Turns
    are left out if their users keep their words out of traces. `mask` masks all texts.
    """
    exchanges = _select_exchanges(since, until, disliked=disliked)
    histories: dict[int, list[MessageRow]] = {}
    async with sessions() as session:
        result = await session.execute(exchanges.order_by(TurnRow.at))
        rows = result.all()
        question_ids = [question.id for _, question, _ in rows]
        for start in range(0, len(question_ids), HISTORIES_AT_ONCE):
            end = start + HISTORIES_AT_ONCE
            histories |= await _load_histories(session, question_ids[start:end])
    lines: list[dict[str, object]] = []
    for turn, question, answer in rows:
        history = histories.get(question.id, [])
        line = _to_line(turn, question, answer, history, mask)
        lines.append(line)
    return lines


def _to_line(
    turn: TurnRow,
    question: MessageRow,
    answer: MessageRow,
    history: Sequence[MessageRow],
    mask: Callable[[str], str],
) -> dict[str, object]:
    """Return a turn as a line of a dataset for `sommelier eval`."""
    masked_history: list[dict[str, object]] = []
    for message in history:
        masked_message: dict[str, object] = {
            "role": message.role,
            "content": mask(message.content),
            "wine_ids": message.wine_ids,
        }
        masked_history.append(masked_message)
    feedback = [turn.reason, mask(turn.comment)]
    return {
        "id": f"turn-{turn.turn_id}",
        "kind": turn.verdict or "turn",
        "messages": [mask(question.content)],
        "history": masked_history,
        "expect": {},
        "note": ": ".join(filter(None, feedback)),
        "answer": mask(answer.content),
        "outcome": turn.outcome,
        "trace_id": turn.trace_id,
    }


def _select_exchanges(
    since: datetime | None,
    until: datetime | None,
    *,
    disliked: bool,
) -> Select[TurnRow, MessageRow, MessageRow]:
    """Return a query for turns, each with its question and its answer."""
    query = (
        select(TurnRow, Question, Answer)
        .join(Question, Question.turn_id == TurnRow.turn_id)
        .join(Answer, Answer.turn_id == TurnRow.turn_id)
        .where(
            Question.role == "user",
            Answer.role == "assistant",
            ~IS_HIDDEN,
        )
        .options(
            load_only(Question.id, Question.content),
            load_only(Answer.content),
        )
    )
    if disliked:
        query = query.where(TurnRow.verdict == "disliked")
    if since is not None:
        query = query.where(TurnRow.at >= since)
    if until is not None:
        query = query.where(TurnRow.at < until)
    return query


async def _load_histories(
    session: AsyncSession, question_ids: Sequence[int]
) -> dict[int, list[MessageRow]]:
    """Return the messages before each question in its conversation, by the question's id."""
    hidden_turn = select(TurnRow.turn_id).where(
        TurnRow.turn_id == MessageRow.turn_id,
        IS_HIDDEN,
    )
    questions = (
        select(Question.id, Question.chat_id, Question.thread_id)
        .where(Question.id.in_(question_ids))
        .subquery()
    )
    is_earlier = and_(
        MessageRow.chat_id == questions.c.chat_id,
        MessageRow.thread_id == questions.c.thread_id,
        MessageRow.id < questions.c.id,
        ~hidden_turn.exists(),
    )
    first_id = _select_first_exported(questions, is_earlier)
    is_exported = MessageRow.id >= func.coalesce(first_id, 0)
    query = (
        select(questions.c.id, MessageRow)
        .join(MessageRow, is_earlier & is_exported)
        .order_by(MessageRow.id)
    )
    histories: defaultdict[int, list[MessageRow]] = defaultdict(list)
    for question_id, message in await session.execute(query):
        histories[question_id].append(message)
    return histories


def _select_first_exported(
    questions: Subquery, is_earlier: ColumnElement[bool]
) -> ScalarSelect[int]:
    """Return the query for the id of the oldest message that is exported before a question.

    Its result is None if there are not so many messages.
    """
    return (
        select(MessageRow.id)
        .where(is_earlier)
        .order_by(MessageRow.id.desc())
        .offset(HISTORY_LENGTH - 1)
        .limit(1)
        .correlate(questions)
        .scalar_subquery()
    )

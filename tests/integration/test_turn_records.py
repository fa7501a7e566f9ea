"""The contract of what is kept of turns, feedback, people and broadcasts, on both databases."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import func, select

from agent.engine.limits import Spent
from db.engine import Sessions
from db.models import OutboxRow, TurnRow
from db.repositories.people import ChatRepository
from db.repositories.turns import EndedTurn, FeedbackRepository, TurnRepository, Verdict

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA, BOB = 8_000_000_001, 42
GROUP = -1_001_234_567_890_123
TURN = TurnRow(
    turn_id=900_000_001,
    chat_id=GROUP,
    user_id=ADA,
    at=NOON,
    outcome="answered",
    seconds=1.5,
    requests=3,
    retries=1,
    cost_usd=0.125,
    trace_id="a" * 32,
    root_id="b" * 16,
)


@pytest.fixture
def turns(sessions: Sessions) -> TurnRepository:
    return TurnRepository(sessions, now=lambda: NOON)


@pytest.fixture
def feedback(sessions: Sessions) -> FeedbackRepository:
    return FeedbackRepository(sessions, now=lambda: NOON)


@pytest.fixture
def chats(sessions: Sessions) -> ChatRepository:
    return ChatRepository(sessions)


def answers(*message_ids: int, turn_id: int = TURN.turn_id) -> list[OutboxRow]:
    """The messages of an answer."""
    return [OutboxRow(chat_id=GROUP, turn_id=turn_id, message_id=each) for each in message_ids]


def turn(turn_id: int, **changes: object) -> TurnRow:
    return replace(TURN, turn_id=turn_id, **changes)  # type: ignore[arg-type]


async def rows(sessions: Sessions) -> list[int | None]:
    async with sessions() as session:
        return [
            await session.scalar(select(func.count()).select_from(table))
            for table in (TurnRow, OutboxRow)
        ]


class TestTurns:
    async def test_a_turn_comes_back_whole_by_its_id_and_by_each_message_of_its_answer(
        self, turns: TurnRepository
    ) -> None:
        await turns.save(EndedTurn(TURN), answers(11, 12))
        assert await turns.get(TURN.turn_id) == TURN
        assert await turns.find_by_message(GROUP, 11) == TURN
        assert await turns.find_by_message(GROUP, 12) == TURN

    async def test_what_was_spent_is_summed_by_person_and_overall_since_a_moment(
        self, turns: TurnRepository
    ) -> None:
        await turns.save(EndedTurn(turn(1, at=NOON - timedelta(days=1))))
        await turns.save(EndedTurn(turn(2, at=NOON, requests=2, cost_usd=0.5)))
        await turns.save(EndedTurn(turn(3, user_id=BOB, requests=1, cost_usd=0.25)))
        await turns.save(EndedTurn(turn(4, user_id=BOB, requests=0, cost_usd=0)))
        assert await turns.spent(NOON) == Spent(requests=3, cost_usd=0.75)
        assert await turns.spent(NOON, ADA) == Spent(requests=2, cost_usd=0.5)
        assert await turns.spent(NOON, 7) == Spent()
        assert await turns.spent(NOON - timedelta(days=2), ADA) == Spent(requests=5, cost_usd=0.625)

    async def test_every_day_is_counted_also_those_without_turns(
        self, turns: TurnRepository, feedback: FeedbackRepository
    ) -> None:
        early = NOON.replace(hour=0) - timedelta(days=2)
        await turns.save(EndedTurn(turn(1, at=early, seconds=1.0, retries=0)))
        await turns.save(EndedTurn(turn(2, at=early, seconds=3.0, cost_usd=0.5)))
        await turns.save(EndedTurn(turn(3, at=early, seconds=2.0, user_id=BOB, outcome="failed")))
        await turns.save(EndedTurn(turn(4, at=early - timedelta(seconds=1))))
        await turns.save(EndedTurn(turn(5, at=NOON)))
        await feedback.rate(1, "liked")
        await feedback.rate(2, "disliked")
        await feedback.rate(3, "disliked")
        await feedback.rate(3, None)
        days = await turns.by_day(NOON - timedelta(days=2))
        assert [(str(day), len(of_day)) for day, of_day in days.items()] == [
            ("2026-04-29", 3),
            ("2026-04-30", 0),
            ("2026-05-01", 1),
        ]
        counted = [(turn.user_id, turn.outcome, turn.verdict) for turn in days[date(2026, 4, 29)]]
        assert set(counted) == {
            (ADA, "answered", "disliked"),
            (ADA, "answered", "liked"),
            (BOB, "failed", None),
        }

    async def test_old_turns_are_forgotten_with_their_answers_and_feedback(
        self, turns: TurnRepository, feedback: FeedbackRepository, sessions: Sessions
    ) -> None:
        old = replace(TURN, at=NOON - timedelta(days=7, seconds=1))
        await turns.save(EndedTurn(old), answers(11, 12))
        await turns.save(EndedTurn(replace(TURN, turn_id=2)), answers(30, turn_id=2))
        await feedback.rate(TURN.turn_id, "liked")
        await feedback.rate(2, "liked")
        assert await turns.forget(timedelta(days=7)) == 1
        assert await turns.forget(timedelta(days=7)) == 0
        assert await rows(sessions) == [1, 1]
        assert await turns.find_by_message(GROUP, 11) is None


@pytest.mark.parametrize("changed", ["liked", None])
async def test_another_verdict_clears_what_was_said_about_the_dislike(
    turns: TurnRepository, feedback: FeedbackRepository, changed: Verdict | None
) -> None:
    await turns.save(EndedTurn(TURN))
    await feedback.rate(TURN.turn_id, "disliked")
    await feedback.reason(TURN.turn_id, "wrong_wine")
    said = await feedback.comment(TURN.turn_id, "It was white.")
    assert said == replace(TURN, verdict="disliked", reason="wrong_wine", comment="It was white.")
    for _ in range(2):
        assert await feedback.rate(TURN.turn_id, changed) == replace(TURN, verdict=changed)
    assert await feedback.reason(TURN.turn_id, "tone") is None


class TestChats:
    async def test_a_broadcast_reaches_private_chats_that_are_open(
        self, chats: ChatRepository
    ) -> None:
        for chat_id in (1, 2, 3, 4, GROUP):
            await chats.reachable(chat_id)
        await chats.decide(2, "blocked")
        await chats.decide(4, "allowed")
        await chats.decide(5, "allowed")
        await chats.unreachable(3)
        assert await chats.private() == [1, 4]
        assert await chats.private(only_allowed=True) == [4]
        await chats.reachable(3)
        assert await chats.private() == [1, 3, 4]

"""What is kept of turns, feedback and chats, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from agent.engine.run import BilledUsage
from db.changes.chats import SetAccess, SetReachable
from db.changes.ratings import RateTurn
from db.engine import Sessions
from db.models import OutboxRow, TurnRow
from db.repositories.outbox import Outbox
from db.repositories.people import ChatRepository
from db.repositories.retention import Retention
from db.repositories.turns import TurnRepository
from tests.stored import make, store_turn

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


def turn(turn_id: int, **changes: object) -> TurnRow:
    return replace(TURN, turn_id=turn_id, **changes)  # type: ignore[arg-type]


async def test_usage_is_summed_by_user_and_overall_since_a_time(
    turns: TurnRepository, sessions: Sessions
) -> None:
    await store_turn(sessions, turn(1, at=NOON - timedelta(days=1)))
    await store_turn(sessions, turn(2, at=NOON, requests=2, cost_usd=0.5))
    await store_turn(sessions, turn(3, user_id=BOB, requests=1, cost_usd=0.25))
    assert await turns.sum_usage(NOON) == BilledUsage(requests=3, cost_usd=0.75)
    assert await turns.sum_usage(NOON, ADA) == BilledUsage(requests=2, cost_usd=0.5)
    assert await turns.sum_usage(NOON, 7) == BilledUsage()
    assert await turns.sum_usage(NOON - timedelta(days=2), ADA) == BilledUsage(
        requests=5, cost_usd=0.625
    )


async def test_days_without_turns_are_listed_too(turns: TurnRepository, sessions: Sessions) -> None:
    early = NOON.replace(hour=0) - timedelta(days=2)
    await store_turn(sessions, turn(1, at=early))
    await store_turn(sessions, turn(2, at=early, user_id=BOB, outcome="failed"))
    await store_turn(sessions, turn(3, at=early - timedelta(seconds=1)))
    await store_turn(sessions, turn(4, at=NOON))
    await make(sessions, RateTurn(1, "disliked"))
    await make(sessions, RateTurn(2, "disliked"))
    await make(sessions, RateTurn(2, None))
    days = await turns.list_by_day(NOON - timedelta(days=2))
    counted = {
        str(day): {(turn.user_id, turn.outcome, turn.verdict) for turn in of_day}
        for day, of_day in days.items()
    }
    assert counted == {
        "2026-04-29": {(ADA, "answered", "disliked"), (BOB, "failed", None)},
        "2026-04-30": set(),
        "2026-05-01": {(ADA, "answered", None)},
    }


async def test_old_turns_are_forgotten_with_their_answers_and_feedback(
    turns: TurnRepository, sessions: Sessions
) -> None:
    for turn_id, at in ((1, NOON - timedelta(days=7, seconds=1)), (2, NOON)):
        await store_turn(sessions, turn(turn_id, at=at))
        async with sessions.begin() as session:
            session.add(OutboxRow(chat_id=GROUP, turn_id=turn_id, message_id=10 + turn_id))
        await make(sessions, RateTurn(turn_id, "liked"))
    retention = Retention(sessions, lambda: NOON)
    assert await retention.delete_turns(timedelta(days=7)) == 1
    assert await retention.delete_turns(timedelta(days=7)) == 0
    assert await turns.find_by_message(GROUP, 11) is None
    async with sessions() as session:
        for table in (TurnRow, OutboxRow):
            assert await session.scalar(select(func.count()).select_from(table)) == 1


async def test_a_broadcast_reaches_reachable_private_chats(sessions: Sessions) -> None:
    chats, outbox = ChatRepository(sessions), Outbox(sessions)
    await make(sessions, *(SetReachable(chat_id) for chat_id in (1, 2, 3, 4, GROUP)))
    await make(sessions, SetAccess(2, "blocked"), SetAccess(4, "allowed"), SetAccess(5, "allowed"))
    await outbox.set_unreachable(3)
    assert await chats.list_private() == [1, 4]
    assert await chats.list_private(only_allowed=True) == [4]
    await make(sessions, SetReachable(3))
    assert await chats.list_private() == [1, 3, 4]

"""What is kept of turns, feedback and chats, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from agent.turn import Change, Fact, StoredMessage
from db.changes.chats import SetAccess, SetReachable
from db.changes.memory import ChangeMemory
from db.changes.ratings import MAX_TASTE_RATINGS, RateTurn
from db.engine import Sessions
from db.models import OutboxRow, TasteRatingRow, TurnRow
from db.repositories.outbox import Outbox
from db.repositories.people import ChatRepository, MemoryRepository
from db.repositories.retention import Retention
from db.repositories.statistics import StatisticsRepository, TurnStatistics, Week
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

MORGON, RIOJA = "lapierre-morgon-2021", "muga-rioja-reserva-2018"
GAMAY, TEMPRANILLO = Fact("rated", "grapes=Gamay"), Fact("rated", "grapes=Tempranillo")


@pytest.fixture
def turns(sessions: Sessions) -> TurnRepository:
    return TurnRepository(sessions, now=lambda: NOON)


def turn(turn_id: int, **changes: object) -> TurnRow:
    return replace(TURN, turn_id=turn_id, **changes)  # type: ignore[arg-type]


async def test_a_week_is_summed_up_by_the_database_by_day_and_as_a_whole(
    sessions: Sessions,
) -> None:
    early = NOON.replace(hour=0) - timedelta(days=2)
    await store_turn(sessions, turn(1, at=early, retries=0))
    await store_turn(
        sessions, turn(2, at=early, user_id=BOB, outcome="failed", seconds=9.0)
    )
    await store_turn(sessions, turn(3, at=early - timedelta(days=5)))
    for number in range(4, 24):  # 20 turns of 1 to 20 seconds
        await store_turn(
            sessions, turn(number, seconds=float(number - 3), cost_usd=0.5)
        )
    await store_turn(sessions, turn(24, user_id=0, outcome="fallback"))
    await make(
        sessions, RateTurn(1, "disliked"), RateTurn(2, "disliked"), RateTurn(2, None)
    )
    await make(sessions, RateTurn(4, "liked"))
    week = Week(NOON.date())
    summary = await StatisticsRepository(sessions).summarize_week(week)
    assert [day.turns for day in summary.by_day] == [0, 0, 0, 0, 2, 0, 21]
    assert summary.by_day[0] == TurnStatistics()
    tuesday, today = summary.by_day[4], summary.by_day[-1]
    assert (tuesday.people, tuesday.retried, tuesday.disliked, tuesday.liked) == (
        2,
        1,
        1,
        0,
    )
    assert [tuesday.count(outcome) for outcome in ("answered", "failed")] == [1, 1]
    assert (tuesday.median_seconds, tuesday.slow_seconds) == (1.5, 9.0)
    assert (today.people, today.liked, today.count("fallback")) == (1, 1, 1)
    assert (today.median_seconds, today.slow_seconds) == (10.0, 19.0)
    total = summary.total
    assert (total.turns, total.people) == (23, 2)
    assert total.cost_usd == pytest.approx(10.375)


async def test_old_turns_are_forgotten_with_their_answers_and_feedback(
    turns: TurnRepository, sessions: Sessions
) -> None:
    for turn_id, at in ((1, NOON - timedelta(days=7, seconds=1)), (2, NOON)):
        await store_turn(sessions, turn(turn_id, at=at))
        async with sessions.begin() as session:
            session.add(
                OutboxRow(chat_id=GROUP, turn_id=turn_id, message_id=10 + turn_id)
            )
        await make(sessions, RateTurn(turn_id, "liked"))
    retention = Retention(sessions, lambda: NOON)
    assert await retention.delete_turns(timedelta(days=7)) == 1
    assert await retention.delete_turns(timedelta(days=7)) == 0
    assert await turns.find_by_message(GROUP, 11) is None
    async with sessions() as session:
        for table in (TurnRow, OutboxRow):
            assert await session.scalar(select(func.count()).select_from(table)) == 1


async def test_ratings_make_tastes_of_which_the_newest_count(
    cellar_sessions: Sessions,
) -> None:
    sessions = cellar_sessions
    memory = MemoryRepository(sessions)
    for turn_id, wine_id in ((1, MORGON), (2, RIOJA), (3, RIOJA)):
        said = StoredMessage("assistant", "Try this.", (wine_id,))
        await store_turn(sessions, turn(turn_id, chat_id=ADA), [said])
        await make(sessions, RateTurn(turn_id, "liked"))
    await make(sessions, RateTurn(2, "disliked"))
    assert await memory.list_facts(ADA) == [GAMAY]
    await make(sessions, RateTurn(2, None))
    assert await memory.list_facts(ADA) == [GAMAY, TEMPRANILLO]
    assert (
        await Retention(sessions, lambda: NOON + timedelta(days=9)).delete_turns(
            timedelta(days=1)
        )
        == 3
    )
    assert len(await memory.list_facts(ADA)) == 2, (
        "a taste stays when its turn is too old"
    )

    older = [
        TasteRatingRow(user_id=ADA, turn_id=None, taste="old", is_liked=True, at=NOON)
        for _ in range(MAX_TASTE_RATINGS)
    ]
    async with sessions.begin() as session:
        session.add_all(older)
    await store_turn(
        sessions, turn(4, chat_id=ADA), [StoredMessage("assistant", "", (MORGON,))]
    )
    await make(sessions, RateTurn(4, "liked"))
    async with sessions() as session:
        kept = [*await session.scalars(select(TasteRatingRow.taste))]
    assert (len(kept), kept.count("old")) == (MAX_TASTE_RATINGS, MAX_TASTE_RATINGS - 3)
    await make(sessions, ChangeMemory(Change(user_id=ADA, removed_facts=(GAMAY,))))
    assert GAMAY not in await memory.list_facts(ADA)


async def test_a_broadcast_reaches_reachable_private_chats(sessions: Sessions) -> None:
    chats, outbox = ChatRepository(sessions), Outbox(sessions)
    await make(sessions, *(SetReachable(chat_id) for chat_id in (1, 2, 3, 4, GROUP)))
    await make(
        sessions,
        SetAccess(2, "blocked"),
        SetAccess(4, "allowed"),
        SetAccess(5, "allowed"),
    )
    await outbox.set_unreachable(3)
    assert await chats.list_recipients() == [1, 4]
    assert await chats.list_recipients(only_allowed=True) == [4]
    await make(sessions, SetReachable(3))
    assert await chats.list_recipients() == [1, 3, 4]

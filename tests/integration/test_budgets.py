"""Daily budgets see turns that run: what one has reserved, another does not spend."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from agent.engine.run import BilledUsage, Limits, Run
from agent.turn import Reply
from bot.runner import TurnRunner
from bot.turn import Question, Turn
from db.budgets import LONGEST_TURN, UNLIMITED, DailyBudgets
from db.commit import Commit, Fence
from db.engine import Sessions
from db.models import ReservationRow, TurnRow, UpdateRow
from db.repositories.commits import Commits
from db.repositories.inbox import Inbox
from tests.stored import store_turn

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ADA, BOB, ADMIN = 31, 32, 33
TURN = Limits(requests=5, cost_usd=0.5)


@pytest.fixture
def budgets(sessions: Sessions) -> DailyBudgets:
    return DailyBudgets(
        sessions,
        lambda: NOON,
        person_requests=8,
        total_cost_usd=2.0,
        exempt={ADMIN},
        turn_limits=TURN,
    )


async def spend(
    sessions: Sessions, number: int, user_id: int, spent: BilledUsage
) -> None:
    record = TurnRow(
        turn_id=number,
        user_id=user_id,
        at=NOON - timedelta(hours=number),
        requests=spent.requests,
        cost_usd=spent.cost_usd,
    )
    await store_turn(sessions, record)


async def count_reserved(sessions: Sessions) -> int:
    async with sessions() as session:
        return (
            await session.scalar(select(func.count()).select_from(ReservationRow)) or 0
        )


async def accept(inbox: Inbox, *update_ids: int) -> list[UpdateRow]:
    """Accept an update of each of several users, and return them as they are stored."""
    rows = [
        UpdateRow(
            update_id=number,
            chat_id=number,
            lane=str(number),
            payload={},
            user_id=number,
        )
        for number in update_ids
    ]
    await inbox.accept(rows)
    stored: list[UpdateRow] = []
    for number in update_ids:
        stored += await inbox.list_unfinished(str(number))
    return stored


async def test_two_turns_at_once_share_a_nearly_used_budget_and_what_is_left_over_returns(
    sessions: Sessions, budgets: DailyBudgets
) -> None:
    inbox = Inbox(sessions, lambda: NOON, budgets=budgets)
    await spend(sessions, 9, ADA, BilledUsage(requests=1, cost_usd=1.4))
    rows = await accept(inbox, 1, 2)
    begun = await asyncio.gather(
        *(inbox.begin(row, tries=1, payer_id=row.update_id) for row in rows)
    )
    # Whoever comes first may spend half a dollar, as a turn does; the other one has the rest.
    first, second = sorted((each.budget.cost_usd for each in begun), reverse=True)
    assert [first, second] == pytest.approx([0.6, 0.1])
    third = await budgets.reserve(3, BOB)
    assert third.is_used_up()
    record = TurnRow(turn_id=1, user_id=1, at=NOON, requests=2, cost_usd=0.01)
    await inbox.commit(rows[0], Commit(fence=Fence(accepted_at=NOON), record=record))
    after = await budgets.reserve(3, BOB)
    freed = 0.5 if begun[0].budget.cost_usd > 0.5 else 0.1
    assert after.cost_usd == pytest.approx(freed - 0.01)


async def test_requests_are_reserved_for_each_user(
    sessions: Sessions, budgets: DailyBudgets
) -> None:
    await spend(sessions, 9, ADA, BilledUsage(requests=1, cost_usd=0.0))
    await spend(sessions, 30, ADA, BilledUsage(requests=8, cost_usd=1.9))  # yesterday
    assert (await budgets.reserve(1, ADA)).requests == 7
    assert (await budgets.reserve(2, ADA)).requests == 2
    assert (
        await budgets.reserve(2, ADA)
    ).requests == 2  # a second try of the same turn
    assert (await budgets.reserve(3, ADA)).is_used_up()
    assert (await budgets.reserve(4, BOB)).requests == 8
    assert await budgets.reserve(5, ADMIN) == UNLIMITED


async def test_what_a_killed_process_has_reserved_is_released(
    sessions: Sessions, budgets: DailyBudgets
) -> None:
    inbox = Inbox(sessions, lambda: NOON, budgets=budgets)
    (row,) = await accept(inbox, ADA)
    await inbox.begin(row, tries=1, payer_id=ADA)  # and the process is killed
    (again,) = await inbox.list_unfinished(str(ADA))
    resumed = await inbox.begin(again, tries=2, payer_id=ADA)
    assert resumed.budget.requests == 8
    await inbox.release(again)  # it is told to stop
    assert await count_reserved(sessions) == 0
    await budgets.reserve(-1, 0)  # of a client, whose turn nobody resumes
    later = DailyBudgets(
        sessions, lambda: NOON + LONGEST_TURN * 1.1, total_cost_usd=2.0
    )
    assert (await later.reserve(-2, 0)).cost_usd == 2.0
    await later.release_all()
    assert await count_reserved(sessions) == 0


async def test_a_turn_of_a_client_reserves_while_it_runs_and_settles_even_if_it_fails(
    sessions: Sessions, budgets: DailyBudgets
) -> None:
    runner = TurnRunner(budgets=budgets, commits=Commits(sessions, budgets=budgets))

    async def look(run: Run) -> Reply:
        assert await count_reserved(sessions) == 1
        return Reply(text="Chinon")

    async def be_cancelled(run: Run) -> Reply:
        raise asyncio.CancelledError

    reply = await runner.run_and_commit(Turn(), Question(text="a red"), look)
    assert reply.text == "Chinon"
    assert await count_reserved(sessions) == 0
    with pytest.raises(asyncio.CancelledError):
        await runner.run_and_commit(Turn(), Question(text="a red"), be_cancelled)
    assert await count_reserved(sessions) == 0

"""Locks of lanes among replicas, on a real Postgres whose connections are cut."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from bot.updates import locks
from bot.updates.locks import LEADER, ReplicaLocks, while_leading
from bot.updates.scheduler import row_of
from db.engine import Sessions, create_engine
from db.repositories.inbox import Inbox
from tests.databases import Databases
from tests.doubles.server import eventually
from tests.integration.test_turns import message

DROP = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND datname = current_database()
"""
Start = Callable[[], ReplicaLocks]
pytestmark = pytest.mark.parametrize("databases", ["postgres"], indirect=True)


@pytest.fixture
def url(databases: Databases, migrated_url: str) -> str:
    return databases.create(migrated_url)


@pytest.fixture
async def start(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts a replica, which takes nothing back slowly."""
    monkeypatch.setattr(locks, "SETTLE_SECONDS", 0.05)
    async with AsyncExitStack() as stack:

        def one() -> ReplicaLocks:
            locks = ReplicaLocks(url)
            stack.push_async_callback(locks.close)
            return locks

        yield one


@pytest.fixture
async def waiting(url: str) -> AsyncIterator[Callable[..., Awaitable[object]]]:
    """Has an update wait in the lane of a chat."""
    engine = create_engine(url)
    updates = Inbox(Sessions(engine))

    async def accept(update_id: int, chat: int, text: str = "") -> None:
        said = message(update_id, text, chat={"id": chat, "type": "private"})
        await updates.accept([row_of(said)])

    yield accept
    await engine.dispose()


def drop_connections(url: str) -> None:
    """Cut the connections by which anybody holds a lane, as a restart of Postgres does."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(DROP)


async def test_one_replica_at_a_time_holds_a_lane(start: Start) -> None:
    one, other = start(), start()
    async with (
        one.lock("7") as ours,
        other.lock("7") as theirs,
        other.lock("8") as next_to_it,
    ):
        assert (ours, theirs, next_to_it) == (True, False, True)
    async with other.lock("7") as theirs:
        assert theirs


async def test_a_replica_locks_its_lanes_again_after_its_connection_was_cut(
    start: Start, url: str
) -> None:
    one, other = start(), start()
    async with one.lock("7"), one.lock("8"):
        drop_connections(url)
        await one.find_unowned()
        async with other.lock("7") as theirs:
            assert not theirs
    async with other.lock("7") as seven, other.lock("8") as eight:
        assert (seven, eight) == (True, True)


async def test_a_replica_that_lost_the_lock_leads_no_more(
    start: Start, url: str
) -> None:
    one, other, leads = start(), start(), list[str]()

    async def lead() -> None:
        leads.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            leads.append("ended")

    leading = asyncio.create_task(while_leading(one, lead))
    await eventually(
        lambda: leads == ["began"], seconds=30, otherwise=lambda: str(leads)
    )
    drop_connections(url)
    is_taken = False
    while (
        not is_taken
    ):  # Postgres frees the locks of a connection a moment after it was cut
        async with other.lock(LEADER) as is_taken:
            await one.find_unowned()  # connects again, and sees that its lock is lost
            if is_taken:
                await eventually(
                    lambda: "ended" in leads, seconds=30, otherwise=lambda: str(leads)
                )
    leading.cancel()


async def test_the_owner_of_a_lane_is_notified_of_new_updates_and_of_turns_to_stop(
    start: Start, waiting: Callable[..., Awaitable[object]], url: str
) -> None:
    one, other, heard = start(), start(), list[dict[str, Any]]()

    async def hear() -> None:
        async for notice in one.listen():
            heard.append(notice)

    hearing = asyncio.create_task(hear())
    await waiting(1, 7)
    await waiting(2, 7, "/stop")
    asked = {"chat_id": 7, "user_id": 7}
    engine = create_engine(url)
    inbox = Inbox(Sessions(engine))
    rows = [(await inbox.list_unfinished(lane))[0] for lane in ("stop-7", "7")]
    async with one.lock("7"):
        while not heard:
            async with other.lock("7") as theirs:
                assert not theirs
            await asyncio.sleep(0.01)
        assert heard[0] == {"lane": "7"}
        for row, is_turn in zip(rows, (False, True), strict=True):
            await inbox.begin(row, tries=1)
            assert await other.stop_elsewhere(asked) == is_turn
        await engine.dispose()
        await eventually(
            lambda: heard[-1] == asked, seconds=5, otherwise=lambda: f"{heard}"
        )
    await one.stop_elsewhere(asked)  # its own notice, which it does not hear
    later = {"chat_id": 9}
    await other.stop_elsewhere(later)
    await eventually(
        lambda: heard[-1] == later, seconds=30, otherwise=lambda: f"{heard}"
    )
    assert heard.count(asked) == 2
    hearing.cancel()


async def test_a_pooler_that_breaks_locks_is_named(
    start: Start,
    waiting: Callable[..., Awaitable[object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = start()
    await waiting(1, 7)
    await one.find_unowned()
    assert caplog.text == ""
    one._pid = 0  # what answers is another server process than the one we connected to
    await one.find_unowned()
    assert "a pooler in transaction mode" in caplog.text


async def test_a_search_that_was_cancelled_dropped_every_lock(start: Start) -> None:
    one, other = start(), start()
    async with one.lock("7"):
        searching = asyncio.create_task(one._execute("SELECT pg_sleep(0.3)"))
        await asyncio.sleep(0.1)
        searching.cancel()
        await asyncio.wait([searching])
        async with other.lock("7") as theirs:
            assert not theirs

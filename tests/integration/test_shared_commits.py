"""What turns write shares commits, and what they read none, on both databases."""

import asyncio

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from db.engine import Sessions, is_passing

ADD = text("INSERT INTO chats (chat_id) VALUES (:chat)")
ALL = text("SELECT chat_id FROM chats ORDER BY chat_id")
CUT = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def add(sessions: Sessions, chat: int) -> str:
    def write(on: Connection) -> str:
        on.execute(ADD, {"chat": chat})
        return f"added {chat}"

    return await sessions.write(write)


async def added(sessions: Sessions) -> list[int]:
    return await sessions.read(lambda on: list(on.scalars(ALL)))


async def test_one_that_is_at_fault_takes_none_of_the_others_with_it(sessions: Sessions) -> None:
    await add(sessions, 2)
    adding = (add(sessions, chat) for chat in (1, 2, 3))
    one, two, three = await asyncio.gather(*adding, return_exceptions=True)
    assert (one, three) == ("added 1", "added 3")
    assert isinstance(two, IntegrityError)
    assert not is_passing(two)
    assert await added(sessions) == [1, 2, 3]


async def test_who_goes_away_while_it_is_written_has_written_it(sessions: Sessions) -> None:
    leaving = asyncio.create_task(add(sessions, 1))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await add(sessions, 2) == "added 2"
    assert await added(sessions) == [1, 2]


@pytest.mark.parametrize("databases", ["postgres"], indirect=True)
async def test_a_connection_that_was_cut_is_made_anew_unseen(sessions: Sessions) -> None:
    assert await add(sessions, 1) == "added 1"
    assert await added(sessions) == [1]
    async with sessions() as session:
        await session.execute(CUT)
    assert await add(sessions, 2) == "added 2"
    async with sessions() as session:
        await session.execute(CUT)
    assert await added(sessions) == [1, 2]


@pytest.mark.parametrize("databases", ["postgres"], indirect=True)
async def test_a_transaction_that_is_cut_is_done_again_once(sessions: Sessions) -> None:
    tries = []

    def cut(on: Connection) -> None:
        tries.append(on.scalar(text("SELECT pg_backend_pid()")))
        on.execute(ADD, {"chat": len(tries)})
        if len(tries) < 3:
            on.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(DBAPIError) as failed:
        await sessions.write(cut)
    assert is_passing(failed.value)
    await sessions.write(cut)
    assert (len(set(tries)), await added(sessions)) == (3, [3])

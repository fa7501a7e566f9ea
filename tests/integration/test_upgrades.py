"""Databases of earlier releases are upgraded: migrations keep their data, and none is half done."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import MetaData, event, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.turn import Fact
from db.engine import DatabaseUnusable, Sessions, create_engine
from db.models import OutboxRow, TurnRow, UndoableChangeRow, UpdateRow
from db.repositories.people import MemoryRepository, MessageRepository
from db.schema import SchemaState, find_schema, newest_revision, upgrade_schema
from db.traces import SqlTraceStore
from db.wines.catalogue import SqlCatalogue
from tests.databases import Databases
from tests.processes import FORKS
from tests.releases import restore_release

OWNER, PREGNANT = 1001, 1002
FILLED = datetime.fromisoformat("2026-11-29T02:16:00+00:00")


@pytest.fixture
async def filled(databases: Databases) -> AsyncIterator[AsyncEngine]:
    """Yield a database as release 0.2.0 left it."""
    url = databases.create()
    restore_release("0.2.0", url)
    engine = create_engine(url)
    yield engine
    await engine.dispose()


async def test_data_of_release_0_2_0_is_kept(filled: AsyncEngine) -> None:
    assert await find_schema(filled) == ("a001", "")
    await upgrade_schema(filled)
    assert (await find_schema(filled)).state is SchemaState.NEWEST
    sessions = Sessions(filled)

    messages = await MessageRepository(sessions).list_recent(OWNER)
    assert messages[0].content == "Something red for lamb, under 25 euros"
    recommended = [wine_id for message in messages for wine_id in message.wine_ids]
    wines = await SqlCatalogue(sessions).get(recommended)
    assert {wine.id for wine in wines} == set(recommended)
    assert all(wine.offers[0].price for wine in wines)

    memory = MemoryRepository(sessions, now=lambda: FILLED)
    facts = await memory.list_facts(OWNER)
    assert Fact("hate", "grapes=Riesling", "Riesling") in facts
    assert Fact("allergy", "fish") in facts
    assert await memory.list_concerns(None, PREGNANT) == {"pregnancy"}
    bottles = await memory.list_bottles(OWNER)
    names = [
        (item.wine["name"], item.wine["vintage"], item.count, item.number)
        for item in bottles
    ]
    assert names == [("Barolo", 2016, 6, 1), ("Chablis", 2021, 2, 2)]

    async with sessions() as session:
        undo_ids = await session.scalars(select(UndoableChangeRow.undo_id))
        changes = [await memory.find_undoable(OWNER, undo_id) for undo_id in undo_ids]
        verdicts = {*await session.scalars(select(TurnRow.verdict))}
        states = {*await session.scalars(select(UpdateRow.state))}
        unsent = await session.scalars(
            select(OutboxRow).where(OutboxRow.message_id.is_(None))
        )
    assert [change.bottles for change in changes if change][-1][0].wine[
        "name"
    ] == "Chablis"
    assert (verdicts, states, [*unsent]) == ({None, "liked", "disliked"}, {"done"}, [])

    summaries = await SqlTraceStore(sessions).list_summaries(99)
    assert len(summaries) == 13
    trace = await SqlTraceStore(sessions).get("last")
    assert trace.root.metadata["outcome"] == "answered"


MEMORY = (
    ("safety", "allergy:egg", 0, -5, "", None),
    ("rated", "grapes=Merlot", 1, 0, "+", None),
    ("rated", "grapes=Merlot", 2, 0, "+", None),
    ("rated", "grapes=Merlot", 3, 0, "-", None),
    ("rated", "grapes=Syrah", 3, 0, "-", None),
    ("setting", "reminded=2025-autumn", 0, 0, "", None),
    ("setting", "reminded=2026-winter", 0, 0, "", None),
    ("setting", "due barolo 2016=2025", 0, 0, "", None),
    ("setting", "due barolo 2016=2026", 0, 0, "", None),
)
"""Facts as release 0.2.0 stored them: kind, value, turn, chat, words, expiry."""


async def test_facts_of_every_kind_find_their_table(filled: AsyncEngine) -> None:
    insert = text(
        "INSERT INTO facts (user_id, kind, value, turn_id, chat_id, said, until, at) "
        "VALUES (:u, :k, :v, :t, :c, :s, :e, :at)"
    )
    async with filled.begin() as connection:
        for kind, value, turn_id, chat_id, said, until in MEMORY:
            values = {
                "k": kind,
                "v": value,
                "t": turn_id,
                "c": chat_id,
                "s": said,
                "e": until,
            }
            await connection.execute(
                insert, {"u": OWNER, "at": f"{FILLED:%F %T.%f}", **values}
            )
    await upgrade_schema(filled)

    memory = MemoryRepository(Sessions(filled), now=lambda: FILLED)
    assert await memory.list_concerns(-5, OWNER) == {"allergy:egg"}
    facts = {fact.value for fact in await memory.list_facts(OWNER)}
    assert facts == {
        *("fish", "grapes=Riesling"),
        *("traces=numbers", "language=de", "grapes=Merlot"),
    }
    assert [item.reminded_year for item in await memory.list_bottles(OWNER)] == [
        2026,
        None,
    ]
    assert OWNER not in await memory.list_owners_to_remind("2026-winter")
    assert OWNER in await memory.list_owners_to_remind("2026-spring")


@pytest.mark.parametrize("revision", ["a006", "a017", newest_revision()])
async def test_a_process_killed_in_a_migration_leaves_what_the_old_release_runs_on(
    filled: AsyncEngine, revision: str
) -> None:
    before = await dump(filled)
    await filled.dispose()  # as for any upgrade, the bot has stopped
    url = filled.url.render_as_string(hide_password=False)
    process = FORKS.Process(target=upgrade_until_killed, args=(url, revision))
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL

    # Release 0.2.0 runs on this very revision alone.
    assert await find_schema(filled) == ("a001", "")
    assert await dump(filled) == before
    await upgrade_schema(filled)
    assert (await find_schema(filled)).state is SchemaState.NEWEST
    messages = await MessageRepository(Sessions(filled)).list_recent(OWNER)
    assert messages[0].content == "Something red for lamb, under 25 euros"


def upgrade_until_killed(url: str, revision: str) -> None:
    """Upgrade a database; this process is killed when all but the number of a revision is written.

    What it has changed until then is in the database's log, and not committed.
    """
    engine = create_engine(url)

    def kill_at_revision(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.startswith(f"UPDATE alembic_version SET version_num='{revision}'"):
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine.sync_engine, "before_cursor_execute", kill_at_revision)
    asyncio.run(upgrade_schema(engine))


async def dump(engine: AsyncEngine) -> dict[str, object]:
    """Return the columns of each table, and its rows."""
    tables: dict[str, object] = {}
    async with engine.connect() as connection:
        schema = MetaData()
        await connection.run_sync(schema.reflect)
        for table in schema.sorted_tables:
            rows = (await connection.execute(select(table))).all()
            columns = [(column.name, repr(column.type)) for column in table.columns]
            tables[table.name] = (columns, sorted(map(repr, rows)))
    return tables


async def test_a_release_runs_on_the_schema_of_a_later_one_that_supports_it(
    empty_engine: AsyncEngine,
) -> None:
    await upgrade_schema(empty_engine)
    await set_schema(empty_engine, "a999", oldest=newest_revision())
    await upgrade_schema(empty_engine)
    schema = await find_schema(empty_engine)
    assert (schema.revision, schema.state) == ("a999", SchemaState.NEWER)


@pytest.mark.parametrize("oldest", ["a998", ""])
async def test_tables_of_a_release_that_does_not_are_reported_and_unchanged(
    empty_engine: AsyncEngine, oldest: str
) -> None:
    await upgrade_schema(empty_engine)
    await set_schema(empty_engine, "a999", oldest=oldest)
    with pytest.raises(
        DatabaseUnusable, match=r"Another release has made .*'a999'.*restore"
    ):
        await upgrade_schema(empty_engine)
    assert await find_schema(empty_engine) == ("a999", oldest)


async def set_schema(engine: AsyncEngine, revision: str, *, oldest: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE alembic_version SET version_num = :r"), {"r": revision}
        )
        await connection.execute(
            text("UPDATE schema_support SET oldest_revision = :r"), {"r": oldest}
        )

"""The migrated schema, on both databases."""

import asyncio
from importlib import resources
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.sommelier.vocabulary import Currency
from agent.sommelier.wine import Offer
from db.engine import (
    DatabaseUnusable,
    Sessions,
    create_engine,
    find_revision,
    newest_revision,
    upgrade_schema,
)
from db.models import Base, FactRow, TurnRow, UpdateRow
from db.repositories.outbox import Outbox
from db.repositories.people import MessageRepository
from db.wines.catalogue import SqlCatalogue
from tests.databases import Databases, migrated_sqlite


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, Base.metadata))


async def test_the_migrated_schema_is_the_one_the_models_declare(empty_engine: AsyncEngine) -> None:
    assert await find_revision(empty_engine) is None
    for _ in range(2):
        await upgrade_schema(empty_engine)
        assert await find_revision(empty_engine) == newest_revision()
    async with empty_engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_tables_of_another_release_are_reported_and_unchanged(
    empty_engine: AsyncEngine,
) -> None:
    await upgrade_schema(empty_engine)
    async with empty_engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(DatabaseUnusable, match=r"another release \(.*'0001'"):
        await upgrade_schema(empty_engine)
    assert await find_revision(empty_engine) == "0001"


async def test_replicas_that_start_at_once_migrate_once(databases: Databases) -> None:
    url = databases.create()
    replicas = [create_engine(url) for _ in range(4)]
    await asyncio.gather(*(upgrade_schema(replica) for replica in replicas))
    assert [await find_revision(replica) for replica in replicas] == [newest_revision()] * 4
    for replica in replicas:
        await replica.dispose()


async def test_sqlite_files_and_their_folder_are_private(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path}/new/wines.sqlite3")
    async with engine.connect() as connection:
        await connection.execute(text("CREATE TABLE written (id INTEGER)"))
        await connection.commit()
        # Every commit is on disk: an accepted update survives a power cut.
        assert await connection.scalar(text("PRAGMA synchronous")) == 2
        modes = {each.name: oct(each.stat().st_mode)[-3:] for each in (tmp_path / "new").iterdir()}
    await engine.dispose()
    assert modes == dict.fromkeys(modes, "600")
    assert {each.rpartition("3")[2] for each in modes} == {"", "-wal", "-shm"}
    assert oct((tmp_path / "new").stat().st_mode)[-3:] == "700"


async def test_a_file_deleted_while_in_use_rejects_writes(tmp_path: Path) -> None:
    engine = await migrated_sqlite(tmp_path / "wines.sqlite3")
    outbox = Outbox(Sessions(engine))
    await outbox.set_unreachable(1)
    (tmp_path / "wines.sqlite3").unlink()
    with pytest.raises(DatabaseUnusable, match="was deleted or replaced"):
        await outbox.set_unreachable(2)
    await engine.dispose()


async def test_the_rows_of_release_0_2_0_are_kept(
    empty_engine: AsyncEngine,
) -> None:
    await migrate_to(empty_engine, "a001")
    rows = (
        "INSERT INTO turns (turn_id, chat_id, user_id, at, outcome, seconds, requests, retries, "
        "cost_usd, comment) VALUES (1, 7, 7, '2026-05-01', 'care', 1, 1, 0, 0, '')",
        "INSERT INTO updates (update_id, chat_id, lane, payload, received_at, state, tries, epoch) "
        "VALUES (1, 7, '7', '{}', '2026-05-01', 'waiting', 0, 0)",
        "INSERT INTO updates (update_id, chat_id, lane, payload, received_at, state, tries, epoch, "
        "turn_id) VALUES (2, 7, '7', '{}', '2026-05-01', 'merged', 0, 0, 1)",
        "INSERT INTO messages (chat_id, role, content, wine_ids, created_at, thread_id, "
        "attachment) VALUES (7, 'assistant', 'Two reds.', '[\"a\"]', '2026-05-01', 0, '')",
        "INSERT INTO facts (user_id, kind, value, turn_id, chat_id, said, at) "
        "VALUES (7, 'hate', 'grapes=riesling', 0, 0, 'no Riesling', '2026-05-01')",
    )
    wine = (
        "INSERT INTO wines (number, id, producer, name, country, region, appellation, currency, "
        "notes, source, places, search_text, grapes, foods, allergens, grape_keys, in_stock, "
        "shuffle, style, country_key, price_in_euros, price) VALUES (3, 'a', 'A', 'B', 'Italy', "
        "'', '', 'CHF', 'Dark.', 'list', '', 'a b', '[\"Merlot\"]', '[]', '[]', '[]', false, 1, "
        "'red', 'italy', 21, 20)"
    )
    async with empty_engine.begin() as connection:
        for row in (*rows, wine):
            await connection.execute(text(row))
    await upgrade_schema(empty_engine)
    async with Sessions(empty_engine)() as session:
        turn = await session.get_one(TurnRow, 1)
        update = await session.get_one(UpdateRow, 1)
        joined = await session.get_one(UpdateRow, 2)
        facts = [*await session.scalars(select(FactRow.said))]
    (said,) = await MessageRepository(Sessions(empty_engine)).list_recent(7)
    assert (said.content, said.wine_ids, said.answer) == ("Two reds.", ("a",), "")
    assert joined.state == "joined"
    assert (turn.outcome, update.calls, facts) == ("help", [], ["no Riesling"])
    offer = Offer(price=20, currency=Currency.CHF, in_stock=False)
    (kept,) = await SqlCatalogue(Sessions(empty_engine)).get(["a"])
    assert (kept.notes, kept.grapes, kept.offers) == ("Dark.", ("Merlot",), (offer,))


async def migrate_to(engine: AsyncEngine, revision: str) -> None:
    """Bring a database to an earlier schema."""

    def upgrade(connection: Connection) -> None:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(resources.files("migrations")))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, revision)

    async with engine.begin() as connection:
        await connection.run_sync(upgrade)

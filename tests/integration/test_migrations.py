"""The migrated schema, on both databases."""

import asyncio
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

import migrations
from db.engine import DatabaseUnavailable, create_engine
from db.models import Base
from db.schema import compared, newest_revision, schema_revision, upgrade_schema
from tests.databases import Databases

OUR_TABLES = {"wines", "documents", "messages", "updates", "turns"}


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(
        connection,
        opts={
            "include_name": lambda name, kind, _parents: compared(name, kind),
            "compare_type": True,
        },
    )
    return list(compare_metadata(context, Base.metadata))


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


async def test_the_migrated_schema_is_the_one_the_models_declare(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
        assert await connection.run_sync(tables) >= OUR_TABLES


async def test_an_empty_database_has_no_revision_and_upgrade_brings_it_to_head(
    empty_engine: AsyncEngine,
) -> None:
    assert await schema_revision(empty_engine) is None
    await upgrade_schema(empty_engine)
    assert await schema_revision(empty_engine) == newest_revision()
    await upgrade_schema(empty_engine)
    assert await schema_revision(empty_engine) == newest_revision()


async def test_tables_of_another_release_are_told_and_left_alone(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseUnavailable, match=r"another release \(revision 9999"):
        await upgrade_schema(engine)
    assert await schema_revision(engine) == "9999"


async def test_replicas_that_start_at_once_migrate_once(databases: Databases) -> None:
    url = databases.create()
    replicas = [create_engine(url) for _ in range(4)]
    await asyncio.gather(*(upgrade_schema(replica) for replica in replicas))
    assert [await schema_revision(replica) for replica in replicas] == [newest_revision()] * 4
    for replica in replicas:
        await replica.dispose()


async def test_a_migration_that_fails_leaves_nothing_behind(empty_engine: AsyncEngine) -> None:
    async with empty_engine.begin() as connection:
        await connection.execute(text("CREATE TABLE messages (id INTEGER)"))
    with pytest.raises(Exception, match="already exists"):
        await upgrade_schema(empty_engine)
    async with empty_engine.connect() as connection:
        assert await connection.run_sync(tables) == {"messages"}


def test_alembics_own_command_migrates_down_and_up(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = databases.create()
    monkeypatch.setenv("DATABASE_URL", url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")

    async def revision() -> str | None:
        engine = create_engine(url)
        found = await schema_revision(engine)
        await engine.dispose()
        return found

    command.upgrade(config, "head")
    assert asyncio.run(revision()) == newest_revision()
    command.downgrade(config, "base")
    assert asyncio.run(revision()) is None
    command.upgrade(config, "head")
    assert asyncio.run(revision()) == newest_revision()


async def test_sqlite_files_are_opened_for_concurrent_use(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path}/new/folder/wines.sqlite3")
    async with engine.connect() as connection:
        found = {
            name: await connection.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        }
    await engine.dispose()
    assert found == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "busy_timeout": 10_000,
        "synchronous": 2,  # every commit is on disk: an accepted update survives a power cut
    }


async def test_sqlite_files_and_their_folder_are_their_owners_alone(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path}/new/wines.sqlite3")
    async with engine.connect() as connection:
        await connection.execute(text("CREATE TABLE written (id INTEGER)"))
        await connection.commit()
        modes = {each.name: oct(each.stat().st_mode)[-3:] for each in (tmp_path / "new").iterdir()}
    await engine.dispose()
    assert modes == dict.fromkeys(modes, "600")
    assert {each.rpartition("3")[2] for each in modes} == {"", "-wal", "-shm"}
    assert oct((tmp_path / "new").stat().st_mode)[-3:] == "700"


async def test_an_unreachable_postgres_is_named_without_its_password() -> None:
    engine = create_engine("postgresql+psycopg://sommelier:s3cret@127.0.0.1:1/cellar")
    with pytest.raises(DatabaseUnavailable) as caught:
        await upgrade_schema(engine)
    await engine.dispose()
    message = str(caught.value)
    assert "sommelier:***@127.0.0.1:1/cellar cannot be reached" in message
    assert "s3cret" not in message
    assert "DATABASE_URL" in message


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database, and long enough to be looked at as one " * 4)
    engine = create_engine(f"sqlite+aiosqlite:///{path}")
    with pytest.raises(DatabaseUnavailable, match=r"notes\.txt cannot be reached: file is not"):
        await upgrade_schema(engine)
    await engine.dispose()

"""The migrated schema, on both databases."""

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from db.engine import DatabaseUnusable, Sessions, create_engine
from db.models import Base
from db.repositories.outbox import Outbox
from db.schema import SchemaState, find_schema, upgrade_schema
from tests.databases import Databases, migrated_sqlite


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, Base.metadata))


async def test_the_migrated_schema_is_the_one_the_models_declare(
    empty_engine: AsyncEngine,
) -> None:
    assert (await find_schema(empty_engine)).state is SchemaState.EMPTY
    for _ in range(2):
        await upgrade_schema(empty_engine)
        assert (await find_schema(empty_engine)).state is SchemaState.NEWEST
    async with empty_engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_replicas_that_start_at_once_migrate_once(databases: Databases) -> None:
    url = databases.create()
    replicas = [create_engine(url) for _ in range(4)]
    await asyncio.gather(*(upgrade_schema(replica) for replica in replicas))
    states = [(await find_schema(replica)).state for replica in replicas]
    assert states == [SchemaState.NEWEST] * 4
    for replica in replicas:
        await replica.dispose()


async def test_sqlite_files_and_their_folder_are_private(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{tmp_path}/new/wines.sqlite3")
    async with engine.connect() as connection:
        await connection.execute(text("CREATE TABLE written (id INTEGER)"))
        await connection.commit()
        # Every commit is on disk: an accepted update survives a power cut.
        assert await connection.scalar(text("PRAGMA synchronous")) == 2
        modes = {
            each.name: oct(each.stat().st_mode)[-3:]
            for each in (tmp_path / "new").iterdir()
        }
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

"""Bringing a database to the schema of this version. Needs no configuration file."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from db.engine import check
from db.models import FULL_TEXTS

LOCK: Final = 7_303_014
"""Any number that nothing else locks on this database."""


async def upgrade(engine: AsyncEngine) -> None:
    """Migrate to the newest schema, all or nothing. Others who try meanwhile wait their turn.

    Raises:
        DatabaseUnavailable: no connection.
    """
    await check(engine)
    async with engine.begin() as connection:
        await connection.run_sync(lock)
        await connection.run_sync(_upgrade)


async def current(engine: AsyncEngine) -> str | None:
    """The revision the database is at, None for an empty one.

    Raises:
        DatabaseUnavailable: no connection.
    """
    await check(engine)
    async with engine.connect() as connection:
        return await connection.run_sync(_revision)


@cache
def head() -> str:
    """The newest revision that this version knows."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    if newest is None:
        raise RuntimeError("the package holds no migrations; it is installed incompletely")
    return newest


def compared(name: str | None, kind: str) -> bool:
    """Whether a comparison of schema and models looks at `name`: not at the full-text indexes."""
    return kind not in {"table", "column", "index"} or not (name or "").startswith(FULL_TEXTS)


def lock(connection: Connection) -> None:
    """Keep all others who migrate this database waiting until the transaction ends.

    This comes before alembic is entered: it keeps its state in globals, so not even two tasks of
    one process may be inside at the same time.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    folder = Path(str(resources.files("migrations")))
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config

"""The two databases: SQLite in a file, Postgres for several replicas; opened, checked, migrated."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Delete,
    Insert,
    Update,
    event,
    make_url,
    text,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.pool import ConnectionPoolEntry

from db.models import FULL_TEXTS, utc_now

Sessions = async_sessionmaker[AsyncSession]

SQLITE: Final = "sqlite+aiosqlite"
POSTGRES: Final = "postgresql+psycopg"
CONNECT_TIMEOUT_SECONDS: Final = 10
BUSY_TIMEOUT_MS: Final = 10_000
ADVISORY_LOCK: Final = text("SELECT pg_advisory_xact_lock(:number)")
LOCK: Final = 7_303_014
"""Held by who migrates; any number that nothing else locks on this database."""


class DatabaseUnavailable(Exception):
    """The database cannot be opened or reached. The message holds no password."""


class SqlRepository:
    """What every repository is made of: sessions, and the time at which it writes."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def _write(self, statement: Update | Delete | Insert) -> int:
        """Commit one statement; how many rows it concerned."""
        async with self._sessions.begin() as session:
            result = await session.execute(statement)
            return result.rowcount if isinstance(result, CursorResult) else 0


def create_engine(url: str) -> AsyncEngine:
    """An engine for `url`; nothing is connected yet, an SQLite file's folder is created.

    Errors do not hold the values of a statement: they are people's words, and errors are logged.

    Raises:
        DatabaseUnavailable: the URL is not one of the two kinds, or the folder cannot be made.
    """
    parsed = _parse(url)
    if parsed.drivername == SQLITE:
        return _sqlite_engine(parsed)
    if "connect_timeout" not in parsed.query:
        parsed = parsed.update_query_dict({"connect_timeout": str(CONNECT_TIMEOUT_SECONDS)})
    return create_async_engine(parsed, pool_pre_ping=True, hide_parameters=True)


def session_factory(engine: AsyncEngine) -> Sessions:
    """Sessions over `engine`; objects stay readable after a commit."""
    return async_sessionmaker(engine, expire_on_commit=False)


async def take_turns(session: AsyncSession, number: int) -> None:
    """Have transactions that say this number run one after the other, until each has ended.

    SQLite locks with the first write, Postgres has to be told.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(ADVISORY_LOCK, {"number": number})


async def check(engine: AsyncEngine) -> None:
    """Connect once and ask for nothing.

    Raises:
        DatabaseUnavailable: no connection; says which database, why, and what to do.
    """
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    except (DBAPIError, OSError) as error:
        raise DatabaseUnavailable(_reason(engine.url, error)) from None


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise DatabaseUnavailable("DATABASE_URL is not a database URL.") from None
    if parsed.drivername not in (SQLITE, POSTGRES):
        raise DatabaseUnavailable(
            f"The database URL starts with {parsed.drivername}://; use {SQLITE}:/// or {POSTGRES}://"
        )
    return parsed


def _sqlite_engine(url: URL) -> AsyncEngine:
    if url.database and url.database != ":memory:" and not url.database.startswith("file:"):
        path = Path(url.database).expanduser()
        url = url.set(database=str(path))
        _make_private(path)
    engine = create_async_engine(url, hide_parameters=True)
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Create file and folder for their owner alone; SQLite gives its other files the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnavailable(
            f"The database's folder {path.parent} cannot be created: {error.strerror}. "
            "Choose another in DATABASE_URL."
        ) from None
    with suppress(OSError):  # what cannot be written is said by who connects
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    # The switch does not wait for its lock. Who does not get it is not alone: WAL is a property of
    # the file, so the one who holds the lock, or the next to connect, switches for all.
    with suppress(sqlite3.OperationalError):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


def _reason(url: URL, error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    why = next(iter(str(cause).strip().splitlines()), type(cause).__name__).rstrip(".")
    for secret in (url.password, url.query.get("password")):
        if isinstance(secret, str) and secret:
            why = why.replace(secret, "***")
    return f"The database {_describe(url)} cannot be reached: {why}. Check DATABASE_URL."


def _describe(url: URL) -> str:
    if url.drivername == SQLITE:
        return url.database or ":memory:"
    host = url.host or url.query.get("host", "localhost")
    return f"{url.database or 'postgres'} on {host}" + (f":{url.port}" if url.port else "")


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Migrate to the newest schema, all or nothing. Others who try meanwhile wait their turn.

    Raises:
        DatabaseUnavailable: no connection.
    """
    await check(engine)
    async with engine.begin() as connection:
        await connection.run_sync(lock)
        await connection.run_sync(_upgrade)


async def schema_revision(engine: AsyncEngine) -> str | None:
    """The revision the database is at, None for an empty one.

    Raises:
        DatabaseUnavailable: no connection.
    """
    await check(engine)
    async with engine.connect() as connection:
        return await connection.run_sync(_revision)


@cache
def newest_revision() -> str:
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
        connection.execute(ADVISORY_LOCK, {"number": LOCK})


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

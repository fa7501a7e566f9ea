"""The two databases, SQLite in a file and Postgres for several replicas: sessions and schema.

Calls are tried again while a database is restarting, locked or full.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar, TypeVarTuple, cast

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.pool import ConnectionPoolEntry

from agent.engine.errors import log_failure
from agent.retrying import Backoff, retry
from db.models import Base, upsert, utc_now

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

POSTGRES_OPTIONS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Options of connections, by which a dead server is noticed within about 11 s (5 + 3 x 2)."""
PRAGMAS: Final = (
    "busy_timeout = 10000",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
)
POOL_SIZE: Final = 10
"""Connections that a process keeps to Postgres."""

DATABASE_BACKOFF: Final = Backoff(first_wait=0.4, max_wait=2.0)
BRIEF_TRIES: Final = 4
"""Tries of a call whose failure is tolerated; they take a second or two."""
REVISION: Final = "a001"
"""The schema that this release needs: the newest of `migrations`."""
MIGRATION_LOCK: Final = 7_303_014
"""The number of the lock for migrating; no other code uses it."""


class DatabaseUnavailable(Exception):
    """The database cannot be opened or reached. The message holds no password."""


TRANSIENT_ERRORS: Final = (OperationalError, InterfaceError, PoolTimeout, DatabaseUnavailable)
"""Errors of a database that is unreachable, locked or full: a retry may help."""


class Sessions:
    """Opens sessions. SQLite allows one writer: sessions that write wait for each other there."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._session_factory = async_sessionmaker(engine, expire_on_commit=False)
        self._file = None if engine.dialect.name != "sqlite" else Path(engine.url.database or "")
        self._inode = self._find_inode()
        self._write_lock = asyncio.Lock() if self._file else nullcontext()

    def __call__(self) -> AsyncSession:
        """Return a session for reading."""
        return self._session_factory()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """Open a session whose work is committed at the end of the block, whole or not at all.

        Raises:
            DatabaseUnavailable: the file of an SQLite database was deleted or replaced.
            ValueError: the database rejects a value, which the message does not name.
        """
        async with self._write_lock:
            self._check_file()
            try:
                async with self._session_factory.begin() as session:
                    yield session
            except DataError as error:
                raise ValueError(type(error.orig).__name__) from None
            # The file may have been replaced during the commit: the data is lost then.
            self._check_file()

    async def checkpoint(self) -> None:
        """Empty the write-ahead log of an SQLite database: it may still contain deleted rows."""
        if self._file:
            async with self._write_lock, self._session_factory() as session:
                await session.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def _check_file(self) -> None:
        """Check that the file of SQLite is still the one that was opened.

        If it is not, the error counts as transient: an operator may restore the file.
        """
        if self._find_inode() != self._inode:
            raise DatabaseUnavailable(
                f"The database {self._file} was deleted or replaced while it was in use. The bot "
                "accepts no updates. Restore the file, or restart to use the new one."
            )

    def _find_inode(self) -> int | None:
        return self._file.stat().st_ino if self._file and self._file.exists() else None


async def count_changed(session: AsyncSession, statement: sa.Update | sa.Delete) -> int:
    """Execute a statement and return how many rows it changed."""
    return cast("sa.CursorResult[Any]", await session.execute(statement)).rowcount


@dataclass(eq=False)
class SqlRepository:
    """The base of all repositories: sessions, and a clock."""

    sessions: Sessions
    now: Callable[[], datetime] = utc_now

    async def _first(self, query: sa.Select[T]) -> T | None:
        """Return the first column of the first row, None if there is none."""
        async with self.sessions() as session:
            return await session.scalar(query)

    async def _all(self, query: sa.Select[T]) -> list[T]:
        """Return the first column of all rows."""
        async with self.sessions() as session:
            return list(await session.scalars(query))

    async def _rows(self, query: sa.Select[*Ts]) -> Sequence[sa.Row[*Ts]]:
        """Return all rows."""
        async with self.sessions() as session:
            return (await session.execute(query)).all()

    async def _write(self, statement: sa.Update | sa.Delete) -> int:
        """Commit one statement; return how many rows it changed."""
        async with self.sessions.begin() as session:
            return await count_changed(session, statement)

    async def _upsert(self, *rows: Base) -> None:
        """Commit rows, each inserted or merged into the stored one."""
        async with self.sessions.begin() as session:
            await upsert(session, *rows)


def is_transient(error: Exception) -> bool:
    """Return whether an error means that the database is unreachable, locked or full for now."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
        return False  # a wrong statement, or a missing table
    if isinstance(error, TRANSIENT_ERRORS):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


async def call_or_default(
    call: Callable[[], Awaitable[R]], default: T, problem: str, *, tries: int = 1
) -> R | T:
    """Return what `call` returns; `default` if it fails each time, and `problem` is logged."""
    try:
        return await retry(
            call, max_tries=tries, should_retry=is_transient, backoff=DATABASE_BACKOFF
        )
    except Exception as error:
        log_failure(problem, error)
        return default


async def retry_forever(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns; wait until the database is back, so that no turn is lost.

    Raises:
        Exception: the call itself is wrong, so that trying again would not help.
    """
    return await retry(
        call,
        max_tries=None,
        should_retry=is_transient,
        backoff=DATABASE_BACKOFF,
        description="A database call",
    )


def create_engine(url: str, pool_size: int = POOL_SIZE) -> AsyncEngine:
    """Return an engine for `url`. It does not connect yet, but creates the file of SQLite.

    Error messages leave out the parameters of statements: errors are logged, and parameters
    contain users' texts.

    Raises:
        DatabaseUnavailable: the URL is malformed, or the folder of the file cannot be made.
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseUnavailable("DATABASE_URL is not a database URL.") from None
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "").expanduser()
        _create_private_file(path)
        engine = create_async_engine(parsed.set(database=str(path)), hide_parameters=True)
        sa.event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        return engine
    parsed = parsed.update_query_dict({**POSTGRES_OPTIONS, **parsed.query})
    # No `pool_pre_ping`, which doubles the round trips: a call that finds a connection lost has all
    # old ones replaced, and is tried again.
    return create_async_engine(parsed, pool_size=pool_size, max_overflow=0, hide_parameters=True)


def _create_private_file(path: Path) -> None:
    """Create file and folder for their owner alone; SQLite gives its other files the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnavailable(
            f"The database's folder {path.parent} cannot be created: {error.strerror}. "
            "Choose another in DATABASE_URL."
        ) from None
    with suppress(OSError):  # the connection will fail, and report why
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    # `busy_timeout` does not apply here: this fails at once if another connection has locked the
    # file. Ignore that: the other one sets WAL as well, and the file stores it.
    with suppress(sqlite3.OperationalError):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


async def find_revision(engine: AsyncEngine) -> str | None:
    """Return the revision of a database, None for an empty one.

    Raises:
        DatabaseUnavailable: no connection; the message names the database and the reason.
    """
    query = sa.text("SELECT version_num FROM alembic_version")
    try:
        async with engine.connect() as connection:
            has_table = await connection.run_sync(
                lambda sync: sa.inspect(sync).has_table("alembic_version")
            )
            return await connection.scalar(query) if has_table else None
    except (DBAPIError, OSError) as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        reason = str(cause).strip().partition("\n")[0].rstrip(".") or type(cause).__name__
        if password := engine.url.password:
            reason = reason.replace(password, "***")
        raise DatabaseUnavailable(
            f"The database {_address(engine.url)} cannot be reached: {reason}. Check DATABASE_URL."
        ) from None


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Migrate to the newest schema, all or nothing. Other processes that try meanwhile wait.

    Raises:
        DatabaseUnavailable: no connection, or another release made the tables.
    """
    if await find_revision(engine) == REVISION:
        return
    async with engine.begin() as connection:
        # The lock comes before alembic, which keeps its state in globals: not even two tasks of
        # one process may be inside at once.
        if engine.dialect.name == "sqlite":
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        await connection.run_sync(_upgrade)


def _upgrade(connection: sa.Connection) -> None:
    # These are heavy, and needed once a release.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    folder = str(resources.files("migrations")).replace("%", "%%")
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", folder)
    config.set_main_option("path_separator", "os")
    try:
        command.upgrade(config, "head")
    except CommandError as error:  # the revision is unknown
        raise DatabaseUnavailable(
            f"The tables of the database {_address(connection.engine.url)} were made by another "
            f"release ({error}; this one knows up to {REVISION}). Start that release, or set "
            "DATABASE_URL to a new database."
        ) from None


def _address(url: sa.URL) -> str:
    """Return the address of a database, with the password masked."""
    return url.set(query={}).render_as_string()

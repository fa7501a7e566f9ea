"""The two databases, SQLite in a file and Postgres for several replicas, and their sessions."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import URL, CursorResult, Delete, Update, event, make_url, text
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

from db.models import utc_now

log = logging.getLogger(__name__)

SQLITE: Final = "sqlite+aiosqlite"
POSTGRES: Final = "postgresql+psycopg"
POSTGRES_OPTIONS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Options of connections, by which a dead server is noticed within about 11 s (5 + 3 x 2)."""
BUSY_TIMEOUT_MS: Final = 10_000
POOL_SIZE: Final = 10
"""Connections that a process keeps to Postgres."""
ADVISORY_LOCK: Final = text("SELECT pg_advisory_xact_lock(:number)")


class DatabaseUnavailable(Exception):
    """The database cannot be opened or reached. The message holds no password."""


class Unstorable(ValueError):
    """The database rejects a value; a retry would not help."""


TRANSIENT_ERRORS: Final = (
    *(OperationalError, InterfaceError, PoolTimeout, DatabaseUnavailable, OSError),
)
"""Errors of a database that is away, locked or full: a retry may help."""


class Sessions:
    """Opens sessions. SQLite allows one writer: sessions that write wait for each other there."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._session_factory = async_sessionmaker(engine, expire_on_commit=False)
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._file = Path(engine.url.database or "")
        self._first_inode: int | None = None
        self._write_lock = asyncio.Lock()

    def __call__(self) -> AsyncSession:
        """Return a session for reading."""
        return self._session_factory()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """Open a session whose work is committed at the end of the block, whole or not at all.

        Raises:
            DatabaseUnavailable: the file of an SQLite database was deleted or replaced.
            Unstorable: the database rejects a value.
        """
        async with self._write_lock if self.is_sqlite else nullcontext():
            self._check_file()
            try:
                async with self._session_factory.begin() as session:
                    yield session
            except DataError as error:
                raise Unstorable(type(error.orig).__name__) from None
            # The file may have been replaced during the commit: the data is lost then.
            self._check_file()

    async def checkpoint(self) -> None:
        """Empty the write-ahead log of an SQLite database: it may still contain deleted rows."""
        if self.is_sqlite:
            async with self._write_lock, self._session_factory() as session:
                await session.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    async def watch(self) -> None:
        """Check every second that the file of an SQLite database is still the one in use.

        Raises:
            DatabaseUnavailable: it was deleted or replaced.
        """
        while True:
            self._check_file()
            await asyncio.sleep(1)

    def _check_file(self) -> None:
        """Check that the file of SQLite is the one that the first check found."""
        if not self.is_sqlite:
            return
        try:
            inode = self._file.stat().st_ino
        except OSError:
            inode = None
        if self._first_inode is None:
            self._first_inode = inode
        if inode is None or inode != self._first_inode:
            raise DatabaseUnavailable(
                f"The database {self._file} was deleted or replaced while it was in use. The bot "
                "has stopped accepting updates. Restore the file, or restart to use the new one."
            )


async def count_rows(session: AsyncSession, statement: Update | Delete) -> int:
    """Execute a statement and return how many rows it changed."""
    return cast("CursorResult[Any]", await session.execute(statement)).rowcount


class SqlRepository:
    """The base of all repositories: sessions, and a clock."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def _write(self, statement: Update | Delete) -> int:
        """Commit one statement; return how many rows it changed."""
        async with self._sessions.begin() as session:
            return await count_rows(session, statement)


def is_transient(error: Exception) -> bool:
    """Return whether an error means that the database is away, locked or full for a while."""
    if isinstance(error, TRANSIENT_ERRORS):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


def create_engine(url: str, pool_size: int = POOL_SIZE) -> AsyncEngine:
    """Return an engine for `url`. It does not connect yet, but creates the file of SQLite.

    Error messages leave out the parameters of statements: errors are logged, and parameters
    contain users' texts.

    Raises:
        DatabaseUnavailable: the URL is not one of the two kinds, or the folder cannot be made.
    """
    parsed = _parse(url)
    if parsed.drivername == SQLITE:
        return _sqlite_engine(parsed)
    parsed = parsed.update_query_dict({**POSTGRES_OPTIONS, **parsed.query})
    return create_async_engine(
        parsed, pool_pre_ping=True, pool_size=pool_size, max_overflow=0, hide_parameters=True
    )


async def lock_transaction(session: AsyncSession, number: int) -> None:
    """Lock `number` until the transaction ends, so that transactions with it run one at a time.

    On SQLite this does nothing: it has one writer anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.execute(ADVISORY_LOCK, {"number": number})


async def check_connection(engine: AsyncEngine) -> None:
    """Connect once.

    Raises:
        DatabaseUnavailable: no connection; the message names the database and the reason.
    """
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    except (DBAPIError, OSError) as error:
        raise DatabaseUnavailable(_unreachable_message(engine.url, error)) from None


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
    with suppress(OSError):  # the connection will fail, and report why
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    # This fails if another connection has locked the file, without waiting for `busy_timeout`.
    # That connection sets WAL too, and the file keeps it.
    with suppress(sqlite3.OperationalError):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


def _unreachable_message(url: URL, error: Exception) -> str:
    """Return a message with the first line of `error`, without the password."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    lines = str(cause).strip().splitlines()
    why = lines[0].rstrip(".") if lines else type(cause).__name__
    for secret in (url.password, url.query.get("password")):
        if isinstance(secret, str) and secret:
            why = why.replace(secret, "***")
    return f"The database {describe(url)} cannot be reached: {why}. Check DATABASE_URL."


def describe(url: URL) -> str:
    """Return the name of a database without its password."""
    if url.drivername == SQLITE:
        return url.database or ":memory:"
    host = url.host or url.query.get("host", "localhost")
    return f"{url.database or 'postgres'} on {host}" + (f":{url.port}" if url.port else "")

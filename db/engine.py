"""Connect to the database: SQLite in one file, or Postgres for several replicas.

Calls are tried again while the database restarts, or is locked or full.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple, cast

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    InterfaceError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.pool import ConnectionPoolEntry

from agent.engine.errors import log_failure
from agent.servers import Backoff, retry
from db.models import Base, utc_now
from db.statements import upsert

P = ParamSpec("P")
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
"""Options with which a connection notices a dead server within about 11 s (5 + 3 × 2)."""
PRAGMAS: Final = (
    "busy_timeout = 10000",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
)
POOL_SIZE: Final = 10
"""How many connections to Postgres a process keeps."""

DATABASE_BACKOFF: Final = Backoff(first_wait=0.4, max_wait=2.0)
BRIEF_TRIES: Final = 4
"""How often a call is tried whose failure can be borne. This takes a second or two."""


class DatabaseUnusable(Exception):
    """The database cannot be opened or used. The message contains no password."""


TRANSIENT_ERRORS: Final = (
    OperationalError,
    InterfaceError,
    PoolTimeout,
    DatabaseUnusable,
)
"""Errors of a database that cannot be reached, or is locked or full: another try may help."""


class Sessions:
    """Makes sessions.

    SQLite allows only one writer, so that sessions that write take turns there.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._session_factory = async_sessionmaker(engine, expire_on_commit=False)
        self._file: Path | None = None
        self._write_lock: AbstractAsyncContextManager[None] = nullcontext()
        if engine.dialect.name == "sqlite":
            self._file = Path(engine.url.database or "")
            self._write_lock = asyncio.Lock()
        self._inode = self._find_inode()

    def __call__(self) -> AsyncSession:
        """Return a session for reading."""
        return self._session_factory()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """Yield a session for writing. Commit at the end of the block, or roll back if it fails.

        Raises:
            DatabaseUnusable: the file of an SQLite database was deleted or replaced.
            ValueError: the database rejects a value. The message does not contain the value.
        """
        async with self._write_lock:
            self._check_file()
            try:
                async with self._session_factory.begin() as session:
                    yield session
            except DataError as error:
                raise ValueError(type(error.orig).__name__) from None
            # The file may have been replaced during the commit. Then the data are lost.
            self._check_file()

    async def checkpoint(self) -> None:
        """Empty the write-ahead log of SQLite, which may still contain deleted rows."""
        if self._file is None:
            return
        async with self._write_lock, self._session_factory() as session:
            await session.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def _check_file(self) -> None:
        """Raise DatabaseUnusable if the opened SQLite file was deleted or replaced."""
        if self._find_inode() != self._inode:
            # An operator may restore the file: calls are tried again after this error.
            raise DatabaseUnusable(
                f"The database {self._file} was deleted or replaced while it was in use. The bot "
                "accepts no updates. Restore the file, or restart to use the new one."
            )

    def _find_inode(self) -> int | None:
        """Return the number by which the system knows the SQLite file, or None without a file."""
        if self._file is None or not self._file.exists():
            return None
        return self._file.stat().st_ino


async def count_changed(session: AsyncSession, statement: sa.Update | sa.Delete) -> int:
    """Execute a statement, and return the number of changed rows."""
    result = await session.execute(statement)
    return cast("sa.CursorResult[Any]", result).rowcount


@dataclass(eq=False)
class SqlRepository:
    """The base of all repositories."""

    sessions: Sessions
    now: Callable[[], datetime] = utc_now

    async def _first_value(self, query: sa.Select[T]) -> T | None:
        """Return the first column of the first row, or None if there is no row."""
        async with self.sessions() as session:
            return await session.scalar(query)

    async def _values(self, query: sa.Select[T]) -> list[T]:
        """Return the first column of all rows."""
        async with self.sessions() as session:
            values = await session.scalars(query)
            return list(values)

    async def _rows(self, query: sa.Select[*Ts]) -> Sequence[sa.Row[*Ts]]:
        """Return all rows."""
        async with self.sessions() as session:
            result = await session.execute(query)
            return result.all()

    async def _write(self, statement: sa.Update | sa.Delete) -> int:
        """Execute a statement and commit. Return the number of changed rows."""
        async with self.sessions.begin() as session:
            return await count_changed(session, statement)

    async def _upsert(self, *rows: Base) -> None:
        """Insert rows, or update those with the same primary key, and commit."""
        async with self.sessions.begin() as session:
            await upsert(session, *rows)


def is_transient(error: Exception) -> bool:
    """Return whether an error may go away: the database cannot be reached, or is locked or full."""
    if isinstance(error, DBAPIError):
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_ERROR:
            # The statement is wrong, or a table is missing.
            return False
        if error.connection_invalidated:
            return True
    return isinstance(error, TRANSIENT_ERRORS)


async def call_or_default(
    call: Callable[[], Awaitable[R]],
    default: T,
    problem: str,
    *,
    tries: int = 1,
) -> R | T:
    """Return the result of `call`. If all tries fail, log `problem` and return `default`."""
    try:
        return await retry(
            call,
            max_tries=tries,
            should_retry=is_transient,
            backoff=DATABASE_BACKOFF,
        )
    except Exception as error:
        log_failure(problem, error)
        return default


async def retry_forever(
    function: Callable[P, Awaitable[R]], *arguments: P.args, **named: P.kwargs
) -> R:
    """Return the result of a call. Try again until the database is back, so that no turn is lost.

    Raises:
        Exception: the call has failed with an error that does not go away.
    """

    async def call() -> R:
        return await function(*arguments, **named)

    return await retry(
        call,
        max_tries=None,
        should_retry=is_transient,
        backoff=DATABASE_BACKOFF,
        description="A database call",
    )


def create_engine(url: str, pool_size: int = POOL_SIZE) -> AsyncEngine:
    """Return an engine for `url`. Create the file of an SQLite database, but do not connect yet.

    The messages of errors contain no parameters of statements. These may be messages of users, and
    errors are logged.

    Raises:
        DatabaseUnusable: the URL is malformed, or the folder of the file cannot be created.
    """
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseUnusable("DATABASE_URL is not a database URL.") from None
    if parsed.get_backend_name() == "sqlite":
        return _create_sqlite_engine(parsed)
    # Options that are in the URL stay.
    options = {**POSTGRES_OPTIONS, **parsed.query}
    # `pool_pre_ping` is off, because it would double the round trips. If a call finds its
    # connection lost, SQLAlchemy replaces all older connections, and the call is tried again.
    return create_async_engine(
        parsed.update_query_dict(options),
        pool_size=pool_size,
        max_overflow=0,
        hide_parameters=True,
    )


def _create_sqlite_engine(url: sa.URL) -> AsyncEngine:
    """Return an engine for the file that a URL names. Create the file."""
    path = Path(url.database or "").expanduser()
    _create_private_file(path)
    url = url.set(database=str(path))
    engine = create_async_engine(url, hide_parameters=True)
    sa.event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    return engine


def _create_private_file(path: Path) -> None:
    """Create the file and its folder, which only the owner may read.

    SQLite gives its logs the permissions of the file.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(
            f"The database's folder {path.parent} cannot be created: {error.strerror}. "
            "Choose another in DATABASE_URL."
        ) from None
    # If this fails, connecting fails too, and says why.
    with suppress(OSError):
        descriptor = os.open(path, os.O_CREAT | os.O_RDONLY, 0o600)
        os.close(descriptor)


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """Set the options of a new connection to SQLite."""
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    # `busy_timeout` does not hold for this: it fails at once if another connection has locked the
    # file. That does no harm, because the other connection sets the mode, and the file keeps it.
    with suppress(sqlite3.OperationalError):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


def mask_url(url: sa.URL) -> str:
    """Return the URL without its parameters, and with the password masked."""
    return url.set(query={}).render_as_string()

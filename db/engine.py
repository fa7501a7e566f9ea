"""The two databases: SQLite in a file, Postgres for several replicas; opened, checked, migrated."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Delete,
    Engine,
    Insert,
    Update,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy import create_engine as create_sync_engine
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

from db.models import FULL_TEXT, utc_now

if TYPE_CHECKING:
    from alembic.config import Config

log = logging.getLogger(__name__)

R = TypeVar("R")

Work = Callable[[Connection], R]
"""What is done in a transaction. It may be done again if the transaction fails."""
Outcome = tuple[Any, Exception | None]
"""What some work returned, or the error that it raised."""

SQLITE: Final = "sqlite+aiosqlite"
POSTGRES: Final = "postgresql+psycopg"
CONNECTING: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""A server whose machine is gone is noticed within some 11 s."""
BUSY_TIMEOUT_MS: Final = 10_000
REWRITING: Final = "SET lock_timeout = '2s'; SET statement_timeout = '60s'"
ADVISORY_LOCK: Final = text("SELECT pg_advisory_xact_lock(:number)")
LOCK: Final = 7_303_014
"""Held by who migrates; any number that nothing else locks on this database."""


class DatabaseUnavailable(Exception):
    """The database cannot be opened or reached. The message holds no password."""


class Unstorable(ValueError):
    """A value that the database takes in no column, however often it is asked."""


class Sessions:
    """Opens sessions of a database, and does the short reads and writes that turns are made of.

    All that this process writes in short goes through one connection in a thread, and what waits
    for it together is one commit: SQLite has one writer at a time, and on Postgres as well a commit
    is what costs. Nothing of it is handed from task to task while a transaction is open.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._make = async_sessionmaker(engine, expire_on_commit=False)
        self.is_sqlite = engine.dialect.name == "sqlite"
        path = Path(engine.url.database or "") if self.is_sqlite else None
        self._file = DatabaseFile(path)
        url = engine.url.set(drivername="sqlite") if self.is_sqlite else engine.url
        self._reads = create_sync_engine(
            url,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            skip_autocommit_rollback=True,
        )
        self._reader, self._searcher = Reader(self._reads, "db-read"), Reader(self._reads, "search")
        self._writer = Writer(create_sync_engine(url, hide_parameters=True), self._file)
        if self.is_sqlite:
            event.listen(self._writer.engine, "connect", _prepare_sqlite)
            event.listen(self._reads, "connect", _prepare_reader)
        event.listen(engine.sync_engine, "engine_disposed", lambda _: self._close())

    def __call__(self) -> AsyncSession:
        """A session for reading much, part by part."""
        return self._make()

    async def read(self, work: Work[R]) -> R:
        """Return what `work` reads; nothing is begun, so nothing is rolled back.

        What is read of SQLite is a few rows by their keys, and nobody who writes holds it up: it
        takes less time than handing it to a thread.
        """
        if self.is_sqlite:
            return self._reader.read(work)
        return await self._reader.worker.do(work)

    async def search(self, work: Work[R]) -> R:
        """Return what `work` finds, which may take longer: in a thread, beside those who read."""
        return await self._searcher.worker.call(partial(self._searcher.read, work))

    async def write(self, work: Work[R]) -> R:
        """Return what `work` returns once it is committed."""
        return await self._writer.worker.do(work)

    async def scrub(self, tables: Sequence[str]) -> None:
        """Leave nothing of what was deleted in the files of an SQLite database.

        Nor in those of these tables on Postgres, each of which nobody reads or writes meanwhile:
        for a minute at most, and not before who does has ended; else autovacuum does it. What
        stands in its log goes with that.
        """
        if self.is_sqlite:
            await self._writer.scrub()
            return
        for table in tables:
            try:
                await asyncio.to_thread(self._rewrite, table)
            except DBAPIError as error:
                kind = type(error.orig).__name__
                log.warning("Deleted rows of %s are left to autovacuum: %s", table, kind)

    async def watch(self) -> None:
        """Look every second whether the file of an SQLite database is still the one in use.

        Raises:
            DatabaseUnavailable: it was deleted or replaced.
        """
        while True:
            self._file.check()
            await asyncio.sleep(1)

    def _rewrite(self, table: str) -> None:
        """Write a table of Postgres anew, by a connection of its own: others go on reading."""
        with self._reads.connect() as on:
            on.detach()  # What is set for it is for no other.
            on.exec_driver_sql(REWRITING)
            on.exec_driver_sql(f"VACUUM (FULL) {table}")

    def _close(self) -> None:
        self._reader.close()
        self._searcher.close()
        self._reads.dispose()
        self._writer.close()


class Worker:
    """A thread that works for many tasks: what waits for it together it does in one go.

    `alone` is held while it does.
    """

    def __init__(self, name: str, do: Callable[[Sequence[Work[Any]]], list[Outcome]]) -> None:
        self.alone = asyncio.Lock()
        self._do = do
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._working: asyncio.Task[None] | None = None

    async def do(self, work: Work[R]) -> R:
        """Return what `work` returns once it is done, and all that waits with it."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._do_all())
        return await done

    async def call(self, do: Callable[[], R]) -> R:
        """Return what `do` returns, in the thread and alone."""
        async with self.alone:
            return await asyncio.get_running_loop().run_in_executor(self._thread, do)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def _do_all(self) -> None:
        while self._waiting:
            async with self.alone:
                waiting, self._waiting = self._waiting, []
                works = [work for work, _ in waiting]
                try:
                    do = partial(self._do, works)
                    outcomes = await asyncio.get_running_loop().run_in_executor(self._thread, do)
                except RuntimeError as ended:  # the thread has
                    outcomes = [(None, ended) for _ in works]
            for (_, done), (result, error) in zip(waiting, outcomes, strict=True):
                if done.done():
                    continue
                if error is None:
                    done.set_result(result)
                else:
                    done.set_exception(error)


class Reader:
    """A connection that is kept for reading: to take one takes longer than to read a row."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.worker = Worker(name, self._read_all)
        self._engine = engine
        self._connection: Connection | None = None

    def read(self, work: Work[R]) -> R:
        """Return what `work` reads, here and now."""

        def read() -> R:
            if self._connection is None or self._connection.invalidated:
                self._let_go()
                self._connection = self._engine.connect()
            return work(self._connection)

        return _on_a_new_connection_too(read)

    def close(self) -> None:
        """Close the connection."""
        self.worker.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read_all(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        return [outcome_of(partial(self.read, work)) for work in works]


class Writer:
    """The connection by which a process writes; what is written together is one commit."""

    def __init__(self, engine: Engine, file: "DatabaseFile") -> None:
        self.engine = engine
        self.worker = Worker("db-write", self._commit)
        self._file = file

    async def scrub(self) -> None:
        """Write the file anew, and empty its log."""
        await self.worker.call(self._scrub)

    def _scrub(self) -> None:
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connection."""
        self.worker.close()
        self.engine.dispose()

    def _commit(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        """Commit all in one transaction; if one of them is at fault, each in one of its own."""
        try:
            self._file.check()
            results = _on_a_new_connection_too(lambda: self._together(works))
            self._file.check()
        except Exception as error:
            if isinstance(error, DataError) and len(works) == 1:
                return [(None, _unstorable(error))]
            if len(works) == 1 or is_passing(error):
                return [(None, error)] * len(works)
            return [outcome for work in works for outcome in self._commit([work])]
        return [(result, None) for result in results]

    def _together(self, works: Sequence[Work[Any]]) -> list[Any]:
        with self.engine.begin() as connection:
            return [work(connection) for work in works]


class DatabaseFile:
    """The file of an SQLite database as it was when it was first looked at; None: there is none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._opened: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise DatabaseUnavailable if the file was deleted or replaced since it was first used."""
        if self._path is None:
            return
        try:
            found = self._path.stat()
        except OSError:
            now = None
        else:
            now = found.st_dev, found.st_ino
        if self._opened is None:
            self._opened = now
        if now is None or now != self._opened:
            raise DatabaseUnavailable(
                f"The database {self._path} was deleted or replaced while it was in use; nothing "
                "more is accepted. Put it back, or start anew with what is there."
            )


def outcome_of(do: Callable[[], Any]) -> Outcome:
    """Tell what a call came to."""
    try:
        return do(), None
    except DataError as error:
        return None, _unstorable(error)
    except Exception as error:
        return None, error


def _unstorable(error: DataError) -> Unstorable:
    return Unstorable(type(error.orig).__name__)


def _on_a_new_connection_too(do: Callable[[], R]) -> R:
    """Do it again if the connection turns out to be gone: the server may have been restarted."""
    try:
        return do()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    return do()


class SqlRepository:
    """What every repository is made of: sessions, and the time at which it writes."""

    def __init__(self, sessions: Sessions, now: Callable[[], datetime] = utc_now) -> None:
        self._sessions = sessions
        self._now = now

    async def _write(self, statement: Update | Delete | Insert) -> int:
        """Commit one statement; how many rows it concerned."""
        return await self._sessions.write(lambda on: on.execute(statement).rowcount)


def is_passing(error: Exception) -> bool:
    """Whether an error says that the database is away, locked or full, and may soon not be."""
    known = OperationalError | InterfaceError | PoolTimeout | DatabaseUnavailable
    return isinstance(error, known) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    )


def create_engine(url: str) -> AsyncEngine:
    """An engine for `url`; nothing is connected yet, an SQLite file's folder is created.

    Errors do not hold the values of a statement: they are people's words, and errors are logged.

    Raises:
        DatabaseUnavailable: the URL is not one of the two kinds, or the folder cannot be made.
    """
    parsed = _parse(url)
    if parsed.drivername == SQLITE:
        return _sqlite_engine(parsed)
    parsed = parsed.update_query_dict({**CONNECTING, **parsed.query})
    return create_async_engine(parsed, pool_pre_ping=True, hide_parameters=True)


def take_turns(on: Connection, number: int) -> None:
    """Have transactions that say this number run one after the other, until each has ended.

    SQLite locks with the first write, Postgres has to be told.
    """
    if on.dialect.name == "postgresql":
        on.execute(ADVISORY_LOCK, {"number": number})


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


def _prepare_reader(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    """Whoever reads on the event loop may not wait there for a lock; there hardly ever is one."""
    _prepare_sqlite(connection, entry)
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 100")
    cursor.close()


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Migrate to the newest schema, all or nothing. Others who try meanwhile wait their turn.

    Raises:
        DatabaseUnavailable: no connection, or another release made the tables.
    """
    if (revision := await schema_revision(engine)) == newest_revision():
        return
    if revision is not None and revision not in _revisions():
        raise DatabaseUnavailable(
            f"The tables of the database {_describe(engine.url)} were made by another release "
            f"(revision {revision}; this one knows up to {newest_revision()}). Start that release, "
            "or set DATABASE_URL to a new database."
        )
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


def newest_revision() -> str:
    """The newest revision that this version knows."""
    return max(_revisions())


@cache
def _revisions() -> frozenset[str]:
    """The revisions that this version knows: files are named by them."""
    names = [each.name for each in (resources.files("migrations") / "versions").iterdir()]
    return frozenset(name.partition("_")[0] for name in names if name.endswith(".py"))


def compared(name: str | None, kind: str) -> bool:
    """Whether a comparison of schema and models looks at `name`: not at the full-text indexes."""
    return kind not in {"table", "column", "index"} or not (name or "").startswith(FULL_TEXT)


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
    from alembic import command  # noqa: PLC0415 - heavy, and needed once a release

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if found is None else str(found)


def _config() -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - see _upgrade

    folder = Path(str(resources.files("migrations")))
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config

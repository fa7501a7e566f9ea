"""The schema: which one a database has, whether this release runs on it, and how to upgrade it.

During a rollout, replicas of two releases use one database. Therefore migrations expand first and
contract later. The migration of a release only adds what the release needs, so the release before
still runs on the schema. What no release reads any more is removed by the migration of a later
release. That migration also raises `oldest_revision`, the revision of the oldest release that still
runs on the schema.
"""

from enum import Enum
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from db.engine import DatabaseUnusable, mask_url
from db.models import SchemaSupportRow

MIGRATION_LOCK: Final = 7_303_014
"""The key of the advisory lock for migrations. No other code uses it."""


class SchemaState(Enum):
    """Says how the schema of a database relates to the one that this release needs."""

    EMPTY = "empty"
    OLDER = "older"
    NEWEST = "newest"
    NEWER = "newer"
    """The schema of a later release, on which this release runs too."""
    UNSUPPORTED = "unsupported"
    """The schema of a later release on which this release does not run, or of another program."""


class Schema(NamedTuple):
    """The schema of a database."""

    revision: str | None
    """The newest migration that was applied, or None if the database is empty."""
    oldest_revision: str = ""
    """The newest migration of the oldest release that runs on the schema, or "" if unknown."""

    @property
    def state(self) -> SchemaState:
        """Return how the schema relates to the one that this release needs."""
        newest = newest_revision()
        if self.revision is None:
            return SchemaState.EMPTY
        if self.revision == newest:
            return SchemaState.NEWEST
        if self.revision in list_revisions():
            return SchemaState.OLDER
        # Revisions are numbered with three digits, so their order is that of their texts.
        if self.oldest_revision and self.oldest_revision <= newest:
            return SchemaState.NEWER
        return SchemaState.UNSUPPORTED


@cache
def list_revisions() -> tuple[str, ...]:
    """Return the revisions that this release knows, such as `a012`, the oldest first."""
    folder = resources.files("migrations") / "versions"
    revisions: list[str] = []
    for file in folder.iterdir():
        revision, _, _ = file.name.partition("_")
        # The file of a revision has a name such as `a012_stock.py`; `__init__.py` has no revision.
        if file.name.endswith(".py") and revision:
            revisions.append(revision)
    return tuple(sorted(revisions))


def newest_revision() -> str:
    """Return the revision that this release needs: the newest in `migrations/versions`."""
    return list_revisions()[-1]


async def find_schema(engine: AsyncEngine) -> Schema:
    """Return the schema of a database.

    Raises:
        DatabaseUnusable: connecting failed. The message names the database and the reason.
    """
    try:
        async with engine.connect() as connection:
            return await _read_schema(connection)
    except (DBAPIError, OSError) as error:
        reason = _find_reason(error)
        if engine.url.password:
            reason = reason.replace(engine.url.password, "***")
        raise DatabaseUnusable(
            f"The database {mask_url(engine.url)} cannot be reached: {reason}. Check DATABASE_URL."
        ) from None


def _find_reason(error: Exception) -> str:
    """Return the first line of the driver's message, or the type of the error if it has none."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig:
        cause = error.orig
    first_line, _, _ = str(cause).strip().partition("\n")
    return first_line.rstrip(".") or type(cause).__name__


async def _read_schema(connection: AsyncConnection) -> Schema:
    """Return the schema of the database to which a connection leads."""

    def list_tables(connection: sa.Connection) -> list[str]:
        return sa.inspect(connection).get_table_names()

    tables = await connection.run_sync(list_tables)
    if "alembic_version" not in tables:
        return Schema(None)
    select_revision = sa.text("SELECT version_num FROM alembic_version")
    revision = await connection.scalar(select_revision)
    oldest_revision = None
    if SchemaSupportRow.__tablename__ in tables:
        select_oldest = sa.select(SchemaSupportRow.oldest_revision)
        oldest_revision = await connection.scalar(select_oldest)
    return Schema(revision, oldest_revision or "")


def check_schema(schema: Schema, url: sa.URL) -> None:
    """Check that this release runs on a schema.

    Raises:
        DatabaseUnusable: the database was not upgraded, or only a later release runs on it.
    """
    if schema.state in (SchemaState.EMPTY, SchemaState.OLDER):
        raise DatabaseUnusable(
            f"The database is at revision {schema.revision or 'none'}, but this release needs "
            f"{newest_revision()}. Run `sommelier db upgrade`."
        )
    if schema.state is SchemaState.UNSUPPORTED:
        needed = ""
        if schema.oldest_revision:
            needed = f" and needs a release that knows {schema.oldest_revision}"
        raise DatabaseUnusable(
            f"Another release has made the tables of the database {mask_url(url)}. The database is "
            f"at revision {schema.revision!r}{needed}; this release knows revisions up to "
            f"{newest_revision()}. Start the other release, restore a backup from before its "
            "upgrade, or set DATABASE_URL to a new database."
        )


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Migrate to the newest schema in one transaction, for which concurrent migrations wait.

    The schema of a later release stays as it is if this release runs on it.

    Raises:
        DatabaseUnusable: connecting failed, or another release made the tables.
    """
    schema = await find_schema(engine)
    if schema.state not in (SchemaState.EMPTY, SchemaState.OLDER):
        check_schema(schema, engine.url)
        return
    async with engine.begin() as connection:
        # Take the lock before calling alembic. The state of alembic is global, so only one task may
        # run it, even within one process.
        if engine.dialect.name == "sqlite":
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            lock = sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)
            await connection.execute(sa.select(lock))
        # Another process may have upgraded while this one waited.
        schema = await _read_schema(connection)
        if schema.state in (SchemaState.EMPTY, SchemaState.OLDER):
            await connection.run_sync(_upgrade)


def _upgrade(connection: sa.Connection) -> None:
    """Run all migrations that the database lacks."""
    # Alembic is slow to import, and only needed once per release.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    # In alembic's options, % starts an interpolation.
    folder = str(resources.files("migrations")).replace("%", "%%")
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", folder)
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")

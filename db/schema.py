"""The revision of a database, and its migration to the newest."""

from importlib import resources
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, func, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from db.engine import DatabaseUnavailable, check_connection, safe_address

LOCK: Final = 7_303_014
"""The number of the lock for migrating; no other code uses it."""


async def upgrade_schema(engine: AsyncEngine) -> None:
    """Migrate to the newest schema, all or nothing. Other processes that try meanwhile wait.

    Raises:
        DatabaseUnavailable: no connection, or another release made the tables.
    """
    if (revision := await schema_revision(engine)) == newest_revision():
        return
    if revision is not None and revision not in _revisions():
        raise DatabaseUnavailable(
            f"The tables of the database {safe_address(engine.url)} were made by another release "
            f"(revision {revision}; this one knows up to {newest_revision()}). Start that release, "
            "or set DATABASE_URL to a new database."
        )
    async with engine.begin() as connection:
        # The lock comes before alembic, which keeps its state in globals: not even two tasks of
        # one process may be inside at once.
        if engine.dialect.name == "sqlite":
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        await connection.run_sync(_upgrade)


async def schema_revision(engine: AsyncEngine) -> str | None:
    """Return the revision of a database, None for an empty one.

    Raises:
        DatabaseUnavailable: no connection.
    """
    await check_connection(engine)
    async with engine.connect() as connection:
        if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
            return None
        query = text("SELECT version_num FROM alembic_version")
        revision: str | None = await connection.scalar(query)
        return revision


def newest_revision() -> str:
    """Return the newest revision that this release knows."""
    return max(_revisions())


def _revisions() -> list[str]:
    """Return the revisions that this release knows: files are named by them."""
    files = (resources.files("migrations") / "versions").iterdir()
    return [file.name.partition("_")[0] for file in files if file.name.endswith(".py")]


def _upgrade(connection: Connection) -> None:
    # These are heavy, and needed once a release.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    folder = Path(str(resources.files("migrations")))
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")

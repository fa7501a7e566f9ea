"""Alembic's entry point.

`db.schema` migrates over a connection of its own, which it passes to this module. For Alembic's own
commands, which CONTRIBUTING names, this module opens a connection to DATABASE_URL.
"""

import asyncio
from collections.abc import Iterable
from typing import cast

from alembic import context
from alembic.operations.ops import MigrationScript
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from config import load_settings
from db.engine import create_engine
from db.models import Base
from db.schema import newest_revision


def number_revision(
    _context: MigrationContext,
    _revision: str | Iterable[str | None],
    scripts: list[MigrationScript],
) -> None:
    """Name a new migration after the newest one: `a013` follows `a012`."""
    number = int(newest_revision().removeprefix("a")) + 1
    scripts[0].rev_id = f"a{number:03}"


def migrate(connection: Connection) -> None:
    """Run the migrations over a connection, or the command of Alembic that was given."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        process_revision_directives=number_revision,
    )
    with context.begin_transaction():
        context.run_migrations()


async def migrate_configured_database() -> None:
    """Open the database of the settings, and migrate over one connection to it."""
    engine = create_engine(load_settings().database_url.get_secret_value())
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


# `db.schema` has begun a transaction on the connection that it passes, and holds the lock of
# migrations in it.
passed_connection = cast(
    "Connection | None", context.config.attributes.get("connection")
)
if passed_connection is None:
    asyncio.run(migrate_configured_database())
else:
    migrate(passed_connection)

"""Alembic's entry point.

`db.schema` passes the connection that it migrates over. Alembic's own commands, which CONTRIBUTING
names, run over a connection to DATABASE_URL that is opened here.
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
    """Run the migrations, or the command that was asked for."""
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


# The transaction of a connection that was passed already holds the migration lock.
given = cast("Connection | None", context.config.attributes.get("connection"))
if given is None:
    asyncio.run(migrate_configured_database())
else:
    migrate(given)

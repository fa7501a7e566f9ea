"""Alembic's entry point: migrates over a connection it is handed, or over one of its own.

On its own (alembic's command line) it takes the database from `-x url=...` or `DATABASE_URL`.
"""

import asyncio
import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from db.engine import create_engine
from db.models import Base
from db.schema import compared, lock


def migrate(connection: Connection) -> None:
    """Run the migrations in the transaction of `connection`, which holds the lock already."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_name=lambda name, kind, _parents: compared(name, kind),
        render_as_batch=connection.dialect.name == "sqlite",
    )
    context.run_migrations()


async def migrate_alone() -> None:
    """Open the database that the command line names, and migrate it."""
    url = context.get_x_argument(as_dictionary=True).get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise CommandError("say which database: alembic -x url=... or DATABASE_URL")
    engine = create_engine(url)
    async with engine.begin() as connection:
        await connection.run_sync(lock)
        await connection.run_sync(migrate)
    await engine.dispose()


if context.is_offline_mode():
    raise CommandError("scripts without a database (--sql) are not supported")
given: Connection | None = context.config.attributes.get("connection")
if given is None:
    asyncio.run(migrate_alone())
else:
    migrate(given)

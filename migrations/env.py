"""Alembic's entry point: migrates over the connection that `db.engine` hands it."""

from alembic import context

from db.models import Base

# The transaction of the connection holds the lock for migrating already.
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()

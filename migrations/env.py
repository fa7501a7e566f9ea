"""Alembic's entry point: migrate over the connection that `db.engine` passes."""

from alembic import context

from db.models import Base

# The transaction of this connection already holds the migration lock.
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()

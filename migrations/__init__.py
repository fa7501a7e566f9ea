"""Schema migrations. `db.engine` applies them; developers use the alembic commands."""

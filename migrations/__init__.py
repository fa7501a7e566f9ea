"""The schema's history. `db.engine` applies it; developers use alembic's own commands."""

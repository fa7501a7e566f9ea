"""The schema's history. `db.migrate` applies it; developers use alembic's own commands."""

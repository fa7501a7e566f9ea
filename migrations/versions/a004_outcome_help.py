"""Rename the outcome of turns that were answered with help: "care" becomes "help"."""

from alembic import op

revision = "a004"
down_revision = "a003"


def upgrade() -> None:
    for table in ("turns", "traces"):
        op.execute(f"UPDATE {table} SET outcome = 'help' WHERE outcome = 'care'")  # noqa: S608

"""Rename the state of an update that joined the turn of another: "merged" becomes "joined"."""

from alembic import op

revision = "a008"
down_revision = "a007"


def upgrade() -> None:
    op.execute("UPDATE updates SET state = 'joined' WHERE state = 'merged'")

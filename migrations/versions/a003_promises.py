"""Store what was forgotten, which buttons were pressed, and which tools a turn has called."""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "a003"
down_revision = "a002"


def upgrade() -> None:
    op.create_table(
        "presses",
        key("chat_id"),
        key("message_id"),
        sa.Column("action", sa.String, primary_key=True),
        time("at"),
    )
    op.create_table(
        "forgotten_chats",
        key("chat_id"),
        key("thread_id"),
        time("at"),
    )
    op.create_table(
        "forgotten_users",
        sa.Column("user", sa.String, primary_key=True),
        time("at"),
    )
    calls = sa.Column("calls", sa.JSON, nullable=False, server_default="[]")
    op.add_column("updates", calls)


def key(name: str) -> sa.Column[int]:
    """Return a key that the database does not increment."""
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


def time(name: str) -> sa.Column[datetime]:
    """Return the column of a time, which is always known."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)

"""Store what was forgotten, which buttons were pressed, and which tools a turn has called."""

import sqlalchemy as sa
from alembic import op

revision = "a003"
down_revision = "a002"


def upgrade() -> None:
    op.create_table(
        "presses",
        sa.Column("chat_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("message_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("action", sa.String, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "forgotten_chats",
        sa.Column("chat_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("thread_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "forgotten_users",
        sa.Column("user", sa.String, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    calls = sa.Column("calls", sa.JSON, nullable=False, server_default="[]")
    op.add_column("updates", calls)

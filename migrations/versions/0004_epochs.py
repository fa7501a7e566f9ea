"""Whoever begins a turn counts it, so that who began it before may not go on with it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("updates", sa.Column("epoch", sa.Integer, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        # The queue that lanes were run by: a process that still does must not run them beside us.
        op.execute("DROP SCHEMA IF EXISTS dbos CASCADE")


def downgrade() -> None:
    op.drop_column("updates", "epoch")

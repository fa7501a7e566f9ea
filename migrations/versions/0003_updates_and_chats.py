"""Accepted updates, what was learned of chats, and the turn that a message belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "updates",
        sa.Column("update_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chat_id", sa.BigInteger(), nullable=False),
        sa.Column("message_id", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("turn_id", sa.BigInteger(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("update_id", name="pk_updates"),
    )
    op.create_index("ix_updates_chat_id_state", "updates", ["chat_id", "state"])
    op.create_index("ix_updates_state_received_at", "updates", ["state", "received_at"])
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unreachable_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unreachable_reason", sa.String(), nullable=True),
        sa.Column("migrated_to", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("chat_id", name="pk_chats"),
    )
    with op.batch_alter_table("messages") as messages:
        messages.add_column(sa.Column("turn_id", sa.BigInteger(), nullable=True))
        messages.create_unique_constraint("uq_messages_turn_id_role", ["turn_id", "role"])


def downgrade() -> None:
    with op.batch_alter_table("messages") as messages:
        messages.drop_constraint("uq_messages_turn_id_role", type_="unique")
        messages.drop_column("turn_id")
    op.drop_table("chats")
    op.drop_table("updates")

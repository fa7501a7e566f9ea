"""The topic of each message; 0 is a chat without topics."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    topic = sa.Column("thread_id", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("messages", topic)
    op.drop_index("ix_messages_chat_id_id", "messages")
    columns = ["chat_id", "thread_id", "id"]
    op.create_index("ix_messages_chat_id_thread_id_id", "messages", columns)


def downgrade() -> None:
    op.drop_index("ix_messages_chat_id_thread_id_id", "messages")
    op.drop_column("messages", "thread_id")
    op.create_index("ix_messages_chat_id_id", "messages", ["chat_id", "id"])

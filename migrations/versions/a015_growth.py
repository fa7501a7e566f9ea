"""Index what is looked up in tables that grow, and store the sender of each update in progress."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "a015"
down_revision = "a014"

updates = sa.table(
    "updates",
    sa.column("update_id", sa.BigInteger),
    sa.column("payload", sa.JSON),
    sa.column("state", sa.String),
    sa.column("user_id", sa.BigInteger),
)


def upgrade() -> None:
    op.create_index("ix_messages_created_at", "messages", ["created_at"])
    op.create_index("ix_presses_at", "presses", ["at"])
    op.create_index("ix_scores_at", "scores", ["at"])
    op.create_index("ix_traces_user", "traces", ["user"])
    op.create_index("ix_traces_level_started_at", "traces", ["level", "started_at"])
    op.create_index("ix_facts_chat_id", "facts", ["chat_id"])
    op.create_index("ix_facts_turn_id", "facts", ["turn_id"])
    for table in ("traces", "scores"):
        create_partial_index(
            f"ix_{table}_unsendable",
            table,
            ["state"],
            "(state = 'refused' OR refusal <> '')",
        )
    create_partial_index("ix_facts_expiring", "facts", ["until"], "until IS NOT NULL")
    create_partial_index(
        "ix_outbox_unsent_without_turn",
        "outbox",
        ["id"],
        "message_id IS NULL AND error IS NULL AND update_id IS NULL AND turn_id IS NULL",
    )
    create_partial_index(
        "ix_updates_unfinished",
        "updates",
        ["lane", "update_id"],
        "state IN ('waiting', 'answered')",
    )
    op.add_column("updates", sa.Column("user_id", sa.BigInteger))
    fill_senders()
    create_partial_index(
        "ix_updates_not_done_user",
        "updates",
        ["user_id"],
        "state <> 'done'",
    )


def create_partial_index(
    name: str,
    table: str,
    columns: list[str],
    condition: str,
) -> None:
    """Create an index on the rows that meet a condition."""
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def fill_senders() -> None:
    """Store who has sent each update that is not done. The payload of the update tells it."""
    connection = op.get_bind()
    is_not_done = updates.c.state != "done"
    not_done = sa.select(updates.c.update_id, updates.c.payload).where(is_not_done)
    for update_id, payload in connection.execute(not_done).all():
        is_this = updates.c.update_id == update_id
        user_id = find_sender(payload)
        fill = sa.update(updates).where(is_this).values(user_id=user_id)
        connection.execute(fill)


def find_sender(payload: dict[str, Any]) -> int | None:
    """Return the id of the user in a payload such as `{"message": {"from": {"id": 7}}}`."""
    for part in payload.values():
        if not isinstance(part, dict):
            continue
        sender = part.get("from")
        if not isinstance(sender, dict):
            continue
        user_id = sender.get("id")
        if isinstance(user_id, int):
            return user_id
    return None

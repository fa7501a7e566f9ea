"""Create the whole schema."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

ColumnType = type[sa.types.TypeEngine[Any]]

revision = "a001"
down_revision = None

SQLITE_FULL_TEXT = (
    """
    CREATE VIRTUAL TABLE wines_fts USING fts5(
        search_text, content='wines', content_rowid='number',
        tokenize='porter unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER wines_fts_insert AFTER INSERT ON wines BEGIN
        INSERT INTO wines_fts(rowid, search_text) VALUES (new.number, new.search_text);
    END
    """,
    """
    CREATE TRIGGER wines_fts_delete AFTER DELETE ON wines BEGIN
        INSERT INTO wines_fts(wines_fts, rowid, search_text)
        VALUES ('delete', old.number, old.search_text);
    END
    """,
    """
    CREATE TRIGGER wines_fts_update AFTER UPDATE OF number, search_text ON wines BEGIN
        INSERT INTO wines_fts(wines_fts, rowid, search_text)
        VALUES ('delete', old.number, old.search_text);
        INSERT INTO wines_fts(rowid, search_text) VALUES (new.number, new.search_text);
    END
    """,
)
POSTGRES_FULL_TEXT = (
    """
    ALTER TABLE wines ADD COLUMN wines_fts tsvector
        GENERATED ALWAYS AS (to_tsvector('english', search_text)) STORED
    """,
    "CREATE INDEX wines_fts_gin ON wines USING gin (wines_fts)",
)
WAITING = sa.text("state = 'waiting'")
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""An auto-incremented key. SQLite only increments a key whose type is INTEGER."""


def upgrade() -> None:
    _create_wines()
    _create_documents()
    _create_messages()
    _create_turns()
    _create_people()
    _create_traces()
    _create_outbox()
    statements: tuple[str, ...] = POSTGRES_FULL_TEXT
    if op.get_context().dialect.name == "sqlite":
        statements = SQLITE_FULL_TEXT
    for statement in statements:
        op.execute(statement)


def plain_key(name: str) -> sa.Column[int]:
    """Return a key without auto-increment."""
    return sa.Column(name, sa.BigInteger, autoincrement=False, primary_key=True)


def timestamp(
    name: str, *, nullable: bool = False, index: bool = False
) -> sa.Column[datetime]:
    """Return a timestamp column."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, index=index)


def required(*names: str, type_: ColumnType = sa.String) -> list[sa.Column[Any]]:
    """Return non-nullable columns, by default of strings."""
    return [sa.Column(name, type_, nullable=False) for name in names]


def optional(*names: str, type_: ColumnType = sa.String) -> list[sa.Column[Any]]:
    """Return nullable columns, by default of strings."""
    return [sa.Column(name, type_) for name in names]


def foreign_key(
    name: str, to: str, type_: Any = sa.BigInteger, **options: Any
) -> sa.Column[Any]:
    """Return a foreign key whose row is deleted together with the referenced row."""
    return sa.Column(name, type_, sa.ForeignKey(to, ondelete="CASCADE"), **options)


def _create_wines() -> None:
    op.create_table(
        "wines",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        *required("producer", "name", "country", "region"),
        *required("appellation", "currency", "notes"),
        *required("source", "places", "search_text"),
        *required("grapes", "foods", "allergens", "grape_keys", type_=sa.JSON),
        *required("in_stock", type_=sa.Boolean),
        *required("shuffle", type_=sa.BigInteger),
        sa.Column("style", sa.String, nullable=False, index=True),
        sa.Column("country_key", sa.String, nullable=False, index=True),
        sa.Column("price_in_euros", sa.Double, index=True),
        *optional("vintage", type_=sa.Integer),
        *optional("colour", "sweetness", "body", "acidity", "tannin"),
        *optional("abv", "price", type_=sa.Double),
    )


def _create_documents() -> None:
    op.create_table(
        "library",
        sa.Column("id", sa.Integer, autoincrement=False, primary_key=True),
        *required("changes", type_=sa.Integer),
    )
    op.execute("INSERT INTO library VALUES (1, 0)")
    op.create_table(
        "documents",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("path", sa.String, nullable=False, unique=True),
        *required("title", "kind", "content_hash"),
        *required("size", type_=sa.BigInteger),
        *required("parts", type_=sa.Integer),
        timestamp("added_at"),
    )
    op.create_table(
        "chunks",
        sa.Column("number", sa.Integer, primary_key=True),
        foreign_key("document_id", "documents.id", sa.String, nullable=False),
        *required("position", type_=sa.Integer),
        *required("headings", type_=sa.JSON),
        *required("text"),
        *optional("model"),
        *optional("vector", type_=sa.LargeBinary),
    )
    op.create_index(
        "ix_chunks_document_id_position",
        "chunks",
        ["document_id", "position"],
        unique=True,
    )
    op.create_index("ix_chunks_model_number", "chunks", ["model", "number"])


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", COUNTER, primary_key=True),
        *required("chat_id", "thread_id", type_=sa.BigInteger),
        *required("role", "content", "attachment"),
        *required("wine_ids", type_=sa.JSON),
        timestamp("created_at"),
        *optional("turn_id", type_=sa.BigInteger),
        sa.UniqueConstraint("turn_id", "role"),
    )
    columns = ["chat_id", "thread_id", "id"]
    op.create_index("ix_messages_chat_id_thread_id_id", "messages", columns)
    op.create_table(
        "updates",
        plain_key("update_id"),
        *required("chat_id", type_=sa.BigInteger),
        *optional("lane", "error"),
        *optional("message_id", "placeholder_id", type_=sa.BigInteger),
        *required("payload", type_=sa.JSON),
        timestamp("received_at"),
        *required("state"),
        sa.Column("turn_id", sa.BigInteger, index=True),
        *required("tries", "epoch", type_=sa.Integer),
    )
    op.create_index(
        "ix_updates_chat_id_state",
        "updates",
        ["chat_id", "state"],
    )
    op.create_index(
        "ix_updates_state_received_at",
        "updates",
        ["state", "received_at"],
    )
    op.create_index(
        "ix_updates_lane_state_update_id",
        "updates",
        ["lane", "state", "update_id"],
    )
    op.create_table(
        "chats",
        plain_key("chat_id"),
        *optional("is_reachable", "is_introduced", type_=sa.Boolean),
        *optional("migrated_to", type_=sa.BigInteger),
        *optional("access"),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        plain_key("turn_id"),
        *required("chat_id", "user_id", type_=sa.BigInteger),
        timestamp("at", index=True),
        *optional("root_id", "verdict", "reason"),
        *required("seconds", "cost_usd", type_=sa.Double),
        *required("requests", "retries", type_=sa.Integer),
        sa.Column("trace_id", sa.String, index=True),
        *required("outcome", "comment"),
    )
    op.create_index("ix_turns_user_id_at", "turns", ["user_id", "at"])
    op.create_index("ix_turns_chat_id_at", "turns", ["chat_id", "at"])


def _create_people() -> None:
    op.create_table(
        "broadcasts",
        sa.Column("id", COUNTER, primary_key=True),
        *required("text", "state"),
        *required("created_by", type_=sa.BigInteger),
    )
    op.create_table(
        "facts",
        plain_key("user_id"),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("value", sa.String, primary_key=True),
        plain_key("turn_id"),
        plain_key("chat_id"),
        *required("said"),
        timestamp("at"),
        timestamp("until", nullable=True),
    )
    op.create_table(
        "bottles",
        sa.Column("id", COUNTER, primary_key=True),
        *required("user_id", type_=sa.BigInteger),
        *required("key", "note"),
        *required("wine", type_=sa.JSON),
        *required("count", type_=sa.Integer),
        *optional("drink_from", "drink_until", type_=sa.Integer),
        timestamp("at"),
        sa.UniqueConstraint("user_id", "key"),
    )
    op.create_table(
        "deletions",
        sa.Column("user", sa.String, primary_key=True),
        timestamp("at"),
        timestamp("due_at"),
        *required("tries", type_=sa.Integer),
    )


def _create_traces() -> None:
    op.create_table(
        "traces",
        sa.Column("trace_id", sa.String, primary_key=True),
        timestamp("started_at", index=True),
        timestamp("ended_at"),
        *required("user", "question", "outcome", "level", "name", "state"),
        *required("cost_usd", type_=sa.Double),
        *required("error_types", type_=sa.JSON),
        timestamp("due_at"),
        *required("record", type_=sa.LargeBinary),
    )
    op.create_table(
        "scores",
        sa.Column("score_id", sa.String, primary_key=True),
        sa.Column("trace_id", sa.String, nullable=False, index=True),
        *required("observation_id", "name", "kind", "comment", "state"),
        *optional("value", type_=sa.JSON),
        timestamp("at"),
        timestamp("due_at"),
    )
    for table in ("traces", "scores"):
        op.create_index(
            f"ix_{table}_waiting",
            table,
            ["due_at"],
            sqlite_where=WAITING,
            postgresql_where=WAITING,
        )


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", COUNTER, primary_key=True),
        sa.Column("update_id", sa.BigInteger, index=True),
        foreign_key("turn_id", "turns.turn_id", index=True),
        foreign_key("broadcast_id", "broadcasts.id", COUNTER, index=True),
        *required("chat_id", type_=sa.BigInteger),
        *optional("thread_id", "reply_to", "edits", "message_id", type_=sa.BigInteger),
        *required("follows", type_=sa.Boolean),
        *required("kind", "html", "file_name"),
        *required("buttons", type_=sa.JSON),
        *optional("file", type_=sa.LargeBinary),
        *optional("error"),
    )
    op.create_index("ix_outbox_chat_id_message_id", "outbox", ["chat_id", "message_id"])

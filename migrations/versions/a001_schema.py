"""The whole schema: wines, documents, messages, updates, chats, and what an admin sees."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

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
NOT_SENT = sa.text("state = 'waiting'")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A key that SQLite counts up only if it is called INTEGER."""


def upgrade() -> None:
    _create_wines()
    _create_documents()
    _create_messages()
    _create_turns()
    _create_people()
    _create_traces()
    _create_outbox()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in SQLITE_FULL_TEXT if on_sqlite else POSTGRES_FULL_TEXT:
        op.execute(statement)


def key(name: str) -> sa.Column[int]:
    """Return a key that is given, not counted up."""
    return sa.Column(name, sa.BigInteger, autoincrement=False, primary_key=True)


def moment(name: str, *, nullable: bool = False, index: bool = False) -> sa.Column[datetime]:
    """Return a column of moments."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, index=index)


def needed(*names: str, type_: type[sa.types.TypeEngine[Any]] = sa.String) -> list[sa.Column[Any]]:
    """Return columns that are never null, of strings if no type is given."""
    return [sa.Column(name, type_, nullable=False) for name in names]


def optional(
    *names: str, type_: type[sa.types.TypeEngine[Any]] = sa.String
) -> list[sa.Column[Any]]:
    """Return columns that may be null, of strings if no type is given."""
    return [sa.Column(name, type_) for name in names]


def reference(name: str, to: str, type_: Any = sa.BigInteger, **options: Any) -> sa.Column[Any]:
    """Return a reference to a column of another table; a row goes with the row it refers to."""
    return sa.Column(name, type_, sa.ForeignKey(to, ondelete="CASCADE"), **options)


def _create_wines() -> None:
    op.create_table(
        "wines",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        *needed("producer", "name", "country", "region", "appellation", "currency", "notes"),
        *needed("source", "places", "search_text"),
        *needed("grapes", "foods", "allergens", "grape_keys", type_=sa.JSON),
        *needed("in_stock", type_=sa.Boolean),
        *needed("shuffle", type_=sa.BigInteger),
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
        *needed("changes", type_=sa.Integer),
    )
    op.execute("INSERT INTO library VALUES (1, 0)")
    op.create_table(
        "documents",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("path", sa.String, nullable=False, unique=True),
        *needed("title", "kind", "content_hash"),
        *needed("size", type_=sa.BigInteger),
        *needed("parts", type_=sa.Integer),
        moment("added_at"),
    )
    op.create_table(
        "chunks",
        sa.Column("number", sa.Integer, primary_key=True),
        reference("document_id", "documents.id", sa.String, nullable=False),
        *needed("position", type_=sa.Integer),
        *needed("headings", type_=sa.JSON),
        *needed("text"),
        *optional("model"),
        *optional("vector", type_=sa.LargeBinary),
    )
    op.create_index(
        "ix_chunks_document_id_position", "chunks", ["document_id", "position"], unique=True
    )
    op.create_index("ix_chunks_model_number", "chunks", ["model", "number"])


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", NUMBER, primary_key=True),
        *needed("chat_id", "thread_id", type_=sa.BigInteger),
        *needed("role", "content", "attachment"),
        *needed("wine_ids", type_=sa.JSON),
        moment("created_at"),
        *optional("turn_id", type_=sa.BigInteger),
        sa.UniqueConstraint("turn_id", "role"),
    )
    columns = ["chat_id", "thread_id", "id"]
    op.create_index("ix_messages_chat_id_thread_id_id", "messages", columns)
    op.create_table(
        "updates",
        key("update_id"),
        *needed("chat_id", type_=sa.BigInteger),
        *optional("lane", "error"),
        *optional("message_id", "placeholder_id", type_=sa.BigInteger),
        *needed("payload", type_=sa.JSON),
        moment("received_at"),
        *needed("state"),
        sa.Column("turn_id", sa.BigInteger, index=True),
        *needed("tries", "epoch", type_=sa.Integer),
    )
    op.create_index("ix_updates_chat_id_state", "updates", ["chat_id", "state"])
    op.create_index("ix_updates_state_received_at", "updates", ["state", "received_at"])
    op.create_index("ix_updates_lane_state_update_id", "updates", ["lane", "state", "update_id"])
    op.create_table(
        "chats",
        key("chat_id"),
        *optional("is_reachable", "is_introduced", type_=sa.Boolean),
        *optional("migrated_to", type_=sa.BigInteger),
        *optional("access"),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        key("turn_id"),
        *needed("chat_id", "user_id", type_=sa.BigInteger),
        moment("at", index=True),
        *optional("root_id", "verdict", "reason"),
        *needed("seconds", "cost_usd", type_=sa.Double),
        *needed("requests", "retries", type_=sa.Integer),
        sa.Column("trace_id", sa.String, index=True),
        *needed("outcome", "comment"),
    )
    op.create_index("ix_turns_user_id_at", "turns", ["user_id", "at"])
    op.create_index("ix_turns_chat_id_at", "turns", ["chat_id", "at"])


def _create_people() -> None:
    op.create_table(
        "broadcasts",
        sa.Column("id", NUMBER, primary_key=True),
        *needed("text", "state"),
        *needed("created_by", type_=sa.BigInteger),
    )
    op.create_table(
        "facts",
        key("user_id"),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("value", sa.String, primary_key=True),
        key("turn_id"),
        key("chat_id"),
        *needed("said"),
        moment("at"),
        moment("until", nullable=True),
    )
    op.create_table(
        "bottles",
        sa.Column("id", NUMBER, primary_key=True),
        *needed("user_id", type_=sa.BigInteger),
        *needed("key", "note"),
        *needed("wine", type_=sa.JSON),
        *needed("count", type_=sa.Integer),
        *optional("drink_from", "drink_until", type_=sa.Integer),
        moment("at"),
        sa.UniqueConstraint("user_id", "key"),
    )
    op.create_table(
        "deletions",
        sa.Column("user", sa.String, primary_key=True),
        moment("at"),
        moment("due_at"),
        *needed("tries", type_=sa.Integer),
    )


def _create_traces() -> None:
    op.create_table(
        "traces",
        sa.Column("trace_id", sa.String, primary_key=True),
        moment("started_at", index=True),
        moment("ended_at"),
        *needed("user", "question", "outcome", "level", "name", "state"),
        *needed("cost_usd", type_=sa.Double),
        *needed("error_types", type_=sa.JSON),
        moment("due_at"),
        *needed("record", type_=sa.LargeBinary),
    )
    op.create_table(
        "scores",
        sa.Column("score_id", sa.String, primary_key=True),
        sa.Column("trace_id", sa.String, nullable=False, index=True),
        *needed("observation_id", "name", "kind", "comment", "state"),
        *optional("value", type_=sa.JSON),
        moment("at"),
        moment("due_at"),
    )
    for table in ("traces", "scores"):
        index = f"ix_{table}_waiting"
        op.create_index(index, table, ["due_at"], sqlite_where=NOT_SENT, postgresql_where=NOT_SENT)


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("update_id", sa.BigInteger, index=True),
        reference("turn_id", "turns.turn_id", index=True),
        reference("broadcast_id", "broadcasts.id", NUMBER, index=True),
        *needed("chat_id", type_=sa.BigInteger),
        *optional("thread_id", "reply_to", "edits", "message_id", type_=sa.BigInteger),
        *needed("follows", type_=sa.Boolean),
        *needed("kind", "html", "file_name"),
        *needed("buttons", type_=sa.JSON),
        *optional("file", type_=sa.LargeBinary),
        *optional("error"),
    )
    op.create_index("ix_outbox_chat_id_message_id", "outbox", ["chat_id", "message_id"])

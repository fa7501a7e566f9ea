"""The whole schema: wines, documents, messages, updates, chats, and what an admin sees."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
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
TABLES = (
    *("wines", "wine_grapes", "wine_foods", "wine_allergens"),
    *("library", "documents", "chunks", "chunk_vectors", "messages", "updates", "chats"),
    *("turns", "turns_under_way", "feedback", "people", "cares", "facts", "bottles"),
    *("deletions", "broadcasts", "traces", "scores", "outbox"),
)
"""In the order in which they refer to each other."""


def references(column: str) -> sa.ForeignKey:
    """Return a reference to a column of another table; a row goes with the row it refers to."""
    return sa.ForeignKey(column, ondelete="CASCADE")


def upgrade() -> None:
    _create_wines()
    _create_wine_lists()
    _create_documents()
    _create_chunks()
    _create_vectors()
    _create_messages()
    _create_updates()
    _create_turns()
    _create_feedback()
    _create_people()
    _create_memory()
    _create_traces()
    _create_outbox()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in SQLITE_FULL_TEXT if on_sqlite else POSTGRES_FULL_TEXT:
        op.execute(statement)


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP TABLE wines_fts")
    for table in reversed(TABLES):
        op.drop_table(table)


def _create_wines() -> None:
    op.create_table(
        "wines",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("producer", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("vintage", sa.Integer),
        sa.Column("country", sa.String, nullable=False),
        sa.Column("region", sa.String, nullable=False),
        sa.Column("appellation", sa.String, nullable=False),
        sa.Column("style", sa.String, nullable=False, index=True),
        sa.Column("colour", sa.String),
        sa.Column("sweetness", sa.String),
        sa.Column("body", sa.String),
        sa.Column("acidity", sa.String),
        sa.Column("tannin", sa.String),
        sa.Column("abv", sa.Double),
        sa.Column("price", sa.Double),
        sa.Column("currency", sa.String, nullable=False),
        sa.Column("notes", sa.String, nullable=False),
        sa.Column("in_stock", sa.Boolean, nullable=False),
        sa.Column("source", sa.String, nullable=False, server_default=""),
        sa.Column("price_in_euros", sa.Double, index=True),
        sa.Column("country_key", sa.String, nullable=False, index=True),
        sa.Column("places", sa.String, nullable=False),
        sa.Column("shuffle", sa.BigInteger, nullable=False),
        sa.Column("search_text", sa.String, nullable=False),
    )


def _create_wine_lists() -> None:
    _create_list(
        "wine_grapes", "position", sa.Column("grape", sa.String, nullable=False), key="grape_key"
    )
    _create_list("wine_foods", "food", key="food")
    _create_list("wine_allergens", "allergen", key="allergen")


def _create_list(name: str, second: str, *more: sa.Column[str], key: str) -> None:
    op.create_table(
        name,
        sa.Column("wine_id", sa.String, references("wines.id"), nullable=False),
        sa.Column(key, sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        *more,
        sa.PrimaryKeyConstraint("wine_id", second),
    )
    op.create_index(f"ix_{name}_{key}_wine_id", name, [key, "wine_id"])


def _create_documents() -> None:
    op.create_table(
        "library",
        sa.Column("id", sa.Integer, autoincrement=False, primary_key=True),
        sa.Column("changes", sa.Integer, nullable=False),
    )
    op.execute("INSERT INTO library VALUES (1, 0)")
    op.create_table(
        "documents",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("path", sa.String, nullable=False, unique=True),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("content_hash", sa.String, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
    )


def _create_chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("document_id", sa.String, references("documents.id"), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("headings", sa.JSON, nullable=False),
        sa.Column("text", sa.String, nullable=False),
    )
    op.create_index(
        "ix_chunks_document_id_position", "chunks", ["document_id", "position"], unique=True
    )


def _create_vectors() -> None:
    op.create_table(
        "chunk_vectors",
        sa.Column("chunk", sa.Integer, references("chunks.number"), primary_key=True),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_chunk_vectors_model_dimensions", "chunk_vectors", ["model", "dimensions"])


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("chat_id", sa.BigInteger, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("content", sa.String, nullable=False),
        sa.Column("wine_ids", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("turn_id", sa.BigInteger),
        sa.Column("thread_id", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("attachment", sa.String, nullable=False, server_default=""),
        sa.UniqueConstraint("turn_id", "role"),
    )
    columns = ["chat_id", "thread_id", "id"]
    op.create_index("ix_messages_chat_id_thread_id_id", "messages", columns)


def _create_updates() -> None:
    op.create_table(
        "updates",
        sa.Column("update_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("chat_id", sa.BigInteger, nullable=False),
        sa.Column("lane", sa.String),
        sa.Column("message_id", sa.BigInteger),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("turn_id", sa.BigInteger, index=True),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("placeholder_id", sa.BigInteger),
        sa.Column("error", sa.String),
    )
    op.create_index("ix_updates_chat_id_state", "updates", ["chat_id", "state"])
    op.create_index("ix_updates_state_received_at", "updates", ["state", "received_at"])
    op.create_index("ix_updates_lane_state_update_id", "updates", ["lane", "state", "update_id"])
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("unreachable_since", sa.DateTime(timezone=True)),
        sa.Column("unreachable_reason", sa.String),
        sa.Column("migrated_to", sa.BigInteger),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("chat_id", sa.BigInteger, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, index=True),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("error_types", sa.JSON, nullable=False),
        sa.Column("trace_id", sa.String, index=True),
        sa.Column("root_id", sa.String),
    )
    op.create_index("ix_turns_user_id_at", "turns", ["user_id", "at"])
    op.create_index("ix_turns_chat_id_at", "turns", ["chat_id", "at"])
    op.create_table(
        "turns_under_way",
        sa.Column("turn_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )


def _create_feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("turn_id", sa.BigInteger, references("turns.turn_id"), primary_key=True),
        sa.Column("verdict", sa.String),
        sa.Column("reason", sa.String),
        sa.Column("comment", sa.String, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("user_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("access", sa.String),
        sa.Column("first_seen", sa.DateTime(timezone=True)),
        sa.Column("last_seen", sa.DateTime(timezone=True)),
        sa.Column("chat_id", sa.BigInteger),
        sa.Column("warned_on", sa.Date),
        sa.Column("introduced_on", sa.Date),
    )
    op.create_table(
        "cares",
        sa.Column("chat_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("user_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("told", sa.String, primary_key=True),
        sa.Column("until", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "broadcasts",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("created_by", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
    )


def _create_memory() -> None:
    op.create_table(
        "facts",
        sa.Column("user_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("value", sa.String, primary_key=True),
        sa.Column("turn_id", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("said", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "bottles",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("wine", sa.JSON, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("drink_from", sa.Integer),
        sa.Column("drink_until", sa.Integer),
        sa.Column("note", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("user_id", "key"),
    )
    op.create_table(
        "deletions",
        sa.Column("user", sa.String, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
    )


def _create_traces() -> None:
    op.create_table(
        "traces",
        sa.Column("trace_id", sa.String, primary_key=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False, index=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("user", sa.String, nullable=False),
        sa.Column("question", sa.String, nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("level", sa.String, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("error_types", sa.JSON, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("steps", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("record", sa.LargeBinary),
    )
    op.create_index(
        "ix_traces_waiting", "traces", ["due_at"], sqlite_where=NOT_SENT, postgresql_where=NOT_SENT
    )
    op.create_table(
        "scores",
        sa.Column("score_id", sa.String, primary_key=True),
        sa.Column("trace_id", sa.String, nullable=False, index=True),
        sa.Column("observation_id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("value", sa.JSON),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("comment", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index(
        "ix_scores_waiting", "scores", ["due_at"], sqlite_where=NOT_SENT, postgresql_where=NOT_SENT
    )


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("update_id", sa.BigInteger, index=True),
        sa.Column("turn_id", sa.BigInteger, references("turns.turn_id"), index=True),
        sa.Column("asks_about", sa.BigInteger, references("turns.turn_id"), index=True),
        sa.Column("broadcast_id", NUMBER, references("broadcasts.id"), index=True),
        sa.Column("chat_id", sa.BigInteger, nullable=False),
        sa.Column("thread_id", sa.BigInteger),
        sa.Column("reply_to", sa.BigInteger),
        sa.Column("edits", sa.BigInteger),
        sa.Column("is_answer", sa.Boolean, nullable=False),
        sa.Column("follows", sa.Boolean, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("html", sa.String, nullable=False),
        sa.Column("buttons", sa.JSON, nullable=False),
        sa.Column("placeholder", sa.String, nullable=False),
        sa.Column("file_name", sa.String, nullable=False),
        sa.Column("file", sa.LargeBinary),
        sa.Column("message_id", sa.BigInteger),
        sa.Column("error", sa.String),
    )
    op.create_index("ix_outbox_chat_id_message_id", "outbox", ["chat_id", "message_id"])

"""Wines with their lists and full-text index, and the messages of each chat."""

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


def upgrade() -> None:
    _create_wines()
    _create_lists()
    _create_messages()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in SQLITE_FULL_TEXT if on_sqlite else POSTGRES_FULL_TEXT:
        op.execute(statement)


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP TABLE wines_fts")
    for table in ("messages", "wine_allergens", "wine_foods", "wine_grapes", "wines"):
        op.drop_table(table)


def _create_wines() -> None:
    op.create_table(
        "wines",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("producer", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("vintage", sa.Integer),
        sa.Column("country", sa.String, nullable=False),
        sa.Column("region", sa.String, nullable=False),
        sa.Column("appellation", sa.String, nullable=False),
        sa.Column("style", sa.String, nullable=False),
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
        sa.Column("price_in_euros", sa.Double),
        sa.Column("country_key", sa.String, nullable=False),
        sa.Column("places", sa.String, nullable=False),
        sa.Column("shuffle", sa.BigInteger, nullable=False),
        sa.Column("search_text", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_wines"),
        sa.UniqueConstraint("id", name="uq_wines_id"),
    )
    for column in ("style", "price_in_euros", "country_key"):
        op.create_index(f"ix_wines_{column}", "wines", [column])


def _create_lists() -> None:
    _create_list(
        "wine_grapes", "position", sa.Column("grape", sa.String, nullable=False), key="grape_key"
    )
    _create_list("wine_foods", "food", key="food")
    _create_list("wine_allergens", "allergen", key="allergen")


def _create_list(name: str, second: str, *more: sa.Column[str], key: str) -> None:
    op.create_table(
        name,
        sa.Column("wine_id", sa.String, nullable=False),
        sa.Column(key, sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        *more,
        sa.PrimaryKeyConstraint("wine_id", second, name=f"pk_{name}"),
        sa.ForeignKeyConstraint(
            ["wine_id"], ["wines.id"], name=f"fk_{name}_wine_id_wines", ondelete="CASCADE"
        ),
    )
    op.create_index(f"ix_{name}_{key}_wine_id", name, [key, "wine_id"])


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("chat_id", sa.BigInteger, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("content", sa.String, nullable=False),
        sa.Column("wine_ids", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index("ix_messages_chat_id_id", "messages", ["chat_id", "id"])

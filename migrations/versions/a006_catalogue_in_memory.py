"""Keep of wines only what a list says: a search is in memory, without full-text tables."""

import sqlalchemy as sa
from alembic import op

revision = "a006"
down_revision = "a005"

FULL_TEXT_TRIGGERS = ("wines_fts_insert", "wines_fts_delete", "wines_fts_update")
WINE_COLUMNS = (
    "id, producer, name, vintage, country, region, appellation, grapes, style, colour, sweetness, "
    "body, acidity, tannin, abv, foods, allergens, notes, source"
)
OFFER_COLUMNS = "wine_id, position, kind, size_ml, price, currency, stock, in_stock"


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        for trigger in FULL_TEXT_TRIGGERS:
            op.execute(f"DROP TRIGGER {trigger}")
        op.execute("DROP TABLE wines_fts")
    # SQLite cannot change a primary key: both tables are made anew from copies.
    op.execute(f"CREATE TABLE old_wines AS SELECT {WINE_COLUMNS} FROM wines")  # noqa: S608
    op.execute(f"CREATE TABLE old_offers AS SELECT {OFFER_COLUMNS} FROM offers")  # noqa: S608
    # Offers refer to wines, so they are dropped first and copied back last.
    op.drop_table("offers")
    op.drop_table("wines")
    _create_tables()
    _copy_back("wines", WINE_COLUMNS)
    _copy_back("offers", OFFER_COLUMNS)
    op.create_table(
        "catalogue",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
    )


def _copy_back(table: str, columns: str) -> None:
    """Fill a table with the rows of its copy, and drop the copy."""
    op.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table}")  # noqa: S608
    op.drop_table(f"old_{table}")


def _create_tables() -> None:
    """Create the tables of wines and offers with a wine's id as its key."""
    op.create_table(
        "wines",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("producer", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("vintage", sa.Integer),
        sa.Column("country", sa.String, nullable=False),
        sa.Column("region", sa.String, nullable=False),
        sa.Column("appellation", sa.String, nullable=False),
        sa.Column("grapes", sa.JSON, nullable=False),
        sa.Column("style", sa.String, nullable=False),
        sa.Column("colour", sa.String),
        sa.Column("sweetness", sa.String),
        sa.Column("body", sa.String),
        sa.Column("acidity", sa.String),
        sa.Column("tannin", sa.String),
        sa.Column("abv", sa.Double),
        sa.Column("foods", sa.JSON, nullable=False),
        sa.Column("allergens", sa.JSON, nullable=False),
        sa.Column("notes", sa.String, nullable=False),
        sa.Column("source", sa.String, nullable=False),
    )
    op.create_table(
        "offers",
        sa.Column(
            "wine_id",
            sa.String,
            sa.ForeignKey("wines.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("size_ml", sa.Integer),
        sa.Column("price", sa.Double),
        sa.Column("currency", sa.String, nullable=False),
        sa.Column("stock", sa.Integer),
        sa.Column("in_stock", sa.Boolean, nullable=False),
    )

"""Store the offers of wines: the price and the stock of each wine become one bottle on offer."""

import sqlalchemy as sa
from alembic import op

revision = "a005"
down_revision = "a004"


def upgrade() -> None:
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
    op.execute(
        "INSERT INTO offers (wine_id, position, kind, price, currency, in_stock) "
        "SELECT id, 0, 'bottle', price, currency, in_stock FROM wines"
    )
    op.drop_column("wines", "price")
    op.drop_column("wines", "currency")

"""Store what running turns have reserved of the daily budgets."""

import sqlalchemy as sa
from alembic import op

revision = "a021"
down_revision = "a020"


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("turn_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("pk_reservations")),
    )

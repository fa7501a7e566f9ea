"""Count presses of the buttons that open the pages of wines."""

import sqlalchemy as sa
from alembic import op

revision = "a019"
down_revision = "a018"


def upgrade() -> None:
    op.create_table(
        "clicks",
        sa.Column("wine_id", sa.String, nullable=False),
        sa.Column("week", sa.Date, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("wine_id", "week", name=op.f("pk_clicks")),
    )

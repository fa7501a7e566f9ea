"""Store what a user wanted in a turn and did not get, and whether they keep their words private."""

import sqlalchemy as sa
from alembic import op

revision = "a018"
down_revision = "a017"


def upgrade() -> None:
    """Add both columns; of earlier turns nothing is known."""
    op.add_column("turns", sa.Column("lack", sa.String))
    hides_words = sa.Column(
        "hides_words",
        sa.Boolean,
        nullable=False,
        server_default=sa.false(),
    )
    op.add_column("turns", hides_words)

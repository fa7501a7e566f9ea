"""Store the page of each wine in the shop, and its picture."""

import sqlalchemy as sa
from alembic import op

revision = "a010"
down_revision = "a009"


def upgrade() -> None:
    """Add both columns; they are empty until a list that has them is imported again."""
    for name in ("link", "image"):
        address = sa.Column(name, sa.String, nullable=False, server_default="")
        op.add_column("wines", address)

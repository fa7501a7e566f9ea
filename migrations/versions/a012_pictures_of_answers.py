"""Store the picture that is shown above a message."""

import sqlalchemy as sa
from alembic import op

revision = "a012"
down_revision = "a011"


def upgrade() -> None:
    """Add the column; messages that wait to be sent have no picture."""
    picture = sa.Column("picture", sa.String, nullable=False, server_default="")
    op.add_column("outbox", picture)

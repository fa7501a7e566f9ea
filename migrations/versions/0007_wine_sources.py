"""A wine keeps the name of the file that it came from."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("wines", sa.Column("source", sa.String, nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("wines", "source")

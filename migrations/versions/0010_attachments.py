"""What was read from the pictures of a message, as JSON; empty without any."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    column = sa.Column("attachment", sa.String, nullable=False, server_default="")
    op.add_column("messages", column)


def downgrade() -> None:
    op.drop_column("messages", "attachment")

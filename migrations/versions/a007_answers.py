"""Store the typed answer of a message beside its text; those of before have only their text."""

import sqlalchemy as sa
from alembic import op

revision = "a007"
down_revision = "a006"


def upgrade() -> None:
    answer = sa.Column("answer", sa.String, nullable=False, server_default="")
    op.add_column("messages", answer)

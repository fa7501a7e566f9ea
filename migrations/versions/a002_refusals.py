"""Keep the words of a server that refuses a trace or a score."""

import sqlalchemy as sa
from alembic import op

revision = "a002"
down_revision = "a001"


def upgrade() -> None:
    """Add the words to traces and scores; those of earlier refusals are not known."""
    for table in ("traces", "scores"):
        refusal = sa.Column("refusal", sa.String, nullable=False, server_default="")
        op.add_column(table, refusal)

"""An index of the feedback that is not delivered yet: it is looked for every few seconds."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

UNDELIVERED = sa.text("revision > delivered_revision")


def upgrade() -> None:
    op.create_index(
        "ix_feedback_undelivered",
        "feedback",
        ["updated_at", "turn_id"],
        sqlite_where=UNDELIVERED,
        postgresql_where=UNDELIVERED,
    )


def downgrade() -> None:
    op.drop_index("ix_feedback_undelivered", "feedback")

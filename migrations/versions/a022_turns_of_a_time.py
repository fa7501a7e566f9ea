"""Index turns with what is summed up of a day, and those that left a wish unmet."""

import sqlalchemy as sa
from alembic import op

revision = "a022"
down_revision = "a021"

UNMET = sa.text("(lack IS NOT NULL OR verdict = 'disliked')")


def upgrade() -> None:
    columns = ["at", "user_id", "cost_usd"]
    op.create_index("ix_turns_at_user_id_cost_usd", "turns", columns)
    op.drop_index("ix_turns_at", "turns")
    op.create_index(
        "ix_turns_unmet",
        "turns",
        ["at"],
        sqlite_where=UNMET,
        postgresql_where=UNMET,
    )

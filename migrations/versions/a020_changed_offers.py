"""Store when the staff of a shop changed an offer; an import of its list resets it."""

import sqlalchemy as sa
from alembic import op

revision = "a020"
down_revision = "a019"


def upgrade() -> None:
    op.add_column("offers", sa.Column("changed_at", sa.DateTime(timezone=True)))

"""Tell which releases run on the schema, so that those of a rollout can share a database."""

import sqlalchemy as sa
from alembic import op

revision = "a013"
down_revision = "a012"


def upgrade() -> None:
    support = op.create_table(
        "schema_support",
        sa.Column("oldest_revision", sa.String, primary_key=True),
    )
    # Release 0.2.0 runs on its own revision only.
    op.bulk_insert(support, [{"oldest_revision": revision}])

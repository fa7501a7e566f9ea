"""What is remembered of people (what they told, their own cellars), and whom to forget."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("user_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("value", sa.String, nullable=False),
        sa.Column("turn_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("said", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "kind", "value", "turn_id", name="pk_facts"),
    )
    op.create_table(
        "bottles",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("wine", sa.JSON, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("drink_from", sa.Integer),
        sa.Column("drink_until", sa.Integer),
        sa.Column("note", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bottles"),
        sa.UniqueConstraint("user_id", "key", name="uq_bottles_user_id_key"),
    )
    op.create_table(
        "deletions",
        sa.Column("user", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("user", name="pk_deletions"),
    )


def downgrade() -> None:
    for table in ("deletions", "bottles", "facts"):
        op.drop_table(table)

"""Store the conversations of users with the staff of the shop."""

import sqlalchemy as sa
from alembic import op

revision = "a014"
down_revision = "a013"


def upgrade() -> None:
    """Add the table, and the column of messages; those that are stored belong to no referral."""
    op.create_table(
        "referrals",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_referrals")),
    )
    op.create_index("ix_referrals_user_id", "referrals", ["user_id"])
    with op.batch_alter_table("outbox") as table:
        table.add_column(sa.Column("referral_id", sa.BigInteger))
        table.create_foreign_key(
            op.f("fk_outbox_referral_id_referrals"),
            "referrals",
            ["referral_id"],
            ["id"],
            ondelete="CASCADE",
        )
    op.create_index("ix_outbox_referral_id", "outbox", ["referral_id"])

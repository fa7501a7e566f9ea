"""Turns record their steps beside the updates, which know whose order they stand in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("updates", sa.Column("lane", sa.String))
    op.execute("UPDATE updates SET lane = CAST(chat_id AS VARCHAR) WHERE state <> 'done'")
    op.create_index("ix_updates_lane_state_update_id", "updates", ["lane", "state", "update_id"])
    op.create_index("ix_updates_turn_id", "updates", ["turn_id"])
    op.create_table(
        "steps",
        sa.Column("update_id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("result", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["update_id"],
            ["updates.update_id"],
            name="fk_steps_update_id_updates",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("update_id", "number", name="pk_steps"),
    )


def downgrade() -> None:
    op.drop_table("steps")
    op.drop_index("ix_updates_turn_id", "updates")
    op.drop_index("ix_updates_lane_state_update_id", "updates")
    op.drop_column("updates", "lane")

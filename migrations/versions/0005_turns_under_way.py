"""Turns that are under way, and whether admins were asked about a person."""

import datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# Until now a day that never was said, in the place of a warning, that admins were asked.
EVER = datetime.date.min
PEOPLE = sa.table(
    "people", sa.column("warned_on", sa.Date()), sa.column("introduced_on", sa.Date())
)


def upgrade() -> None:
    op.create_table(
        "turns_under_way",
        sa.Column("turn_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", name="pk_turns_under_way"),
    )
    op.add_column("people", sa.Column("introduced_on", sa.Date(), nullable=True))
    asked = PEOPLE.update().where(PEOPLE.c.warned_on == EVER)
    op.execute(asked.values(introduced_on=EVER, warned_on=None))


def downgrade() -> None:
    asked = PEOPLE.update().where(PEOPLE.c.introduced_on.is_not(None))
    op.execute(asked.values(warned_on=sa.func.coalesce(PEOPLE.c.warned_on, EVER)))
    op.drop_column("people", "introduced_on")
    op.drop_table("turns_under_way")

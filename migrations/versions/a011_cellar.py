"""Number the bottles of each user, keep their size and place, and what was thought of them."""

import sqlalchemy as sa
from alembic import op

revision = "a011"
down_revision = "a010"

NUMBER_BOTTLES = """
    UPDATE bottles SET number = numbered.number
    FROM (
        SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY id) AS number FROM bottles
    ) AS numbered
    WHERE numbered.id = bottles.id
"""


COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""An auto-incremented key. SQLite only increments a key whose type is INTEGER."""


def upgrade() -> None:
    number = sa.Column("number", sa.Integer, nullable=False, server_default="0")
    op.add_column("bottles", number)
    op.add_column("bottles", sa.Column("size_ml", sa.Integer))
    for name in ("place", "bought"):
        text = sa.Column(name, sa.String, nullable=False, server_default="")
        op.add_column("bottles", text)
    op.execute(NUMBER_BOTTLES)
    op.create_index(
        "ix_bottles_user_id_number",
        "bottles",
        ["user_id", "number"],
        unique=True,
    )
    op.create_table(
        "drinks",
        sa.Column("id", COUNTER, primary_key=True),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("wine", sa.JSON, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rating", sa.String, nullable=False),
        sa.Column("note", sa.String, nullable=False),
    )
    op.create_index("ix_drinks_user_id_at", "drinks", ["user_id", "at"])

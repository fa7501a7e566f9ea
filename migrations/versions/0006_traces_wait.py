"""Traces wait in the store until they are sent, with their tags.

What was traced before is forgotten: it was kept in another form, for two weeks at most.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

COLUMNS: tuple[tuple[str, Any], ...] = (
    ("trace_id", sa.String),
    ("started_at", sa.DateTime(timezone=True)),
    ("ended_at", sa.DateTime(timezone=True)),
    *((name, sa.String) for name in ("session", "user", "question", "outcome", "level")),
    ("retry_count", sa.Integer),
    ("cost_usd", sa.Double),
    ("tokens", sa.BigInteger),
    ("error_types", sa.JSON),
)
NOT_SENT = sa.text("state = 'waiting'")


def upgrade() -> None:
    _create(
        sa.Column("name", sa.String, nullable=False),
        *(sa.Column(name, sa.JSON, nullable=False) for name in ("tags", "steps")),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("record", sa.LargeBinary),
    )
    op.create_index(
        "ix_traces_waiting",
        "traces",
        ["due_at"],
        sqlite_where=NOT_SENT,
        postgresql_where=NOT_SENT,
    )


def downgrade() -> None:
    _create(sa.Column("record", sa.JSON, nullable=False))


def _create(*further: sa.Column[Any]) -> None:
    op.drop_table("traces")
    columns = [sa.Column(name, kind, nullable=False) for name, kind in COLUMNS]
    op.create_table(
        "traces", *columns, *further, sa.PrimaryKeyConstraint("trace_id", name="pk_traces")
    )
    op.create_index("ix_traces_started_at", "traces", ["started_at"])

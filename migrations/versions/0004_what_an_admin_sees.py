"""Turns, their answers and feedback, people, broadcasts, and the local store of traces."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    _create_turns()
    _create_feedback()
    _create_people()
    _create_traces()


def downgrade() -> None:
    for table in ("traces", "broadcasts", "people", "feedback", "answers", "turns"):
        op.drop_table(table)


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chat_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("error_types", sa.JSON(), nullable=False),
        sa.Column("trace_id", sa.String(), nullable=True),
        sa.Column("root_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("turn_id", name="pk_turns"),
    )
    op.create_index("ix_turns_at", "turns", ["at"])
    op.create_index("ix_turns_trace_id", "turns", ["trace_id"])
    op.create_index("ix_turns_user_id_at", "turns", ["user_id", "at"])
    op.create_index("ix_turns_chat_id_at", "turns", ["chat_id", "at"])
    op.create_table(
        "answers",
        sa.Column("chat_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("message_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("turn_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["turn_id"], ["turns.turn_id"], name="fk_answers_turn_id_turns", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("chat_id", "message_id", name="pk_answers"),
    )
    op.create_index("ix_answers_turn_id", "answers", ["turn_id"])


def _create_feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("turn_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("delivered_revision", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("asked_chat_id", sa.BigInteger(), nullable=True),
        sa.Column("asked_message_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["turn_id"], ["turns.turn_id"], name="fk_feedback_turn_id_turns", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("turn_id", name="pk_feedback"),
    )
    op.create_index(
        "ix_feedback_asked_chat_id_asked_message_id",
        "feedback",
        ["asked_chat_id", "asked_message_id"],
    )


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("access", sa.String(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=True),
        sa.Column("chat_id", sa.BigInteger(), nullable=True),
        sa.Column("warned_on", sa.Date(), nullable=True),
        sa.PrimaryKeyConstraint("user_id", name="pk_people"),
    )
    op.create_table(
        "broadcasts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("created_by", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_broadcasts"),
    )


def _create_traces() -> None:
    op.create_table(
        "traces",
        sa.Column("trace_id", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("question", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("error_types", sa.JSON(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", name="pk_traces"),
    )
    op.create_index("ix_traces_started_at", "traces", ["started_at"])

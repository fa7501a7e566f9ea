"""The tables of traces and their scores, which an exporter may send to Langfuse."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, TextKey, partial_index

IS_WAITING: Final = sa.text("state = 'waiting'")
IS_UNSENDABLE: Final = sa.text("(state = 'refused' OR refusal <> '')")
"""The condition for rows that were refused, or that are set aside.

A row that is set aside is WAITING and has a reason in `refusal`. Like `IS_WAITING`, this is the
condition of a partial index on both tables. Such an index stays small however large its table is.
"""


class ExportState(StrEnum):
    """The states of a trace or a score."""

    KEPT = "kept"
    """It is only stored, and never exported."""
    WAITING = "waiting"
    """It is exported when it is due."""
    SENT = "sent"
    REFUSED = "refused"
    """Langfuse has refused it for good."""


class TraceRow(Base):
    """A trace. `record` has all of it as compressed JSON. Lists of traces need the other columns.

    A trace that is WAITING is exported at `due_at`. One that was sent or refused has the time of
    that in `due_at`. `delivery` is the span in which the messages of the turn were sent, also as
    compressed JSON.
    """

    __tablename__ = "traces"
    __table_args__ = (
        partial_index("ix_traces_waiting", "due_at", where=IS_WAITING),
        partial_index("ix_traces_unsendable", "state", where=IS_UNSENDABLE),
        sa.Index(None, "user"),
        sa.Index(None, "level", "started_at"),
    )

    trace_id: Mapped[TextKey]
    started_at: Mapped[datetime] = mapped_column(index=True)
    ended_at: Mapped[datetime]
    user: Mapped[str]
    question: Mapped[str]
    outcome: Mapped[str]
    level: Mapped[str]
    cost_usd: Mapped[float]
    error_types: Mapped[list[str]]
    name: Mapped[str]
    state: Mapped[str]
    due_at: Mapped[datetime]
    refusal: Mapped[str] = mapped_column(default="", server_default="")
    """Why the server has refused it, or why it is set aside."""
    record: Mapped[bytes]
    delivery: Mapped[bytes | None]


class ScoreRow(Base):
    """A score of a trace, which is exported like it. A score without a value was taken back."""

    __tablename__ = "scores"
    __table_args__ = (
        partial_index("ix_scores_waiting", "due_at", where=IS_WAITING),
        partial_index("ix_scores_unsendable", "state", where=IS_UNSENDABLE),
        sa.Index(None, "at"),
    )

    score_id: Mapped[TextKey]
    trace_id: Mapped[str] = mapped_column(index=True)
    observation_id: Mapped[str]
    name: Mapped[str]
    value: Mapped[float | str | None] = mapped_column(sa.JSON(none_as_null=True))
    kind: Mapped[str]
    comment: Mapped[str]
    at: Mapped[datetime]
    state: Mapped[str]
    due_at: Mapped[datetime]
    refusal: Mapped[str] = mapped_column(default="", server_default="")
    """Why the server has refused it, or why it is set aside."""


class DeletionRow(Base):
    """A user whose exported traces must be deleted. `user` is the hash of the user in traces."""

    __tablename__ = "deletions"

    user: Mapped[TextKey]
    at: Mapped[datetime]
    due_at: Mapped[datetime]
    tries: Mapped[int]

"""The tables of traces: what is kept of turns, and what an exporter sends to Langfuse."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, TextKey, partial_index

WAITING: Final = sa.text("state = 'waiting'")
UNSENDABLE: Final = sa.text("(state = 'refused' OR refusal <> '')")
"""The rows of partial indexes, which stay small whatever the size of the table."""


class ExportState(StrEnum):
    """What has become of a trace or a score that Langfuse may get."""

    KEPT = "kept"
    """It is not to be exported."""
    WAITING = "waiting"
    """It is exported when it is due."""
    SENT = "sent"
    REFUSED = "refused"
    """Langfuse refused it for good."""


class TraceRow(Base):
    """A trace of the local store: columns for lists, and the `record` as compressed JSON.

    A trace that is WAITING is exported at `due_at`; one that was sent or refused was so then.
    `delivery` is the span in which its messages were sent, compressed too.
    """

    __tablename__ = "traces"
    __table_args__ = (
        partial_index("ix_traces_waiting", "due_at", where=WAITING),
        partial_index("ix_traces_unsendable", "state", where=UNSENDABLE),
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
    """The words of the server that refused it."""
    record: Mapped[bytes]
    delivery: Mapped[bytes | None]


class ScoreRow(Base):
    """A score of a trace, exported like it. A score without a value was retracted."""

    __tablename__ = "scores"
    __table_args__ = (
        partial_index("ix_scores_waiting", "due_at", where=WAITING),
        partial_index("ix_scores_unsendable", "state", where=UNSENDABLE),
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
    """The words of the server that refused it."""


class DeletionRow(Base):
    """A user whose exported traces are to be deleted. `user` is their hash in traces."""

    __tablename__ = "deletions"

    user: Mapped[TextKey]
    at: Mapped[datetime]
    due_at: Mapped[datetime]
    tries: Mapped[int]

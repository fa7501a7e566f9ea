"""The tables of what an admin sees: turns and their answers, feedback, people, broadcasts, traces.

`agent.turn_records` and `agent.engine.trace_records` hold what others see of these rows.
"""

from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import JSON, BigInteger, Date, ForeignKey, Index, Integer, String, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, UtcDateTime


class TurnRow(Base):
    """A turn that has ended; its id is that of its update."""

    __tablename__ = "turns"
    __table_args__ = (Index(None, "user_id", "at"), Index(None, "chat_id", "at"))

    turn_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    user_id: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    outcome: Mapped[str]
    seconds: Mapped[float]
    requests: Mapped[int]
    retries: Mapped[int]
    tokens: Mapped[int] = mapped_column(BigInteger)
    cost_usd: Mapped[float]
    error_types: Mapped[list[str]] = mapped_column(JSON)
    trace_id: Mapped[str | None] = mapped_column(String, index=True)
    root_id: Mapped[str | None]


class UnderWayRow(Base):
    """A turn that has begun and has not ended; what it uses is not known yet."""

    __tablename__ = "turns_under_way"

    turn_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(BigInteger)
    since: Mapped[datetime] = mapped_column(UtcDateTime)


class AnswerRow(Base):
    """A message that is an answer, or a part of one."""

    __tablename__ = "answers"

    chat_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    message_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    turn_id: Mapped[int] = mapped_column(
        ForeignKey("turns.turn_id", ondelete="CASCADE"), index=True
    )


UNDELIVERED: Final = text("revision > delivered_revision")


class FeedbackRow(Base):
    """What a person thinks of a turn; no verdict: they took it back.

    `asked_chat_id` and `asked_message_id` are those of the message that asked what was wrong.
    """

    __tablename__ = "feedback"
    __table_args__ = (
        Index(None, "asked_chat_id", "asked_message_id"),
        Index(
            "ix_feedback_undelivered",
            "updated_at",
            "turn_id",
            sqlite_where=UNDELIVERED,
            postgresql_where=UNDELIVERED,
        ),
    )

    turn_id: Mapped[int] = mapped_column(
        ForeignKey("turns.turn_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    verdict: Mapped[str | None]
    reason: Mapped[str | None]
    comment: Mapped[str]
    revision: Mapped[int]
    delivered_revision: Mapped[int]
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    asked_chat_id: Mapped[int | None] = mapped_column(BigInteger)
    asked_message_id: Mapped[int | None] = mapped_column(BigInteger)


class PersonRow(Base):
    """A person who wrote, or whom an admin allowed or blocked before they did.

    `warned_on` is the day they were last told that their budget is nearly used up, `introduced_on`
    that on which admins were asked whether to let them in.
    """

    __tablename__ = "people"

    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    access: Mapped[str | None]
    first_seen: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime | None] = mapped_column(UtcDateTime)
    chat_id: Mapped[int | None] = mapped_column(BigInteger)
    warned_on: Mapped[date | None] = mapped_column(Date)
    introduced_on: Mapped[date | None] = mapped_column(Date)


class BroadcastRow(Base):
    """A message of an admin to everyone; `sent` and `failed` count chats."""

    __tablename__ = "broadcasts"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    text: Mapped[str]
    created_by: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[str]
    sent: Mapped[int]
    failed: Mapped[int]


class TraceRow(Base):
    """A trace of the local store: what a list shows and filters, and the whole as JSON."""

    __tablename__ = "traces"

    trace_id: Mapped[str] = mapped_column(String, primary_key=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    ended_at: Mapped[datetime] = mapped_column(UtcDateTime)
    session: Mapped[str]
    user: Mapped[str]
    question: Mapped[str]
    outcome: Mapped[str]
    level: Mapped[str]
    retry_count: Mapped[int]
    cost_usd: Mapped[float]
    tokens: Mapped[int] = mapped_column(BigInteger)
    error_types: Mapped[list[str]] = mapped_column(JSON)
    record: Mapped[dict[str, Any]] = mapped_column(JSON)

"""The tables of conversations: chats, their messages and turns, and referrals to the staff."""

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from db.models.base import Base, BigInt, CounterKey, Key, partial_index

Access = Literal["allowed", "blocked"]
"""An admin's decision about a user."""
Verdict = Literal["liked", "disliked"]
"""A user's rating of an answer."""
UNMET: Final = sa.text("(lack IS NOT NULL OR verdict = 'disliked')")
"""The turns of a partial index: those that did not give what the user wanted."""


class ReferralState(StrEnum):
    """The states of a referral, in their order."""

    DRAFT = "draft"
    """The user sees what would be sent to the staff."""
    OPEN = "open"
    """It was sent to the staff, and both sides may write."""
    ENDED = "ended"


class ChatRow(Base):
    """A chat. A private chat has the id of its user.

    `is_reachable` says whether the bot can write there, and is None until a user has written there.
    `migrated_to` is the id of the supergroup that has replaced a group. `access` is an admin's
    decision about a user, and `is_introduced` says whether the admins were asked for it.
    """

    __tablename__ = "chats"

    chat_id: Mapped[Key]
    is_reachable: Mapped[bool | None]
    migrated_to: Mapped[BigInt | None]
    access: Mapped[str | None]
    is_introduced: Mapped[bool | None]


class MessageRow(Base):
    """A message of a chat. `thread_id` is its forum topic, or 0.

    `attachment` is what was read from its pictures, as JSON. `content` is its text. If the message
    is an answer with fields, such as wines, `answer` has all of it as JSON. Otherwise it is "".
    """

    __tablename__ = "messages"
    __table_args__ = (
        sa.Index(None, "chat_id", "thread_id", "id"),
        sa.Index(None, "created_at"),
        sa.UniqueConstraint("turn_id", "role"),
    )

    id: Mapped[CounterKey]
    chat_id: Mapped[BigInt]
    role: Mapped[str]
    content: Mapped[str]
    wine_ids: Mapped[list[str]]
    created_at: Mapped[datetime]
    turn_id: Mapped[BigInt | None]
    thread_id: Mapped[BigInt]
    attachment: Mapped[str]
    answer: Mapped[str]


class TurnRow(MappedAsDataclass, Base, kw_only=True):
    """A turn. `turn_id` is the id of the update that began it.

    `verdict`, `reason` and `comment` are the user's feedback. `verdict` is None if the user has
    given none, or has taken it back. `root_id` is the id of the root span of the trace. `lack` is a
    `Lack`: what the user wanted and did not get. If `hides_words`, admins may read only numbers of
    the turn, not what the user wrote.
    """

    __tablename__ = "turns"
    __table_args__ = (
        sa.Index(None, "user_id", "at"),
        sa.Index(None, "chat_id", "at"),
        # The index contains all that is summed up of a day: the people, and the cost.
        sa.Index(None, "at", "user_id", "cost_usd"),
        partial_index("ix_turns_unmet", "at", where=UNMET),
    )

    turn_id: Mapped[Key]
    chat_id: Mapped[BigInt] = mapped_column(default=0)
    user_id: Mapped[BigInt]
    at: Mapped[datetime]
    outcome: Mapped[str] = mapped_column(default="answered")
    seconds: Mapped[float] = mapped_column(default=0.0)
    requests: Mapped[int] = mapped_column(default=0)
    retries: Mapped[int] = mapped_column(default=0)
    cost_usd: Mapped[float] = mapped_column(default=0.0)
    trace_id: Mapped[str | None] = mapped_column(index=True, default=None)
    root_id: Mapped[str | None] = mapped_column(default=None)
    verdict: Mapped[str | None] = mapped_column(default=None)
    reason: Mapped[str | None] = mapped_column(default=None)
    comment: Mapped[str] = mapped_column(default="")
    lack: Mapped[str | None] = mapped_column(default=None)
    hides_words: Mapped[bool] = mapped_column(default=False, server_default=sa.false())


class ReservationRow(Base):
    """The part of the daily budgets that a running turn has reserved."""

    __tablename__ = "reservations"

    turn_id: Mapped[Key]
    user_id: Mapped[BigInt]
    requests: Mapped[int]
    cost_usd: Mapped[float]
    at: Mapped[datetime]


class ReferralRow(MappedAsDataclass, Base, kw_only=True):
    """A conversation between a user, in their private chat, and the staff of the shop.

    `id` is the id of the turn that drafted it. `text` is the Markdown for the staff, until it is
    sent. `name` is the user's name if the staff may see it. `messages` is the number of messages
    that were passed on since then. `at` is the time of the last one.
    """

    __tablename__ = "referrals"

    id: Mapped[Key]
    user_id: Mapped[BigInt] = mapped_column(index=True)
    state: Mapped[str] = mapped_column(default=ReferralState.DRAFT)
    text: Mapped[str] = mapped_column(default="")
    name: Mapped[str] = mapped_column(default="")
    messages: Mapped[int] = mapped_column(default=0)
    at: Mapped[datetime]


class ForgottenChatRow(Base):
    """When a conversation was deleted. Turns that were accepted before store no history."""

    __tablename__ = "forgotten_chats"

    chat_id: Mapped[Key]
    thread_id: Mapped[Key]
    at: Mapped[datetime]

"""The tables of the inbox and the outbox: what Telegram delivers, and what the bot sends."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from db.models.base import Base, BigInt, CounterKey, Key, TextKey, partial_index

UNFINISHED: Final = sa.text("state IN ('waiting', 'answered')")
NOT_DONE: Final = sa.text("state <> 'done'")
UNSENT_WITHOUT_TURN: Final = sa.text(
    "message_id IS NULL AND error IS NULL AND update_id IS NULL AND turn_id IS NULL"
)
"""The conditions of partial indexes. These stay small however large the table is."""


class UpdateState(StrEnum):
    """The states of an update."""

    WAITING = "waiting"
    """Its turn has not ended."""
    JOINED = "joined"
    """It belongs to the turn of another update."""
    ANSWERED = "answered"
    """Its answer, or an apology, is stored and not yet sent."""
    DONE = "done"
    """Its turn has ended."""
    SET_ASIDE = "set_aside"
    """Its turn has failed too often. It waits until an operator looks at it."""


class UpdateRow(Base):
    """A Telegram update. When its turn has ended, the payload is emptied.

    A `lane` is a queue of a chat. The updates of a lane are answered in order. `message_id` is the
    id of the new or edited message. `turn_id` is the id of the update that began the turn. `tries`
    counts the starts of the turn. It is reset when an operator has the update tried again. `epoch`
    counts the starts, too, and is never reset: only the process that knows the current epoch may
    commit the turn. `placeholder_id` is the message in a group that shows the progress of the turn.
    `calls` are the calls of tools that may write. A call is stored before it is made.
    """

    __tablename__ = "updates"
    __table_args__ = (
        sa.Index(None, "chat_id", "state"),
        sa.Index(None, "state", "received_at"),
        sa.Index(None, "lane", "state", "update_id"),
        partial_index("ix_updates_unfinished", "lane", "update_id", where=UNFINISHED),
        partial_index("ix_updates_not_done_user", "user_id", where=NOT_DONE),
    )

    update_id: Mapped[Key]
    chat_id: Mapped[BigInt]
    lane: Mapped[str | None]
    message_id: Mapped[BigInt | None]
    payload: Mapped[dict[str, Any]]
    received_at: Mapped[datetime]
    state: Mapped[str]
    turn_id: Mapped[BigInt | None] = mapped_column(index=True)
    tries: Mapped[int] = mapped_column(default=0)
    epoch: Mapped[int] = mapped_column(default=0)
    placeholder_id: Mapped[BigInt | None]
    error: Mapped[str | None]
    calls: Mapped[list[str]] = mapped_column(default=list)
    user_id: Mapped[BigInt | None] = mapped_column(default=None)
    """The user who sent it. It is None for a channel, and when the turn has ended."""


class OutboxRow(MappedAsDataclass, Base, kw_only=True):
    """A message to send. When it is sent, `message_id` is set and the content is deleted.

    `update_id` is the update whose turn sends it, and `turn_id` is the turn that it answers. If
    `follows`, it continues the message before it. `edits` is the id of the bot's message that it
    replaces. `buttons` are rows of pairs: a label and its data. `picture` is the address of a
    picture above the text. A message with an `error` is never sent again, because it may have
    arrived. A reply to a message with a `referral_id` is passed on to the other side of the
    referral.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        sa.Index(None, "chat_id", "message_id"),
        partial_index("ix_outbox_unsent_without_turn", "id", where=UNSENT_WITHOUT_TURN),
    )

    id: Mapped[CounterKey] = mapped_column(init=False)
    update_id: Mapped[BigInt | None] = mapped_column(index=True, default=None)
    turn_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("turns.turn_id", ondelete="CASCADE"), index=True, default=None
    )
    broadcast_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("broadcasts.id", ondelete="CASCADE"), index=True, default=None
    )
    referral_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("referrals.id", ondelete="CASCADE"), index=True, default=None
    )
    chat_id: Mapped[BigInt]
    thread_id: Mapped[BigInt | None] = mapped_column(default=None)
    reply_to: Mapped[BigInt | None] = mapped_column(default=None)
    edits: Mapped[BigInt | None] = mapped_column(default=None)
    follows: Mapped[bool] = mapped_column(default=False)
    kind: Mapped[str] = mapped_column(default="message")
    html: Mapped[str] = mapped_column(default="")
    buttons: Mapped[list[list[list[str]]]] = mapped_column(
        sa.JSON, default_factory=list
    )
    picture: Mapped[str] = mapped_column(default="", server_default="")
    file_name: Mapped[str] = mapped_column(default="")
    file: Mapped[bytes | None] = mapped_column(default=None)
    message_id: Mapped[BigInt | None] = mapped_column(default=None)
    error: Mapped[str | None] = mapped_column(default=None)

    def drop_id(self) -> None:
        """Let the database give the message a new id when the message is stored.

        A commit that failed before may have given it one, which another message may have by now.
        """
        self.id = cast("int", None)


class BroadcastState(StrEnum):
    """The states of a broadcast, in their order."""

    DRAFT = "draft"
    """The admin sees what would be sent."""
    SENDING = "sending"
    """It is being sent to all users."""


class BroadcastRow(Base):
    """An admin's message to all users. The row is deleted when it was sent to all of them."""

    __tablename__ = "broadcasts"

    id: Mapped[CounterKey]
    text: Mapped[str]
    created_by: Mapped[BigInt]
    state: Mapped[str]


class PressRow(Base):
    """A press on a button that works only once. `action` names the button, or its group."""

    __tablename__ = "presses"
    __table_args__ = (sa.Index(None, "at"),)

    chat_id: Mapped[Key]
    message_id: Mapped[Key]
    action: Mapped[TextKey]
    at: Mapped[datetime]

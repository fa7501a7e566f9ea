"""The tables of what users have stated and chosen, and of the bottles that they own."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from agent.turn import STATED_KINDS
from db.models.base import Base, BigInt, CounterKey, Key, TextKey, partial_index

IS_EXPIRING: Final = sa.text("until IS NOT NULL")
"""The condition of a partial index. The index stays small however large its table is."""


class FactRow(MappedAsDataclass, Base, kw_only=True):
    """A fact that a user has stated. `said` is the text in which the user stated it."""

    __tablename__ = "facts"

    user_id: Mapped[Key]
    kind: Mapped[str] = mapped_column(
        sa.Enum(*STATED_KINDS, name="kind", native_enum=False, create_constraint=True),
        primary_key=True,
    )
    value: Mapped[TextKey]
    said: Mapped[str] = mapped_column(default="")
    at: Mapped[datetime]


class SettingRow(MappedAsDataclass, Base, kw_only=True):
    """A setting that a user has chosen, such as "language"."""

    __tablename__ = "settings"

    user_id: Mapped[Key]
    name: Mapped[TextKey]
    value: Mapped[str]
    at: Mapped[datetime]


class ConcernRow(MappedAsDataclass, Base, kw_only=True):
    """A safety concern or an allergy of a user in one chat.

    The concern expires at `until`, or never.
    """

    __tablename__ = "concerns"
    __table_args__ = (
        sa.Index(None, "chat_id"),
        partial_index("ix_concerns_expiring", "until", where=IS_EXPIRING),
    )

    user_id: Mapped[Key]
    chat_id: Mapped[Key]
    name: Mapped[TextKey]
    at: Mapped[datetime]
    until: Mapped[datetime | None] = mapped_column(default=None)


class TasteRatingRow(MappedAsDataclass, Base, kw_only=True):
    """A taste, such as dry reds, that the user has rated together with an answer.

    If a user rates an answer, each taste of its wines gets a row. The row stays when its turn is
    deleted because of its age.
    """

    __tablename__ = "taste_ratings"
    __table_args__ = (sa.Index(None, "user_id", "at"),)

    id: Mapped[CounterKey] = mapped_column(init=False)
    user_id: Mapped[BigInt]
    turn_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("turns.turn_id", ondelete="SET NULL"), index=True
    )
    taste: Mapped[str]
    is_liked: Mapped[bool]
    at: Mapped[datetime]


class ReminderRow(MappedAsDataclass, Base, kw_only=True):
    """The last season, such as "2026-spring", in which a user was reminded of their bottles."""

    __tablename__ = "reminders"

    user_id: Mapped[Key]
    season: Mapped[str]


class BottleRow(Base):
    """An item of a user's cellar: all bottles of one wine that the user owns or owned.

    The columns are described at `CellarItem`, except `at`, the time of the item's last change. The
    user sees `number`: their items have the numbers 1, 2 and so on.
    """

    __tablename__ = "bottles"
    __table_args__ = (
        sa.UniqueConstraint("user_id", "key"),
        sa.Index(None, "user_id", "number", unique=True),
    )

    id: Mapped[CounterKey]
    user_id: Mapped[BigInt]
    key: Mapped[str]
    wine: Mapped[dict[str, Any]]
    count: Mapped[int]
    drink_from: Mapped[int | None]
    drink_until: Mapped[int | None]
    note: Mapped[str]
    at: Mapped[datetime]
    # The default was for rows that are older than the column.
    number: Mapped[int] = mapped_column(server_default="0")
    size_ml: Mapped[int | None]
    place: Mapped[str] = mapped_column(server_default="")
    bought: Mapped[str] = mapped_column(server_default="")
    reminded_year: Mapped[int | None]


class DrinkRow(Base):
    """A bottle that a user has opened. Its item in `bottles` has the same `key`."""

    __tablename__ = "drinks"
    __table_args__ = (sa.Index(None, "user_id", "at"),)

    id: Mapped[CounterKey]
    user_id: Mapped[BigInt]
    key: Mapped[str]
    wine: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    rating: Mapped[str]
    note: Mapped[str]


class KeptImportRow(MappedAsDataclass, Base, kw_only=True):
    """The items of a file, as JSON, until their user says whether they go into the cellar.

    A user has only one such file at a time. The buttons under the message about a file have the
    `import_id` of the file. So a button for an earlier file does nothing.
    """

    __tablename__ = "kept_imports"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    import_id: Mapped[BigInt]
    items: Mapped[str]
    until: Mapped[datetime]


class UndoableChangeRow(MappedAsDataclass, Base, kw_only=True):
    """A change of a user's memory, as JSON, that the user can undo.

    The button that undoes the change has its `undo_id`. This is the id of the turn that has made
    the change.
    """

    __tablename__ = "undoable_changes"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    undo_id: Mapped[Key]
    change: Mapped[str]
    until: Mapped[datetime]


class ForgottenUserRow(Base):
    """The time `at` when a user's data were deleted.

    A turn that was accepted before this time, and ends after it, stores nothing about the user.
    `user` is the hash that stands for the user in traces. So the row does not reveal who it was.
    """

    __tablename__ = "forgotten_users"

    user: Mapped[TextKey]
    at: Mapped[datetime]

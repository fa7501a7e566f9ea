"""The tables of what users have stated and chosen, and of the bottles that they own."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from agent.turn import STATED_KINDS
from db.models.base import Base, BigInt, Counter, Key, TextKey, partial_index

EXPIRING: Final = sa.text("until IS NOT NULL")
"""The condition of a partial index. It stays small however large the table is."""


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
    """A safety concern or an allergy of a user in one chat. It expires at `until`, or never."""

    __tablename__ = "concerns"
    __table_args__ = (
        sa.Index(None, "chat_id"),
        partial_index("ix_concerns_expiring", "until", where=EXPIRING),
    )

    user_id: Mapped[Key]
    chat_id: Mapped[Key]
    name: Mapped[TextKey]
    at: Mapped[datetime]
    until: Mapped[datetime | None] = mapped_column(default=None)


class TasteRatingRow(MappedAsDataclass, Base, kw_only=True):
    """A taste of a wine in an answer, and whether the user liked the answer.

    The row stays when its turn is deleted because of its age.
    """

    __tablename__ = "taste_ratings"
    __table_args__ = (sa.Index(None, "user_id", "at"),)

    id: Mapped[Counter] = mapped_column(init=False)
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
    """The bottles of a wine that a user owns or owned. The columns are those of `CellarItem`.

    `number` tells the user's items apart, from 1 on. `reminded_year` is the last year in which the
    user was reminded of the item.
    """

    __tablename__ = "bottles"
    __table_args__ = (
        sa.UniqueConstraint("user_id", "key"),
        sa.Index(None, "user_id", "number", unique=True),
    )

    id: Mapped[Counter]
    user_id: Mapped[BigInt]
    key: Mapped[str]
    wine: Mapped[dict[str, Any]]
    count: Mapped[int]
    drink_from: Mapped[int | None]
    drink_until: Mapped[int | None]
    note: Mapped[str]
    at: Mapped[datetime]
    number: Mapped[int] = mapped_column(server_default="0")
    size_ml: Mapped[int | None]
    place: Mapped[str] = mapped_column(server_default="")
    bought: Mapped[str] = mapped_column(server_default="")
    reminded_year: Mapped[int | None]


class DrinkRow(Base):
    """A bottle that a user has opened. Its item in `bottles` has the same `key`."""

    __tablename__ = "drinks"
    __table_args__ = (sa.Index(None, "user_id", "at"),)

    id: Mapped[Counter]
    user_id: Mapped[BigInt]
    key: Mapped[str]
    wine: Mapped[dict[str, Any]]
    at: Mapped[datetime]
    rating: Mapped[str]
    note: Mapped[str]


class KeptImportRow(MappedAsDataclass, Base, kw_only=True):
    """The items of a file, as JSON, until their user says whether they go into the cellar.

    A user has only one such file at a time. The buttons of a file have its `import_id`, so that
    those of an earlier file do nothing.
    """

    __tablename__ = "kept_imports"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    import_id: Mapped[BigInt]
    items: Mapped[str]
    until: Mapped[datetime]


class UndoableChangeRow(MappedAsDataclass, Base, kw_only=True):
    """A change of a user's memory, as JSON, that the user can undo. `undo_id` is its turn's id."""

    __tablename__ = "undoable_changes"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    undo_id: Mapped[Key]
    change: Mapped[str]
    until: Mapped[datetime]


class ForgottenUserRow(Base):
    """When a user's data were deleted. Turns that were accepted before store nothing of the user.

    `user` is the hash of the user in traces, so that the row does not tell who it was.
    """

    __tablename__ = "forgotten_users"

    user: Mapped[TextKey]
    at: Mapped[datetime]

"""The tables of what users stated, chose and own."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, MappedAsDataclass, mapped_column

from agent.turn import STATED_KINDS
from db.models.base import Base, BigInt, Counter, Key, TextKey, partial_index

EXPIRING: Final = sa.text("until IS NOT NULL")
"""The rows of a partial index, which stays small whatever the size of the table."""


class FactRow(MappedAsDataclass, Base, kw_only=True):
    """A fact that a user stated. `said` is the user's original text."""

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
    """A setting that a user chose, such as "language"."""

    __tablename__ = "settings"

    user_id: Mapped[Key]
    name: Mapped[TextKey]
    value: Mapped[str]
    at: Mapped[datetime]


class ConcernRow(MappedAsDataclass, Base, kw_only=True):
    """A safety concern or an allergy of a user in one chat; it expires at `until` if set."""

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
    """A taste that a user was recommended in a turn, and whether they liked the answer.

    It stays when the turn is too old to be kept.
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
    """The bottles of a wine that a user owns or owned, as a `CellarItem` has them.

    `number` is the user's own number of the item, from 1 on. `reminded_year` is the last year in
    which the user was reminded of it.
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
    """A bottle that a user has opened. `key` is that of its row in `bottles`."""

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
    """The items of a file, as JSON, until a user says whether they go into the cellar.

    A user has one at a time; `import_id` tells buttons of an earlier one apart.
    """

    __tablename__ = "kept_imports"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    import_id: Mapped[BigInt]
    items: Mapped[str]
    until: Mapped[datetime]


class UndoableChangeRow(MappedAsDataclass, Base, kw_only=True):
    """A change of a user's memory, as JSON, that they can undo; `undo_id` is its turn."""

    __tablename__ = "undoable_changes"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    undo_id: Mapped[Key]
    change: Mapped[str]
    until: Mapped[datetime]


class ForgottenUserRow(Base):
    """The time when a user's data were deleted. Turns accepted before it store none of theirs.

    `user` is the user's hash in traces, so the row does not tell who it was.
    """

    __tablename__ = "forgotten_users"

    user: Mapped[TextKey]
    at: Mapped[datetime]

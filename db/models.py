"""The tables, and statements that differ between SQLite and Postgres."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from agent.sommelier.wine import Wine, stored_wine_fields
from agent.turn import STATED_KINDS

T = TypeVar("T")

Access = Literal["allowed", "blocked"]
"""An admin's decision about a user."""
Verdict = Literal["liked", "disliked"]
"""A user's rating of an answer."""


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
    """Its turn failed too often: it waits for somebody to look."""


class BroadcastState(StrEnum):
    """The states of a broadcast, in their order."""

    DRAFT = "draft"
    """The admin sees what would be sent."""
    SENDING = "sending"
    """Its copies are being sent."""


class ExportState(StrEnum):
    """What has become of a trace or a score that Langfuse may get."""

    KEPT = "kept"
    """It is not to be exported."""
    WAITING = "waiting"
    """It is exported when it is due."""
    SENT = "sent"
    REFUSED = "refused"
    """Langfuse refused it for good."""


class ReferralState(StrEnum):
    """The states of a referral, in their order."""

    DRAFT = "draft"
    """The user sees what would be sent."""
    OPEN = "open"
    """The staff have it; both sides may write."""
    ENDED = "ended"


BigInt = Annotated[int, mapped_column(sa.BigInteger)]
Key = Annotated[
    int, mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
]
TextKey = Annotated[str, mapped_column(primary_key=True)]
Counter = Annotated[
    int,
    mapped_column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
]
"""An auto-incremented key. SQLite only increments a key whose type is INTEGER."""

WAITING: Final = sa.text("state = 'waiting'")
UNFINISHED: Final = sa.text("state IN ('waiting', 'answered')")
NOT_DONE: Final = sa.text("state <> 'done'")
UNSENDABLE: Final = sa.text("(state = 'refused' OR refusal <> '')")
EXPIRING: Final = sa.text("until IS NOT NULL")
UNSENT_WITHOUT_TURN: Final = sa.text(
    "message_id IS NULL AND error IS NULL AND update_id IS NULL AND turn_id IS NULL"
)
"""The rows of partial indexes, which stay small whatever the size of the table."""


def _partial_index(name: str, *columns: str, where: sa.TextClause) -> sa.Index:
    """Return an index on the rows of a table that meet a condition."""
    return sa.Index(name, *columns, sqlite_where=where, postgresql_where=where)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware datetime in UTC, even on SQLite, which stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime | None, dialect: sa.Dialect
    ) -> datetime | None:
        """Return the datetime in UTC. Reject a naive datetime, whose time zone is unknown."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        return value and value.astimezone(UTC)

    def process_result_value(
        self, value: datetime | None, dialect: sa.Dialect
    ) -> datetime | None:
        """Return an aware datetime."""
        return value and value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


class Base(DeclarativeBase):
    """The base of all tables, with constraint names that migrations can rely on."""

    __table__: ClassVar[sa.Table]
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: Final = {
        datetime: UtcDateTime,
        dict[str, Any]: sa.JSON,
        list[str]: sa.JSON,
    }


COLUMN_TYPES: Final[Mapping[type, type[sa.types.TypeEngine[Any]]]] = {
    bool: sa.Boolean,
    int: sa.Integer,
    float: sa.Double,
    str: sa.String,
}
"""The types of columns by the types of the fields of a wine; lists are stored as JSON."""


def _make_column(name: str, annotation: Any) -> sa.Column[Any]:
    """Return the column of a field of `Wine`: `vintage` with `int | None` can be null."""
    if get_origin(annotation) is tuple:
        return sa.Column(name, sa.JSON, nullable=False)
    kinds = get_args(annotation) or (annotation,)
    column_type = next(
        kind for base, kind in COLUMN_TYPES.items() if issubclass(kinds[0], base)
    )
    return sa.Column(name, column_type, nullable=NoneType in kinds)


class SchemaSupportRow(Base):
    """The one row that tells the oldest release, by its revision, that runs on this schema."""

    __tablename__ = "schema_support"

    oldest_revision: Mapped[TextKey]


class WineRow(Base):
    """A wine of the catalogue. `source` is the wine list that it came from.

    Each field of `Wine` that is stored has a column; those that statements name are written here.
    """

    __tablename__ = "wines"
    __table_args__ = tuple(
        _make_column(name, Wine.model_fields[name].annotation)
        for name in sorted(stored_wine_fields() - {"id", "grapes"})
    )

    id: Mapped[TextKey]
    grapes: Mapped[list[str]]
    source: Mapped[str]


class CatalogueRow(Base):
    """A single row that counts the imports of wines."""

    __tablename__ = "catalogue"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int]


class OfferRow(Base):
    """An offer of a wine. `position` is its place among the offers of the wine, from 0 on.

    `changed_at` is when the staff changed it, None if it is as its list says.
    """

    __tablename__ = "offers"

    wine_id: Mapped[str] = mapped_column(
        sa.ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str]
    size_ml: Mapped[int | None]
    price: Mapped[float | None]
    currency: Mapped[str]
    stock: Mapped[int | None]
    in_stock: Mapped[bool]
    changed_at: Mapped[datetime | None]


class MessageRow(Base):
    """A message of a chat. `thread_id` is its forum topic, 0 without topics.

    `attachment` is the text read from its pictures, as JSON. `answer` is the typed answer, as
    JSON, whose text is `content`; empty for a mere text.
    """

    __tablename__ = "messages"
    __table_args__ = (
        sa.Index(None, "chat_id", "thread_id", "id"),
        sa.Index(None, "created_at"),
        sa.UniqueConstraint("turn_id", "role"),
    )

    id: Mapped[Counter]
    chat_id: Mapped[BigInt]
    role: Mapped[str]
    content: Mapped[str]
    wine_ids: Mapped[list[str]]
    created_at: Mapped[datetime]
    turn_id: Mapped[BigInt | None]
    thread_id: Mapped[BigInt]
    attachment: Mapped[str]
    answer: Mapped[str]


class UpdateRow(Base):
    """A Telegram update. When its turn has ended, the payload is emptied.

    The updates of a `lane` (a chat's queue) are answered in order. `message_id` is the new or
    edited message. `turn_id` is the id of the update that began the turn. `tries` counts the starts
    of the turn, and is reset by a retry. `epoch` counts them too and is never reset: only the
    process with the current epoch may commit. `placeholder_id` is the group message that shows the
    turn's progress. `calls` are the calls of tools that may write, each stored before it is made.
    """

    __tablename__ = "updates"
    __table_args__ = (
        sa.Index(None, "chat_id", "state"),
        sa.Index(None, "state", "received_at"),
        sa.Index(None, "lane", "state", "update_id"),
        _partial_index("ix_updates_unfinished", "lane", "update_id", where=UNFINISHED),
        _partial_index("ix_updates_not_done_user", "user_id", where=NOT_DONE),
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
    """Who sent it; None for a channel, and when its turn has ended."""


class OutboxRow(MappedAsDataclass, Base, kw_only=True):
    """A message to send. Sending sets `message_id` and deletes the content.

    `update_id` is the update whose lane sends it, `turn_id` the turn that it answers. If `follows`
    is set, it continues the previous message. `edits` is the id of the bot's message to replace.
    `buttons` are rows of [label, data]. `picture` is the address of one to show above the text. An
    `error` is final: a message that may have arrived is never sent again. A reply to a message with
    a `referral_id` goes to the other side of that referral.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        sa.Index(None, "chat_id", "message_id"),
        _partial_index(
            "ix_outbox_unsent_without_turn", "id", where=UNSENT_WITHOUT_TURN
        ),
    )

    id: Mapped[Counter] = mapped_column(init=False)
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


class ChatRow(Base):
    """A chat. A private chat has the id of its user.

    `is_reachable` is None until a user writes there. `access` is an admin's decision about a user,
    and `is_introduced` whether admins were asked for it.
    """

    __tablename__ = "chats"

    chat_id: Mapped[Key]
    is_reachable: Mapped[bool | None]
    migrated_to: Mapped[BigInt | None]
    access: Mapped[str | None]
    is_introduced: Mapped[bool | None]


class DocumentRow(Base):
    """A document of the knowledge base."""

    __tablename__ = "documents"

    id: Mapped[TextKey]
    path: Mapped[str] = mapped_column(unique=True)
    title: Mapped[str]
    kind: Mapped[str]
    content_hash: Mapped[str]
    size: Mapped[BigInt]
    parts: Mapped[int]
    added_at: Mapped[datetime]


class LibraryRow(Base):
    """A single row that counts the changes of documents and the new chunks."""

    __tablename__ = "library"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    changes: Mapped[int]


class ChunkRow(Base):
    """A chunk of a document.

    `number` comes from the library's counter and is never reused. `vector` is the unit-length
    embedding by `model`, in 4-byte floats.
    """

    __tablename__ = "chunks"
    __table_args__ = (
        sa.Index(None, "document_id", "position", unique=True),
        sa.Index(None, "model", "number"),
    )

    number: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[str] = mapped_column(
        sa.ForeignKey("documents.id", ondelete="CASCADE")
    )
    position: Mapped[int]
    headings: Mapped[list[str]]
    text: Mapped[str]
    model: Mapped[str | None]
    vector: Mapped[bytes | None]


class TurnRow(MappedAsDataclass, Base, kw_only=True):
    """A turn. `turn_id` is the id of the update that began it.

    `verdict`, `reason` and `comment` are the user's feedback. `verdict` is None if the user gave
    none or retracted it. `root_id` is the root span of the trace. `lack` is a `Lack`, what the user
    wanted and did not get. With `hides_words` admins may read figures only, no words of the user.
    """

    __tablename__ = "turns"
    __table_args__ = (sa.Index(None, "user_id", "at"), sa.Index(None, "chat_id", "at"))

    turn_id: Mapped[Key]
    chat_id: Mapped[BigInt] = mapped_column(default=0)
    user_id: Mapped[BigInt]
    at: Mapped[datetime] = mapped_column(index=True)
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
        _partial_index("ix_concerns_expiring", "until", where=EXPIRING),
    )

    user_id: Mapped[Key]
    chat_id: Mapped[Key]
    name: Mapped[TextKey]
    at: Mapped[datetime]
    until: Mapped[datetime | None] = mapped_column(default=None)


class UndoableChangeRow(MappedAsDataclass, Base, kw_only=True):
    """A change of a user's memory, as JSON, that they can undo; `undo_id` is its turn."""

    __tablename__ = "undoable_changes"
    __table_args__ = (sa.Index(None, "until"),)

    user_id: Mapped[Key]
    undo_id: Mapped[Key]
    change: Mapped[str]
    until: Mapped[datetime]


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


class PressRow(Base):
    """A press on a button that may be pressed once. `action` names the button, or its group."""

    __tablename__ = "presses"
    __table_args__ = (sa.Index(None, "at"),)

    chat_id: Mapped[Key]
    message_id: Mapped[Key]
    action: Mapped[TextKey]
    at: Mapped[datetime]


class ClickRow(Base):
    """How often the page of a wine was opened by a button in the week from a Monday on."""

    __tablename__ = "clicks"

    wine_id: Mapped[TextKey]
    week: Mapped[date] = mapped_column(primary_key=True)
    count: Mapped[int]


class ForgottenChatRow(Base):
    """The time when a conversation was deleted. Turns accepted before it store no history."""

    __tablename__ = "forgotten_chats"

    chat_id: Mapped[Key]
    thread_id: Mapped[Key]
    at: Mapped[datetime]


class ForgottenUserRow(Base):
    """The time when a user's data were deleted. Turns accepted before it store none of theirs.

    `user` is the user's hash in traces, so the row does not tell who it was.
    """

    __tablename__ = "forgotten_users"

    user: Mapped[TextKey]
    at: Mapped[datetime]


class DeletionRow(Base):
    """A user whose exported traces are to be deleted. `user` is their hash in traces."""

    __tablename__ = "deletions"

    user: Mapped[TextKey]
    at: Mapped[datetime]
    due_at: Mapped[datetime]
    tries: Mapped[int]


class BroadcastRow(Base):
    """An admin's message to all users. The row is deleted once all copies are sent."""

    __tablename__ = "broadcasts"

    id: Mapped[Counter]
    text: Mapped[str]
    created_by: Mapped[BigInt]
    state: Mapped[str]


class ReferralRow(MappedAsDataclass, Base, kw_only=True):
    """A conversation between a user, in their private chat, and the staff of the shop.

    `id` is the turn that drafted it. `text` is the Markdown that the staff get, emptied when it is
    sent. `name` is the user's name if they let the staff see it. `messages` counts those that were
    passed on since, the last one at `at`.
    """

    __tablename__ = "referrals"

    id: Mapped[Key]
    user_id: Mapped[BigInt] = mapped_column(index=True)
    state: Mapped[str] = mapped_column(default=ReferralState.DRAFT)
    text: Mapped[str] = mapped_column(default="")
    name: Mapped[str] = mapped_column(default="")
    messages: Mapped[int] = mapped_column(default=0)
    at: Mapped[datetime]


class ReservationRow(Base):
    """What a running turn has reserved of the daily budgets."""

    __tablename__ = "reservations"

    turn_id: Mapped[Key]
    user_id: Mapped[BigInt]
    requests: Mapped[int]
    cost_usd: Mapped[float]
    at: Mapped[datetime]


class TraceRow(Base):
    """A trace of the local store: columns for lists, and the `record` as compressed JSON.

    A trace that is WAITING is exported at `due_at`; one that was sent or refused was so then.
    `delivery` is the span in which its messages were sent, compressed too.
    """

    __tablename__ = "traces"
    __table_args__ = (
        _partial_index("ix_traces_waiting", "due_at", where=WAITING),
        _partial_index("ix_traces_unsendable", "state", where=UNSENDABLE),
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
        _partial_index("ix_scores_waiting", "due_at", where=WAITING),
        _partial_index("ix_scores_unsendable", "state", where=UNSENDABLE),
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


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def to_record(kind: type[T], row: sa.Row[Any], **others: object) -> T:
    """Return a dataclass instance from the row's columns of the same names and `others`."""
    field_names = {item.name for item in fields(cast("Any", kind))}
    columns = {
        name: value for name, value in row._mapping.items() if name in field_names
    }
    lists = {
        name: tuple(value) for name, value in columns.items() if isinstance(value, list)
    }
    return kind(**columns | lists | others)


def _insert(dialect: str, model: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """Return an insert in a dialect, which supports ON CONFLICT."""
    if dialect == "sqlite":
        return sqlite.insert(model.__table__)
    return postgresql.insert(model.__table__)


@cache
def _insert_new(dialect: str, model: type[Base]) -> sa.Insert:
    return _insert(dialect, model).on_conflict_do_nothing()


@cache
def _upsert(dialect: str, model: type[Base], columns: tuple[str, ...]) -> sa.Insert:
    """Return the statement of `upsert`, which every turn needs and which is slow to build."""
    statement = _insert(dialect, model)
    keys = model.__table__.primary_key.columns.keys()
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


async def insert_new(session: AsyncSession, *rows: Base) -> int:
    """Insert rows, except those that conflict with stored ones; return how many were new."""
    if not rows:
        return 0
    statement = _insert_new(session.get_bind().dialect.name, type(rows[0]))
    result = await session.execute(statement, [_set_columns(row) for row in rows])
    return cast("sa.CursorResult[Any]", result).rowcount


async def upsert(session: AsyncSession, *rows: Base) -> None:
    """Insert rows, or update those with the same primary key, which keep columns not set here."""
    if not rows:
        return
    values = [_set_columns(row) for row in rows]
    statement = _upsert(
        session.get_bind().dialect.name, type(rows[0]), tuple(values[0])
    )
    await session.execute(statement, values)


def _set_columns(row: Base) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(row).items()
        if name in row.__table__.columns
    }

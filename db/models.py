"""The tables, and how rows of either database are written and read.

Rows are what is stored; what others see of them is in `agent`.
"""

from dataclasses import fields
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    Date,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from agent.text import storable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


FULL_TEXT: Final = "wines_fts"
"""The full-text index of wines: a virtual table in SQLite, a generated column in Postgres.
Only migrations know how it is made; comparisons of schema and models leave such names out."""


class Base(DeclarativeBase):
    """All tables, with constraint names that migrations can rely on."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC, also in SQLite, which stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a naive moment is an error rather than a guess."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Aware again."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class WineRow(Base):
    """One wine of the catalogue, with the folded forms that filters compare."""

    __tablename__ = "wines"

    # SQLite's full-text index refers to wines by an integer that survives VACUUM.
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    id: Mapped[str] = mapped_column(String, unique=True)
    producer: Mapped[str]
    name: Mapped[str]
    vintage: Mapped[int | None]
    country: Mapped[str]
    region: Mapped[str]
    appellation: Mapped[str]
    style: Mapped[str] = mapped_column(String, index=True)
    colour: Mapped[str | None]
    sweetness: Mapped[str | None]
    body: Mapped[str | None]
    acidity: Mapped[str | None]
    tannin: Mapped[str | None]
    abv: Mapped[float | None]
    price: Mapped[float | None]
    currency: Mapped[str]
    notes: Mapped[str]
    in_stock: Mapped[bool]
    source: Mapped[str] = mapped_column(String, server_default="")

    price_in_euros: Mapped[float | None] = mapped_column(index=True)
    country_key: Mapped[str] = mapped_column(String, index=True)
    places: Mapped[str]
    shuffle: Mapped[int] = mapped_column(BigInteger)
    search_text: Mapped[str]


class OfWine:
    """An item of one of a wine's lists."""

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )


class WineGrapeRow(OfWine, Base):
    """A grape of a wine; `grape_key` is the same for all names of one grape."""

    __tablename__ = "wine_grapes"
    __table_args__ = (Index(None, "grape_key", "wine_id"),)

    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    grape: Mapped[str]
    grape_key: Mapped[str]


class WineFoodRow(OfWine, Base):
    """A food that a wine suits."""

    __tablename__ = "wine_foods"
    __table_args__ = (Index(None, "food", "wine_id"),)

    food: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class WineAllergenRow(OfWine, Base):
    """An allergen that a wine contains."""

    __tablename__ = "wine_allergens"
    __table_args__ = (Index(None, "allergen", "wine_id"),)

    allergen: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class MessageRow(Base):
    """One message of a chat; `thread_id` is its topic there, 0 without topics.

    `attachment` is what was read from its pictures, as JSON.
    """

    __tablename__ = "messages"
    __table_args__ = (
        Index(None, "chat_id", "thread_id", "id"),
        UniqueConstraint("turn_id", "role"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    role: Mapped[str]
    content: Mapped[str]
    wine_ids: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    turn_id: Mapped[int | None] = mapped_column(BigInteger)
    thread_id: Mapped[int] = mapped_column(BigInteger, server_default="0")
    attachment: Mapped[str] = mapped_column(server_default="")


class UpdateRow(Base):
    """An accepted update; its payload is emptied when it is done.

    Those of a `lane` are answered in order. `turn_id` is the update whose turn took it, `tries` how
    often its turn has begun, `epoch` counts the same and never starts again: only who began a turn
    last may commit it. `placeholder_id` is the group message in which its answer forms.
    """

    __tablename__ = "updates"
    __table_args__ = (
        Index(None, "chat_id", "state"),
        Index(None, "state", "received_at"),
        Index(None, "lane", "state", "update_id"),
        Index(None, "turn_id"),
    )

    update_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    lane: Mapped[str | None]
    message_id: Mapped[int | None] = mapped_column(BigInteger)
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    received_at: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[str]
    turn_id: Mapped[int | None] = mapped_column(BigInteger)
    tries: Mapped[int] = mapped_column(default=0)
    epoch: Mapped[int] = mapped_column(default=0)
    placeholder_id: Mapped[int | None] = mapped_column(BigInteger)
    error: Mapped[str | None]


class OutboxRow(MappedAsDataclass, Base, kw_only=True):
    """A message that is committed, and sent once it has a `message_id`; its content goes then.

    `update_id` is the update whose lane sends it, `turn_id` the turn that it answers, `asks_about`
    the turn whose feedback it asks for. One that `follows` continues the message before it. `edits`
    is a message of ours whose place it takes. `buttons` are rows of labels and data. An `error` is
    final: a message that may have arrived is never sent again.
    """

    __tablename__ = "outbox"
    __table_args__ = (Index(None, "chat_id", "message_id"),)

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, init=False
    )
    update_id: Mapped[int | None] = mapped_column(BigInteger, index=True, default=None)
    turn_id: Mapped[int | None] = mapped_column(
        ForeignKey("turns.turn_id", ondelete="CASCADE"), index=True, default=None
    )
    asks_about: Mapped[int | None] = mapped_column(
        ForeignKey("turns.turn_id", ondelete="CASCADE"), index=True, default=None
    )
    broadcast_id: Mapped[int | None] = mapped_column(
        ForeignKey("broadcasts.id", ondelete="CASCADE"), index=True, default=None
    )
    chat_id: Mapped[int] = mapped_column(BigInteger)
    thread_id: Mapped[int | None] = mapped_column(BigInteger, default=None)
    reply_to: Mapped[int | None] = mapped_column(BigInteger, default=None)
    edits: Mapped[int | None] = mapped_column(BigInteger, default=None)
    is_answer: Mapped[bool] = mapped_column(default=False)
    follows: Mapped[bool] = mapped_column(default=False)
    kind: Mapped[str] = mapped_column(default="message")
    html: Mapped[str] = mapped_column(default="")
    buttons: Mapped[list[list[list[str]]]] = mapped_column(JSON, default_factory=list)
    placeholder: Mapped[str] = mapped_column(default="")
    file_name: Mapped[str] = mapped_column(default="")
    file: Mapped[bytes | None] = mapped_column(LargeBinary, default=None)
    message_id: Mapped[int | None] = mapped_column(BigInteger, default=None)
    error: Mapped[str | None] = mapped_column(default=None)


class ChatRow(Base):
    """What was learned of a chat while sending to it."""

    __tablename__ = "chats"

    chat_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    unreachable_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    unreachable_reason: Mapped[str | None]
    migrated_to: Mapped[int | None] = mapped_column(BigInteger)


class DocumentRow(Base):
    """A document of the knowledge base."""

    __tablename__ = "documents"

    id: Mapped[str] = mapped_column(String, primary_key=True)
    path: Mapped[str] = mapped_column(String, unique=True)
    title: Mapped[str]
    kind: Mapped[str]
    content_hash: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    parts: Mapped[int]
    added_at: Mapped[datetime] = mapped_column(UtcDateTime)


class LibraryRow(Base):
    """One row: how often documents have changed, each new chunk counted too."""

    __tablename__ = "library"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    changes: Mapped[int]


class ChunkRow(Base):
    """A chunk of a document.

    Its number is given by the counter of the library, and to no other chunk ever again.
    """

    __tablename__ = "chunks"
    __table_args__ = (Index(None, "document_id", "position", unique=True),)

    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    position: Mapped[int]
    headings: Mapped[list[str]] = mapped_column(JSON)
    text: Mapped[str]


class ChunkVectorRow(Base):
    """What a chunk means to an embedding model: a vector of length 1, 4 bytes a number."""

    __tablename__ = "chunk_vectors"
    __table_args__ = (Index(None, "model", "dimensions"),)

    chunk: Mapped[int] = mapped_column(
        ForeignKey("chunks.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    model: Mapped[str]
    dimensions: Mapped[int]
    vector: Mapped[bytes]


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


class FeedbackRow(Base):
    """What a person thinks of a turn; no verdict: they took it back."""

    __tablename__ = "feedback"

    turn_id: Mapped[int] = mapped_column(
        ForeignKey("turns.turn_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    verdict: Mapped[str | None]
    reason: Mapped[str | None]
    comment: Mapped[str]
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


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


class CareRow(Base):
    """Something that a person told of themselves in a chat, and how long it holds; None: for good.

    What it is, is a name of `agent.care.concerns`: a concern or an allergy.
    """

    __tablename__ = "cares"

    chat_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    told: Mapped[str] = mapped_column(String, primary_key=True)
    until: Mapped[datetime | None] = mapped_column(UtcDateTime)


class FactRow(Base):
    """Something that a person told of themselves, or that a verdict on a turn says of their taste.

    `turn_id` is that of the turn whose answer was rated; 0 for what was told. `said` are their own
    words. Of the kind "undo" it is a change that may be taken back, as JSON, by its id.
    """

    __tablename__ = "facts"

    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String, primary_key=True)
    value: Mapped[str] = mapped_column(String, primary_key=True)
    turn_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    said: Mapped[str]
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class BottleRow(Base):
    """Bottles of one wine that a person owns, or did; `key` is its label, folded."""

    __tablename__ = "bottles"
    __table_args__ = (UniqueConstraint("user_id", "key"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger)
    key: Mapped[str]
    wine: Mapped[dict[str, Any]] = mapped_column(JSON)
    count: Mapped[int]
    drink_from: Mapped[int | None]
    drink_until: Mapped[int | None]
    note: Mapped[str]
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class DeletionRow(Base):
    """Somebody to be forgotten wherever traces of them are; `user` is their hash in these."""

    __tablename__ = "deletions"

    user: Mapped[str] = mapped_column(String, primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    tries: Mapped[int]


class BroadcastRow(Base):
    """A message of an admin to everyone; `sent` and `failed` count chats."""

    __tablename__ = "broadcasts"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    text: Mapped[str]
    created_by: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[str]
    sent: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)


NOT_SENT: Final = text("state = 'waiting'")


class TraceRow(Base):
    """A trace of the local store: what a list shows and filters, and the whole as packed JSON.

    `steps` are its spans by name, model, seconds and cost. The `record` is gone after a while, the
    numbers stay. One that is `waiting` is sent when it is `due_at`.
    """

    __tablename__ = "traces"
    __table_args__ = (
        Index("ix_traces_waiting", "due_at", sqlite_where=NOT_SENT, postgresql_where=NOT_SENT),
    )

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
    name: Mapped[str]
    tags: Mapped[list[str]] = mapped_column(JSON)
    steps: Mapped[list[Any]] = mapped_column(JSON)
    state: Mapped[str]
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)
    record: Mapped[bytes | None] = mapped_column(LargeBinary)


class ScoreRow(Base):
    """A score of a trace; without a value it was taken back. A `waiting` one is sent when due."""

    __tablename__ = "scores"
    __table_args__ = (
        Index("ix_scores_waiting", "due_at", sqlite_where=NOT_SENT, postgresql_where=NOT_SENT),
    )

    score_id: Mapped[str] = mapped_column(String, primary_key=True)
    trace_id: Mapped[str] = mapped_column(String, index=True)
    observation_id: Mapped[str]
    name: Mapped[str]
    value: Mapped[float | str | None] = mapped_column(JSON(none_as_null=True))
    kind: Mapped[str]
    comment: Mapped[str]
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[str]
    due_at: Mapped[datetime] = mapped_column(UtcDateTime)


def utc_now() -> datetime:
    """This moment, aware."""
    return datetime.now(UTC)


def loaded(kind: type[T], row: Row[Any], **others: object) -> T:
    """The record that a row holds; `others` are the fields that are not columns of it."""
    columns = row._mapping
    wanted = [each.name for each in fields(kind) if each.name in columns]
    return kind(**{name: _read(columns[name]) for name in wanted} | others)


def _read(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def table_of(model: type[Base]) -> Table:
    """The table of a model, for statements that are executed on a connection."""
    return cast("Table", model.__table__)


Inserting = postgresql.Insert | sqlite.Insert


def insert(session: AsyncSession, model: type[Base]) -> Inserting:
    """Return an insert of a database, that can say what is to become of known rows."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(table_of(model))
    return postgresql.insert(table_of(model))


def upsert(session: AsyncSession, model: type[Base], *changed: str) -> Inserting:
    """Return an insert that replaces a known row, or only the `changed` columns of it."""
    statement, columns = insert(session, model), model.__table__.columns
    keys = [column.name for column in columns if column.primary_key]
    names = changed or [column.name for column in columns if not column.primary_key]
    values = {name: statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=keys, set_=values)


def values_of(row: Base) -> dict[str, object]:
    """Return the columns of a row that are set."""
    return {name: value for name, value in vars(row).items() if name in row.__table__.columns}


def storable_value(value: object) -> object:
    """Return a value as every database stores it."""
    if isinstance(value, str):
        return storable(value)
    return [storable_value(item) for item in value] if isinstance(value, tuple) else value

"""The tables, and statements that are written in another way for either database."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

T = TypeVar("T")

BigInt = Annotated[int, mapped_column(sa.BigInteger)]
Key = Annotated[int, mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)]
TextKey = Annotated[str, mapped_column(primary_key=True)]
Counter = Annotated[
    int, mapped_column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)
]
"""A key that the database counts up; SQLite does if its type is called INTEGER."""

NOT_SENT: Final = sa.text("state = 'waiting'")

FULL_TEXT: Final = "wines_fts"
"""The full-text index of wines: a virtual table in SQLite, a generated column in Postgres.
Only migrations create it; comparisons of schema and models leave such names out."""


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware moment in UTC, also in SQLite, which stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return the moment in UTC; a naive one is an error rather than a guess."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a moment without a time zone cannot be stored")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return an aware moment."""
        return value and value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


class Base(DeclarativeBase):
    """All tables, with constraint names that migrations can rely on."""

    __table__: ClassVar[sa.Table]
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
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


class WineRow(Base):
    """One wine of the catalogue, with the folded forms that filters compare."""

    __tablename__ = "wines"

    # SQLite's full-text index refers to wines by an integer that survives VACUUM.
    number: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(unique=True)
    producer: Mapped[str]
    name: Mapped[str]
    vintage: Mapped[int | None]
    country: Mapped[str]
    region: Mapped[str]
    appellation: Mapped[str]
    grapes: Mapped[list[str]]
    style: Mapped[str] = mapped_column(index=True)
    colour: Mapped[str | None]
    sweetness: Mapped[str | None]
    body: Mapped[str | None]
    acidity: Mapped[str | None]
    tannin: Mapped[str | None]
    abv: Mapped[float | None]
    price: Mapped[float | None]
    currency: Mapped[str]
    foods: Mapped[list[str]]
    allergens: Mapped[list[str]]
    notes: Mapped[str]
    in_stock: Mapped[bool]
    source: Mapped[str]

    price_in_euros: Mapped[float | None] = mapped_column(index=True)
    country_key: Mapped[str] = mapped_column(index=True)
    grape_keys: Mapped[list[str]]
    places: Mapped[str]
    shuffle: Mapped[BigInt]
    search_text: Mapped[str]


class MessageRow(Base):
    """One message of a chat; `thread_id` is its topic there, 0 without topics.

    `attachment` is the text of its pictures, as JSON.
    """

    __tablename__ = "messages"
    __table_args__ = (
        sa.Index(None, "chat_id", "thread_id", "id"),
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


class UpdateRow(Base):
    """An accepted update; its payload is emptied when it is done.

    The updates of a `lane` are answered in order. `message_id` is the new or edited message.
    `turn_id` is the id of the update whose turn includes this one. `tries` counts how often its
    turn has begun. `epoch` counts this too, but is never reset: only the process that began a turn
    last may commit it. `placeholder_id` is the group message that shows the turn's progress.
    """

    __tablename__ = "updates"
    __table_args__ = (
        sa.Index(None, "chat_id", "state"),
        sa.Index(None, "state", "received_at"),
        sa.Index(None, "lane", "state", "update_id"),
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


class OutboxRow(MappedAsDataclass, Base, kw_only=True):
    """A committed message. Once it is sent, it has a `message_id`, and its content is deleted.

    `update_id` is the update whose lane sends it, `turn_id` the turn that it answers. With
    `follows` it continues the message before it. `edits` is the message of the bot that it
    replaces. `buttons` are rows of labels and data. An `error` is final: a message that may have
    arrived is never sent again.
    """

    __tablename__ = "outbox"
    __table_args__ = (sa.Index(None, "chat_id", "message_id"),)

    id: Mapped[Counter] = mapped_column(init=False)
    update_id: Mapped[BigInt | None] = mapped_column(index=True, default=None)
    turn_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("turns.turn_id", ondelete="CASCADE"), index=True, default=None
    )
    broadcast_id: Mapped[int | None] = mapped_column(
        sa.ForeignKey("broadcasts.id", ondelete="CASCADE"), index=True, default=None
    )
    chat_id: Mapped[BigInt]
    thread_id: Mapped[BigInt | None] = mapped_column(default=None)
    reply_to: Mapped[BigInt | None] = mapped_column(default=None)
    edits: Mapped[BigInt | None] = mapped_column(default=None)
    follows: Mapped[bool] = mapped_column(default=False)
    kind: Mapped[str] = mapped_column(default="message")
    html: Mapped[str] = mapped_column(default="")
    buttons: Mapped[list[list[list[str]]]] = mapped_column(sa.JSON, default_factory=list)
    file_name: Mapped[str] = mapped_column(default="")
    file: Mapped[bytes | None] = mapped_column(default=None)
    message_id: Mapped[BigInt | None] = mapped_column(default=None)
    error: Mapped[str | None] = mapped_column(default=None)


class ChatRow(Base):
    """A chat; that of a user has the user's id, and holds what was decided of them.

    `is_reachable` is None until somebody writes there. `access` is an admin's decision;
    `is_introduced` tells that admins were asked for it.
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
    """One row: a counter of changes of the documents, new chunks included."""

    __tablename__ = "library"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    changes: Mapped[int]


class ChunkRow(Base):
    """A chunk of a document.

    Its number is given by the counter of the library, and to no other chunk ever again. `vector` is
    its embedding by a `model`, of length 1, 4 bytes a number.
    """

    __tablename__ = "chunks"
    __table_args__ = (
        sa.Index(None, "document_id", "position", unique=True),
        sa.Index(None, "model", "number"),
    )

    number: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[str] = mapped_column(sa.ForeignKey("documents.id", ondelete="CASCADE"))
    position: Mapped[int]
    headings: Mapped[list[str]]
    text: Mapped[str]
    model: Mapped[str | None]
    vector: Mapped[bytes | None]


class TurnRow(MappedAsDataclass, Base, kw_only=True):
    """A turn; its id is that of its update. Money is US dollars, times are seconds.

    `verdict`, `reason` and `comment` are the user's feedback; the verdict is None if there is none,
    or it was retracted.
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


class FactRow(MappedAsDataclass, Base, kw_only=True):
    """A fact that a user stated about themselves, or that follows from their verdict on a turn.

    `turn_id` is the rated turn, 0 for a stated fact; `said` holds the user's words. A fact of the
    kind "safety" holds in one chat, `until` a time if there is one. A fact of the kind "undo" is a
    change that can be undone, as JSON, by its id.
    """

    __tablename__ = "facts"

    user_id: Mapped[Key]
    kind: Mapped[TextKey]
    value: Mapped[TextKey]
    turn_id: Mapped[Key] = mapped_column(default=0)
    chat_id: Mapped[Key] = mapped_column(default=0)
    said: Mapped[str] = mapped_column(default="")
    at: Mapped[datetime]
    until: Mapped[datetime | None] = mapped_column(default=None)


class BottleRow(Base):
    """Bottles of one wine that a user owns, or did; `key` is its label, folded."""

    __tablename__ = "bottles"
    __table_args__ = (sa.UniqueConstraint("user_id", "key"),)

    id: Mapped[Counter]
    user_id: Mapped[BigInt]
    key: Mapped[str]
    wine: Mapped[dict[str, Any]]
    count: Mapped[int]
    drink_from: Mapped[int | None]
    drink_until: Mapped[int | None]
    note: Mapped[str]
    at: Mapped[datetime]


class DeletionRow(Base):
    """A user to be forgotten wherever traces of them are; `user` is their hash in these."""

    __tablename__ = "deletions"

    user: Mapped[TextKey]
    at: Mapped[datetime]
    due_at: Mapped[datetime]
    tries: Mapped[int]


class BroadcastRow(Base):
    """A message of an admin to everyone, until it is sent to all."""

    __tablename__ = "broadcasts"

    id: Mapped[Counter]
    text: Mapped[str]
    created_by: Mapped[BigInt]
    state: Mapped[str]


class TraceRow(Base):
    """A trace of the local store: what a list shows and filters, and the whole as packed JSON.

    One that is `waiting` is sent when it is `due_at`.
    """

    __tablename__ = "traces"
    __table_args__ = (
        sa.Index("ix_traces_waiting", "due_at", sqlite_where=NOT_SENT, postgresql_where=NOT_SENT),
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
    record: Mapped[bytes]


class ScoreRow(Base):
    """A score of a trace; without a value it was taken back. A `waiting` one is sent when due."""

    __tablename__ = "scores"
    __table_args__ = (
        sa.Index("ix_scores_waiting", "due_at", sqlite_where=NOT_SENT, postgresql_where=NOT_SENT),
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


def utc_now() -> datetime:
    """Return this moment, in UTC."""
    return datetime.now(UTC)


def to_record(kind: type[T], row: sa.Row[Any], **others: object) -> T:
    """Return the record that a row holds; `others` are the fields that are not columns of it."""
    wanted = {item.name for item in fields(cast("Any", kind))}
    columns = {name: value for name, value in row._mapping.items() if name in wanted}
    lists = {name: tuple(value) for name, value in columns.items() if isinstance(value, list)}
    return kind(**columns | lists | others)


def _insert(session: AsyncSession, model: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """Return an insert of this database, which may handle conflicts with stored rows."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(model.__table__)
    return postgresql.insert(model.__table__)


async def insert_new(session: AsyncSession, *rows: Base) -> int:
    """Insert rows that conflict with no stored ones; return how many there are."""
    if not rows:
        return 0
    statement = _insert(session, type(rows[0])).on_conflict_do_nothing()
    result = await session.execute(statement, [_set_columns(row) for row in rows])
    return cast("sa.CursorResult[Any]", result).rowcount


async def upsert(session: AsyncSession, *rows: Base, key: str = "") -> None:
    """Insert rows. A row that is stored keeps only the columns that the new one does not set.

    It is known by its primary key, or by the column `key`.
    """
    if not rows:
        return
    statement, values = _insert(session, type(rows[0])), [_set_columns(row) for row in rows]
    keys = [key] if key else rows[0].__table__.primary_key.columns.keys()
    changed = {name: statement.excluded[name] for name in values[0] if name not in keys}
    await session.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=changed), values
    )


def _set_columns(row: Base) -> dict[str, object]:
    return {name: value for name, value in vars(row).items() if name in row.__table__.columns}

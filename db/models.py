"""The tables. Rows are what is stored; what others see is in `agent`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from db import admin_models  # noqa: F401 - its tables belong to the schema too
from db.base import Base as Base  # noqa: PLC0414 - with all tables, whoever takes it from here
from db.base import UtcDateTime, Vector

FULL_TEXT: Final = "wines_fts"
"""The full-text index: a virtual table in SQLite, a generated column in Postgres. Only migrations
know how it is made; comparisons of schema and models leave out every name that starts with it."""

CHUNKS_FULL_TEXT: Final = "chunks_fts"
"""The full-text index of the documents: a virtual table in SQLite, a table of postings in Postgres.
Triggers keep both in step with the chunks."""
FULL_TEXTS: Final = (FULL_TEXT, CHUNKS_FULL_TEXT)


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

    price_in_euros: Mapped[float | None] = mapped_column(index=True)
    country_key: Mapped[str] = mapped_column(String, index=True)
    places: Mapped[str]
    shuffle: Mapped[int] = mapped_column(BigInteger)
    search_text: Mapped[str]

    grapes: Mapped[list["WineGrapeRow"]] = relationship(
        order_by="WineGrapeRow.position", viewonly=True
    )
    foods: Mapped[list["WineFoodRow"]] = relationship(
        order_by="WineFoodRow.position", viewonly=True
    )
    allergens: Mapped[list["WineAllergenRow"]] = relationship(
        order_by="WineAllergenRow.position", viewonly=True
    )


class WineGrapeRow(Base):
    """A grape of a wine; `grape_key` is the same for all names of one grape."""

    __tablename__ = "wine_grapes"
    __table_args__ = (Index(None, "grape_key", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    grape: Mapped[str]
    grape_key: Mapped[str]


class WineFoodRow(Base):
    """A food that a wine suits."""

    __tablename__ = "wine_foods"
    __table_args__ = (Index(None, "food", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    food: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class WineAllergenRow(Base):
    """An allergen that a wine contains."""

    __tablename__ = "wine_allergens"
    __table_args__ = (Index(None, "allergen", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    allergen: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class MessageRow(Base):
    """One message of a chat."""

    __tablename__ = "messages"
    __table_args__ = (Index(None, "chat_id", "id"), UniqueConstraint("turn_id", "role"))

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    role: Mapped[str]
    content: Mapped[str]
    wine_ids: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    turn_id: Mapped[int | None] = mapped_column(BigInteger)


class UpdateRow(Base):
    """An accepted update; its payload is emptied when it is done.

    `turn_id` is the update whose turn took it, `progress` the steps that were recorded when its
    turn was last begun, `retries` how often an operator had it tried again.
    """

    __tablename__ = "updates"
    __table_args__ = (Index(None, "chat_id", "state"), Index(None, "state", "received_at"))

    update_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    message_id: Mapped[int | None] = mapped_column(BigInteger)
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    received_at: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[str]
    turn_id: Mapped[int | None] = mapped_column(BigInteger)
    tries: Mapped[int] = mapped_column(default=0)
    progress: Mapped[int] = mapped_column(default=0)
    retries: Mapped[int] = mapped_column(default=0)
    error: Mapped[str | None]


class ChatRow(Base):
    """What was learned of a chat while sending to it."""

    __tablename__ = "chats"

    chat_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    unreachable_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    unreachable_reason: Mapped[str | None]
    migrated_to: Mapped[int | None] = mapped_column(BigInteger)


class DocumentRow(Base):
    """A document of the knowledge base. `length` is the number of terms in all its chunks."""

    __tablename__ = "documents"

    id: Mapped[str] = mapped_column(String, primary_key=True)
    path: Mapped[str] = mapped_column(String, unique=True)
    title: Mapped[str]
    kind: Mapped[str]
    content_hash: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    parts: Mapped[int]
    length: Mapped[int]
    added_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ChunkRow(Base):
    """A chunk of a document, with the terms that it is found by, separated by spaces."""

    __tablename__ = "chunks"
    __table_args__ = (Index(None, "document_id", "position", unique=True),)

    # As with wines, SQLite's full-text index needs an integer that survives VACUUM.
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    position: Mapped[int]
    headings: Mapped[list[str]] = mapped_column(JSON)
    text: Mapped[str]
    heading_terms: Mapped[str]
    text_terms: Mapped[str]


class ChunkVectorRow(Base):
    """What a chunk means to an embedding model: a vector of length 1 and the signs in it."""

    __tablename__ = "chunk_vectors"
    __table_args__ = (Index(None, "model", "dimensions"),)

    chunk: Mapped[int] = mapped_column(
        ForeignKey("chunks.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    model: Mapped[str]
    dimensions: Mapped[int]
    signs: Mapped[bytes]
    vector: Mapped[Sequence[float]] = mapped_column(Vector)

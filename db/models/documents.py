"""The tables of the library: documents and their chunks."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, BigInt, TextKey


class DocumentRow(Base):
    """A document of the library. `parts` is the number of its chunks."""

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
    """A single row, whose counter grows with each change of documents and each new chunk."""

    __tablename__ = "library"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    changes: Mapped[int]


class ChunkRow(Base):
    """A chunk of a document.

    `number` comes from the counter of the library, and is never used again. `vector` is the
    embedding by `model`: floats of 4 bytes, with the length 1.
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

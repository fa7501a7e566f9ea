"""The documents over SQL."""

import asyncio
import hashlib
import logging
import struct
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import (
    BindParameter,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.passages import Chunk, StoredDocument
from agent.documents.vectors import Embedder, EmbeddingError, embed
from agent.text import storable
from db.documents.chunking import chunk
from db.documents.reading import Document
from db.engine import Sessions, count_rows
from db.models import ChunkRow, DocumentRow, loaded, table_of, utc_now

if TYPE_CHECKING:
    from db.documents.finding import ChunkIndex

Fate = Literal["added", "updated", "unchanged"]
Values = dict[str, object]

CANDIDATES: Final = 50
"""Chunks that each ranking offers at least."""
SEARCH_SECONDS: Final = 5.0
INDEX_SECONDS: Final = 60.0
"""The time limit of the embedding source for a question, and for a batch of chunks."""
MAX_REFUSED: Final = 3
"""Chunks that the embedding source may refuse one after another before it counts as down."""
BATCH: Final = 64
"""Texts sent to the embedding source at once."""
_CHANGE: Final = text("""
    INSERT INTO library (id, changes) VALUES (1, :count)
    ON CONFLICT (id) DO UPDATE SET changes = library.changes + :count RETURNING changes
""")

_SET_VECTOR: Final = (
    update(table_of(ChunkRow))
    .where(table_of(ChunkRow).c.number == bindparam("of"))
    .values(model=bindparam("model"), vector=bindparam("vector"))
)

logger = logging.getLogger(__name__)


class SqlDocumentStore:
    """The documents of a database, a `DocumentStore`.

    With an `embedder`, chunks are also found by meaning; while it fails, by their words only.
    """

    def __init__(
        self,
        sessions: Sessions,
        embedder: Embedder | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._sessions = sessions
        self._embedder = embedder
        self._now = now
        self._opened_index: ChunkIndex | None = None
        self._embedder_failed = False

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        asked = list(dict.fromkeys(storable(query) for query in queries if query.strip()))
        if not asked or limit < 1:
            return []
        vectors = await self._vectors_of(asked, SEARCH_SECONDS)
        index = await self._index()
        scores = await index.search(asked, self._model, vectors, max(CANDIDATES, limit * 5))
        async with self._sessions() as session:
            return await _best_chunks(session, scores, limit)

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        wanted = {path for path in paths if path == storable(path)}
        known = select(DocumentRow.path).where(DocumentRow.path.in_(wanted))
        async with self._sessions() as session:
            return set(await session.scalars(known))

    async def count(self) -> int:
        count = select(func.count(DocumentRow.id))
        async with self._sessions() as session:
            return await session.scalar(count) or 0

    async def documents(self) -> list[StoredDocument]:
        rows = select(table_of(DocumentRow))
        async with self._sessions() as session:
            documents = [loaded(StoredDocument, row) for row in await session.execute(rows)]
        return sorted(documents, key=lambda document: document.path)

    async def hashes(self) -> dict[str, str]:
        """Return the content hash of every document by its path."""
        rows = select(DocumentRow.path, DocumentRow.content_hash)
        async with self._sessions() as session:
            return dict((await session.execute(rows)).all())

    async def remove(self, path: str) -> int:
        """Remove the document at `path`, or all below it, and return their number."""
        wanted = storable(path).rstrip("/")
        if not wanted:
            return 0
        below = DocumentRow.path.startswith(f"{wanted}/", autoescape=True)
        statement = delete(DocumentRow).where(or_(DocumentRow.path == wanted, below))
        async with self._sessions.begin() as session:
            await count_change(session)
            return await count_rows(session, statement)

    async def save(self, *documents: Document) -> list[Fate]:
        """Store documents with their chunks in place of older versions: all of them, or none.

        Return the fate of each document, in order. No two may have one path.
        """
        now = self._now()
        rows = await asyncio.to_thread(lambda: [_rows_of(item, now) for item in documents])
        async with self._sessions.begin() as session:
            return [await _save(session, *row) for row in rows]

    async def embed_missing(self) -> int:
        """Give a vector to each chunk without one of this model, and return how many got one.

        What the embedding source refuses, or all if it fails, waits for the next call.
        """
        done = last = 0
        while self._embedder is not None:
            wanted = _without_vector(self._model, last)
            async with self._sessions() as session:
                rows = (await session.execute(wanted)).all()
            vectors = await self._embedded([_embedded_text(row) for row in rows])
            found = {
                row.number: vector
                for row, vector in zip(rows, vectors, strict=False)
                if vector is not None
            }
            if not found:
                break
            await self._save_vectors(found)
            done, last = done + len(found), rows[-1].number
        return done

    async def _save_vectors(self, vectors: dict[int, list[float]]) -> None:
        """Store vectors by the numbers of their chunks, in place of other models' vectors."""
        rows = [
            {"of": number, "model": self._model, "vector": struct.pack(f"<{len(vector)}f", *vector)}
            for number, vector in vectors.items()
        ]
        async with self._sessions.begin() as session:
            await count_change(session)
            await session.execute(_SET_VECTOR, rows)

    async def _embedded(self, texts: Sequence[str]) -> Sequence[list[float] | None]:
        """Return the vectors of texts; None for a text that the source refuses by itself."""
        if (vectors := await self._vectors_of(texts, INDEX_SECONDS)) or not texts:
            return vectors
        found: list[list[float] | None] = []
        for text_ in texts:
            one = await self._vectors_of([text_], SEARCH_SECONDS)
            found.append(one[0] if one else None)
            if len(found) == MAX_REFUSED and not any(found):
                break
        return found

    async def _vectors_of(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return the vectors of the texts, or none at all; a failure is logged once."""
        if self._embedder is None or not texts:
            return []
        try:
            vectors = await embed(self._embedder, texts, seconds)
        except EmbeddingError as error:
            if not self._embedder_failed:
                logger.warning("Documents are searched by words only: %s", error)
            self._embedder_failed = True
            return []
        self._embedder_failed = False
        return vectors

    async def _index(self) -> "ChunkIndex":
        if self._opened_index is None:
            self._opened_index = await asyncio.to_thread(_new_index, self._sessions)
        return self._opened_index

    @property
    def _model(self) -> str:
        return self._embedder.name if self._embedder else ""


def _new_index(sessions: Sessions) -> "ChunkIndex":
    from db.documents.finding import ChunkIndex  # noqa: PLC0415 - numpy, when first needed

    return ChunkIndex(sessions)


async def count_change(session: AsyncSession, chunks: int = 0) -> int:
    """Count a change of the documents; return the number for the first of `chunks` new chunks.

    This comes first in a transaction: until it ends, nobody else can change documents.
    """
    changes: int = await session.scalar(_CHANGE, {"count": chunks + 1})
    return changes - chunks


def document_id(path: str) -> str:
    """Return the id of the document at `path`: stable, and short enough for a model to repeat."""
    return hashlib.sha256(path.encode()).hexdigest()[:12]


def _rows_of(document: Document, now: datetime) -> tuple[Values, list[Values]]:
    """Return the row of a document and of its chunks, which have no numbers yet."""
    owner, pieces = document_id(document.path), chunk(document.sections)
    row: Values = {
        "id": owner,
        "path": document.path,
        "title": document.title,
        "kind": document.kind,
        "content_hash": document.hash,
        "size": document.size,
        "parts": len(pieces),
        "added_at": now,
    }
    return row, [
        {
            "document_id": owner,
            "position": position,
            "headings": list(piece.headings),
            "text": piece.text,
        }
        for position, piece in enumerate(pieces, 1)
    ]


async def _save(session: AsyncSession, row: Values, chunks: list[Values]) -> Fate:
    first = await count_change(session, len(chunks))
    same_path = DocumentRow.id == row["id"]
    stored = await session.scalar(select(DocumentRow.content_hash).where(same_path))
    if stored == row["content_hash"]:
        return "unchanged"
    await session.execute(delete(DocumentRow).where(same_path))
    await session.execute(insert(table_of(DocumentRow)), row)
    numbered = [values | {"number": number} for number, values in enumerate(chunks, first)]
    await session.execute(insert(table_of(ChunkRow)), numbered)
    return "added" if stored is None else "updated"


def _without_vector(model: str, after: int) -> Select[*tuple[Any, ...]]:
    """Select the next chunks, by their numbers, that have no vector of this model."""
    return (
        select(ChunkRow.number, DocumentRow.title, ChunkRow.headings, ChunkRow.text)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(ChunkRow.model.is_distinct_from(model), ChunkRow.number > after)
        .order_by(ChunkRow.number)
        .limit(BATCH)
    )


def _embedded_text(row: Row[*tuple[Any, ...]]) -> str:
    return "\n".join([row.title, *row.headings, row.text])


_NUMBERS: Final[BindParameter[int]] = bindparam("numbers", expanding=True)
_IS_OF_DOCUMENT: Final = DocumentRow.id == ChunkRow.document_id
_SOURCES: Final = (
    select(ChunkRow.number, ChunkRow.position, DocumentRow.id, DocumentRow.content_hash)
    .join(DocumentRow, _IS_OF_DOCUMENT)
    .where(ChunkRow.number.in_(_NUMBERS))
)
_COLUMNS: Final = (
    *(ChunkRow.number, ChunkRow.document_id, ChunkRow.position, ChunkRow.headings, ChunkRow.text),
)
_CHUNKS: Final = (
    select(*_COLUMNS, DocumentRow.path, DocumentRow.title, DocumentRow.parts)
    .join(DocumentRow, _IS_OF_DOCUMENT)
    .where(ChunkRow.number.in_(_NUMBERS))
)


async def _best_chunks(session: AsyncSession, scores: dict[int, float], limit: int) -> list[Chunk]:
    """Return the best of the chunks with these scores, without copies of others."""
    from db.documents.finding import spread  # noqa: PLC0415 - numpy, when first needed

    sources = await session.execute(_SOURCES, {"numbers": list(scores)})
    found = {row.number: row for row in sources}
    first: dict[tuple[str, int], int] = {}
    for number in filter(found.__contains__, scores):
        # A file at two paths would take the place of another answer.
        first.setdefault((found[number].content_hash, found[number].position), number)
    best = spread(list(first.values()), limit, lambda number: found[number].id)
    rows = {row.number: row for row in await session.execute(_CHUNKS, {"numbers": best})}
    return [_to_chunk(rows[number], scores[number]) for number in best if number in rows]


def _to_chunk(row: Row[*tuple[Any, ...]], score: float) -> Chunk:
    return Chunk(
        id=f"{row.document_id}-{row.position}",
        document_id=row.document_id,
        path=row.path,
        title=row.title,
        headings=tuple(row.headings),
        position=row.position,
        parts=row.parts,
        text=row.text,
        score=score,
    )

"""The documents over SQL."""

import asyncio
import hashlib
import logging
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import Connection, delete, exists, func, or_, select, text, tuple_

from agent.documents.passages import Chunk, StoredDocument
from agent.documents.vectors import Embedder, EmbeddingError, embed
from agent.text import storable
from db.documents.chunking import Piece, chunk, postings
from db.documents.reading import Document
from db.engine import Sessions, take_turns
from db.models import (
    ChunkRow,
    ChunkVectorRow,
    DocumentRow,
    insert_into,
    loaded,
    table_of,
    utc_now,
)

if TYPE_CHECKING:
    from db.documents.retrieval import Retrieval

Fate = Literal["added", "updated", "unchanged"]
Row = dict[str, object]

CANDIDATES: Final = 50
"""Chunks that each ranking offers at least; more when more are asked for."""
SEARCH_SECONDS: Final = 5.0
INDEX_SECONDS: Final = 60.0
"""How long the embedding source may take for a question, and for a batch of chunks."""
MOST_REFUSED: Final = 3
"""Chunks that the embedding source may refuse one after another before it counts as down."""
BATCH: Final = 64
"""Texts sent to the embedding source at once."""
RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion, from Cormack, Clarke and Buettcher (2009)."""
MAX_PER_DOCUMENT: Final = 3
_CHANGE: Final = text("""
    INSERT INTO library (id, changes) VALUES (1, :count)
    ON CONFLICT (id) DO UPDATE SET changes = library.changes + :count RETURNING changes
""")
LOCK: Final = 7_303_015
"""Any number that nothing else locks on this database."""

logger = logging.getLogger(__name__)


class SqlDocumentStore:
    """Fulfils `agent.repositories.DocumentStore` on SQLite and Postgres alike.

    With an `embedder` chunks are also found by meaning; while it fails, by their words only.
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
        self._opened: Retrieval | None = None
        self._embedder_failed = False

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        asked = list(dict.fromkeys(storable(query) for query in queries if query.strip()))
        if not asked or limit < 1:
            return []
        candidates = max(CANDIDATES, limit * 5)
        vectors = await self._vectors_of(asked, SEARCH_SECONDS)
        retrieval = await self._retrieval()
        rankings = await retrieval.by_words(asked, candidates)
        rankings += await retrieval.by_meaning(self._model, vectors, candidates)
        scores = dict(fuse(rankings))
        documents = await retrieval.sources(list(scores))
        ranked = [number for number in scores if number in documents]
        best = spread(ranked, limit, documents.__getitem__)
        return await retrieval.chunks({number: scores[number] for number in best})

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        wanted = {path for path in paths if path == storable(path)}
        known = select(DocumentRow.path).where(DocumentRow.path.in_(wanted))
        return await self._sessions.read(lambda on: set(on.scalars(known)))

    async def count(self) -> int:
        return await self._sessions.read(
            lambda on: on.scalar(select(func.count(DocumentRow.id))) or 0
        )

    async def documents(self) -> list[StoredDocument]:
        rows = select(table_of(DocumentRow))
        documents = await self._sessions.read(
            lambda on: [loaded(StoredDocument, row) for row in on.execute(rows)]
        )
        return sorted(documents, key=lambda document: document.path)

    async def hashes(self) -> dict[str, str]:
        """The content hash of every document, by path."""
        rows = select(DocumentRow.path, DocumentRow.content_hash)
        return await self._sessions.read(lambda on: dict(on.execute(rows).all()))

    async def remove(self, path: str) -> int:
        """Forget the document at `path`, or all below it; how many there were."""
        wanted = storable(path).rstrip("/")
        if not wanted:
            return 0
        below = DocumentRow.path.startswith(f"{wanted}/", autoescape=True)
        these = delete(DocumentRow).where(or_(DocumentRow.path == wanted, below))

        def write(on: Connection) -> int:
            take_turns(on, LOCK)
            if count := on.execute(these).rowcount:
                change(on)
            return count

        return await self._sessions.write(write)

    async def save(self, *documents: Document) -> list[Fate]:
        """Store documents and their chunks in place of older versions: all of them, or none.

        What became of each, in order. No path may be there twice. Commits.
        """
        made = await asyncio.to_thread(lambda: [_to_rows(each, self._now()) for each in documents])
        rows = [row for row, _ in made]

        def write(on: Connection) -> list[Fate]:
            take_turns(on, LOCK)
            updated, known = _forget_older(on, rows)
            new = [each for each in made if each[0]["id"] not in known]
            if new:
                added = [chunk for _, chunks in new for chunk in chunks]
                first = change(on, len(added))
                numbered = [each | {"number": at} for at, each in enumerate(added, first)]
                on.execute(insert_into(on, DocumentRow), [row for row, _ in new])
                on.execute(insert_into(on, ChunkRow), numbered)
            return [_fate(str(row["id"]), updated, known) for row in rows]

        return await self._sessions.write(write)

    async def embed_missing(self, progress: Callable[[int], None] | None = None) -> int:
        """Give a vector to every chunk that has none of this model; how many now have one.

        `progress` is called with the number done so far. Without an embedding source nothing is
        done; when it fails, what is missing waits for the next call.
        """
        done = last = 0
        while self._embedder is not None:
            missing = await self._sessions.read(partial(without_vectors, self._model, BATCH, last))
            found = await self._embedded(missing)
            if not found:
                break
            await self._sessions.write(partial(save_vectors, self._model, found))
            done, last = done + len(found), missing[-1][0]
            if progress:
                progress(done)
        return done

    async def _embedded(
        self, missing: Sequence[tuple[int, str]]
    ) -> list[tuple[int, Sequence[float]]]:
        """Chunks with their vectors, but those that the source refuses by themselves.

        One that is too long for it must not keep all others from theirs.
        """
        vectors = await self._vectors_of([text for _, text in missing], INDEX_SECONDS)
        if vectors or not missing:
            return list(zip((number for number, _ in missing), vectors, strict=True))
        found: list[tuple[int, Sequence[float]]] = []
        for refused, (number, said) in enumerate(missing):
            if refused == MOST_REFUSED and not found:
                return []
            one = await self._vectors_of([said], SEARCH_SECONDS)
            found += [(number, vector) for vector in one]
        return found

    async def _retrieval(self) -> "Retrieval":
        if self._opened is None:
            self._opened = await asyncio.to_thread(_retrieval_of, self._sessions)
        return self._opened

    @property
    def _model(self) -> str:
        return self._embedder.name if self._embedder else ""

    async def _vectors_of(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Vectors of the texts, or none at all; a failure is logged once until it is over."""
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


def document_id(path: str) -> str:
    """The id of the document at `path`: always the same, short enough for a model to repeat."""
    return hashlib.sha256(path.encode()).hexdigest()[:12]


def _forget_older(on: Connection, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Delete older versions; the ids of these, and of documents that are there as they are."""
    ids = [row["id"] for row in rows]
    versions = [(row["id"], row["content_hash"]) for row in rows]
    outdated = tuple_(DocumentRow.id, DocumentRow.content_hash).not_in(versions)
    # A write comes first: in SQLite it is what takes the lock before anything is read.
    gone = delete(DocumentRow).where(DocumentRow.id.in_(ids), outdated).returning(DocumentRow.id)
    updated = set(on.scalars(gone))
    return updated, set(on.scalars(select(DocumentRow.id).where(DocumentRow.id.in_(ids))))


def _fate(document: str, updated: Collection[str], known: Collection[str]) -> Fate:
    if document in known:
        return "unchanged"
    return "updated" if document in updated else "added"


def _to_rows(document: Document, now: datetime) -> tuple[Row, list[Row]]:
    """A document and its chunks, which have no numbers yet."""
    owner, pieces = document_id(document.path), chunk(document.sections)
    row: Row = {
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
        _to_chunk_row(owner, document.title, position, piece)
        for position, piece in enumerate(pieces, 1)
    ]


def _to_chunk_row(owner: str, title: str, position: int, piece: Piece) -> Row:
    return {
        "document_id": owner,
        "position": position,
        "headings": list(piece.headings),
        "text": piece.text,
        "postings": postings(" ".join([title, *piece.headings]), piece.text),
    }


def _retrieval_of(sessions: Sessions) -> "Retrieval":
    from db.documents.retrieval import Retrieval  # noqa: PLC0415 - numpy, when first needed

    return Retrieval(sessions)


def change(on: Connection, chunks: int = 0) -> int:
    """Tell every process that documents change; return the number of the first of new chunks.

    Whoever changes documents has the lock of the store until the transaction ends.
    """
    changes: int = on.scalar(_CHANGE, {"count": chunks + 1})
    return changes - chunks


def fuse(rankings: Iterable[Sequence[int]]) -> list[tuple[int, float]]:
    """Merge rankings: items with their scores, best first.

    An item scores 1 / (60 + its rank) in each ranking; equals keep the order of the smaller number.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))


def spread(ranked: Sequence[int], limit: int, document_of: Callable[[int], str]) -> list[int]:
    """Take the first `limit` items, few of a document unless nothing else matches."""
    taken: Counter[str] = Counter()
    chosen: list[int] = []
    spare: list[int] = []
    for item in ranked:
        document = document_of(item)
        taken[document] += 1
        (chosen if taken[document] <= MAX_PER_DOCUMENT else spare).append(item)
    kept = {*chosen[:limit], *spare[: max(limit - len(chosen), 0)]}
    return [item for item in ranked if item in kept]


def without_vectors(model: str, limit: int, after: int, on: Connection) -> list[tuple[int, str]]:
    """Find at most `limit` chunks that `model` has not seen: numbers, and the texts to see.

    In order, from the first number above `after`.
    """
    seen = exists().where(ChunkVectorRow.chunk == ChunkRow.number, ChunkVectorRow.model == model)
    wanted = (
        select(ChunkRow.number, DocumentRow.title, ChunkRow.headings, ChunkRow.text)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(~seen, ChunkRow.number > after)
        .order_by(ChunkRow.number)
        .limit(limit)
    )
    rows = on.execute(wanted)
    return [(row.number, "\n".join([row.title, *row.headings, row.text])) for row in rows]


def save_vectors(
    model: str, vectors: Sequence[tuple[int, Sequence[float]]], on: Connection
) -> None:
    """Store the vectors of chunks, each instead of any that another model gave."""
    take_turns(on, LOCK)
    change(on)
    numbers = [number for number, _ in vectors]
    on.execute(delete(ChunkVectorRow).where(ChunkVectorRow.chunk.in_(numbers)))
    present = set(on.scalars(select(ChunkRow.number).where(ChunkRow.number.in_(numbers))))
    rows = [
        {
            "chunk": number,
            "model": model,
            "dimensions": len(vector),
            "vector": struct.pack(f"<{len(vector)}f", *vector),
        }
        for number, vector in vectors
        if number in present
    ]
    if rows:
        on.execute(insert_into(on, ChunkVectorRow), rows)

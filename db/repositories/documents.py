"""The documents over SQL."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import delete, func, insert, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.passages import Chunk, Embedder, StoredDocument
from db.documents.chunking import Piece, chunk, postings
from db.documents.reading import Document
from db.documents.retrieval import (
    BATCH,
    EmbeddingError,
    Retrieval,
    change,
    embed,
    fuse,
    save_vectors,
    spread,
    without_vectors,
)
from db.engine import Sessions, take_turns
from db.models import ChunkRow, DocumentRow, record_of, storable, utc_now

Fate = Literal["added", "updated", "unchanged"]
Row = dict[str, object]

CANDIDATES: Final = 50
"""Chunks that each ranking offers at least; more when more are asked for."""
SEARCH_SECONDS: Final = 5.0
INDEX_SECONDS: Final = 60.0
"""How long the embedding source may take for a question, and for a batch of chunks."""
MOST_REFUSED: Final = 3
"""Chunks that the embedding source may refuse one after another before it counts as down."""
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
        self._retrieval = Retrieval(sessions)
        self._embedder_failed = False

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        asked = list(dict.fromkeys(storable(query) for query in queries if query.strip()))
        if not asked or limit < 1:
            return []
        candidates = max(CANDIDATES, limit * 5)
        vectors = await self._vectors_of(asked, SEARCH_SECONDS)
        rankings = await self._retrieval.by_words(asked, candidates)
        rankings += await self._retrieval.by_meaning(self._model, vectors, candidates)
        scores = dict(fuse(rankings))
        documents = await self._retrieval.sources(list(scores))
        ranked = [number for number in scores if number in documents]
        best = spread(ranked, limit, documents.__getitem__)
        return await self._retrieval.chunks({number: scores[number] for number in best})

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        wanted = {path for path in paths if path == storable(path)}
        known = select(DocumentRow.path).where(DocumentRow.path.in_(wanted))
        async with self._sessions() as session:
            return set(await session.scalars(known))

    async def count(self) -> int:
        async with self._sessions() as session:
            return await session.scalar(select(func.count(DocumentRow.id))) or 0

    async def documents(self) -> list[StoredDocument]:
        async with self._sessions() as session:
            rows = await session.scalars(select(DocumentRow).order_by(DocumentRow.path))
            documents = [record_of(StoredDocument, row) for row in rows]
        return sorted(documents, key=lambda document: document.path)

    async def hashes(self) -> dict[str, str]:
        """The content hash of every document, by path."""
        async with self._sessions() as session:
            rows = await session.execute(select(DocumentRow.path, DocumentRow.content_hash))
            return dict(rows.all())

    async def remove(self, path: str) -> int:
        """Forget the document at `path`, or all below it; how many there were."""
        wanted = storable(path).rstrip("/")
        if not wanted:
            return 0
        below = DocumentRow.path.startswith(f"{wanted}/", autoescape=True)
        async with self._sessions.begin() as session:
            await session.run_sync(take_turns, LOCK)
            gone = await session.scalars(
                delete(DocumentRow)
                .where(or_(DocumentRow.path == wanted, below))
                .returning(DocumentRow.id)
            )
            if count := len(gone.all()):
                await change(session)
            return count

    async def save(self, *documents: Document) -> list[Fate]:
        """Store documents and their chunks in place of older versions: all of them, or none.

        What became of each, in order. No path may be there twice. Commits.
        """
        made = await asyncio.to_thread(lambda: [_to_rows(each, self._now()) for each in documents])
        rows = [row for row, _ in made]
        async with self._sessions.begin() as session:
            await session.run_sync(take_turns, LOCK)
            updated, known = await _forget_older(session, rows)
            new = [each for each in made if each[0]["id"] not in known]
            if new:
                added = [chunk for _, chunks in new for chunk in chunks]
                first = await change(session, len(added))
                for number, each in enumerate(added, first):
                    each["number"] = number
                await session.execute(insert(DocumentRow), [row for row, _ in new])
                await session.execute(insert(ChunkRow), added)
        return [_fate(str(row["id"]), updated, known) for row in rows]

    async def embed_missing(self, progress: Callable[[int], None] | None = None) -> int:
        """Give a vector to every chunk that has none of this model; how many now have one.

        `progress` is called with the number done so far. Without an embedding source nothing is
        done; when it fails, what is missing waits for the next call.
        """
        done = last = 0
        while self._embedder is not None:
            async with self._sessions() as session:
                missing = await without_vectors(session, self._model, BATCH, after=last)
            found = await self._embedded(missing)
            if not found:
                break
            async with self._sessions.begin() as session:
                await session.run_sync(take_turns, LOCK)
                await change(session)
                await save_vectors(session, self._model, found)
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


async def _forget_older(session: AsyncSession, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
    """Delete older versions; the ids of these, and of documents that are there as they are."""
    ids = [row["id"] for row in rows]
    versions = [(row["id"], row["content_hash"]) for row in rows]
    outdated = tuple_(DocumentRow.id, DocumentRow.content_hash).not_in(versions)
    # A write comes first: in SQLite it is what takes the lock before anything is read.
    gone = await session.scalars(
        delete(DocumentRow).where(DocumentRow.id.in_(ids), outdated).returning(DocumentRow.id)
    )
    updated = set(gone.all())
    return updated, set(
        await session.scalars(select(DocumentRow.id).where(DocumentRow.id.in_(ids)))
    )


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

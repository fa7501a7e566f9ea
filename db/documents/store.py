"""The documents of a database: add files and folders, and find their chunks.

Only what changed is indexed again.
"""

import asyncio
import hashlib
import logging
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import Row, bindparam, delete, func, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.embedding import Embedder, EmbeddingError
from agent.documents.passages import Chunk
from agent.text import strip_unstorable
from db.documents.chunking import Section, chunk
from db.documents.reading import Document, content_hash, read_bytes, read_document
from db.engine import SqlRepository, count_changed
from db.models import ChunkRow, DocumentRow, to_record
from db.tables import Unreadable

if TYPE_CHECKING:
    from db.documents.finding import ChunkIndex

Fate = Literal["added", "updated", "unchanged"]

CANDIDATES: Final = 50
"""The number of the best chunks from which a search chooses."""
MAX_PER_DOCUMENT: Final = 3
SEARCH_SECONDS: Final = 5.0
INDEX_SECONDS: Final = 60.0
"""The time limit of the embedding source for a question, and for a batch of chunks."""
MAX_REFUSED: Final = 3
"""Batches that the embedding source may refuse one after another before it counts as down."""
BATCH: Final = 32
"""Texts sent to the embedding source at once."""
STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
CHUNKS: Final = ChunkRow.__table__
_CHANGE: Final = text("""
    INSERT INTO library (id, changes) VALUES (1, :count)
    ON CONFLICT (id) DO UPDATE SET changes = library.changes + :count RETURNING changes
""")
_WITH_DOCUMENT: Final = select(
    CHUNKS, DocumentRow.path, DocumentRow.title, DocumentRow.parts, DocumentRow.content_hash
).join(DocumentRow, DocumentRow.id == ChunkRow.document_id)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class AddReport:
    """The paths of all files by what became of them, and the number of chunks given a vector.

    `problems` are the paths of files that were not read, each with the reason; `notes` those of
    files that may not have been read well.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    embedded: int = 0


@dataclass(eq=False)
class SqlDocumentStore(SqlRepository):
    """The documents of a database, a `DocumentStore`.

    With an `embedder`, chunks are also found by meaning; while it fails, by their words only.
    """

    embedder: Embedder | None = None
    _index: "ChunkIndex | None" = None
    _embedder_failed: bool = False

    @property
    def _model(self) -> str:
        return self.embedder.name if self.embedder else ""

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        asked = list(dict.fromkeys(strip_unstorable(query) for query in queries if query.strip()))
        if not asked or limit < 1:
            return []
        if self._index is None:
            finding = await asyncio.to_thread(import_module, "db.documents.finding")  # slow
            self._index = finding.ChunkIndex(self.sessions, self._model)
        vectors = await self._vectors_of(asked, SEARCH_SECONDS)
        best = await self._index.search(asked, vectors, CANDIDATES)
        rows = await self._rows(_WITH_DOCUMENT.where(ChunkRow.number.in_(best)))
        found = {row.number: row for row in rows}
        return _spread([(found[number], best[number]) for number in best if number in found], limit)

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        wanted = {path for path in paths if path == strip_unstorable(path)}
        return set(await self._all(select(DocumentRow.path).where(DocumentRow.path.in_(wanted))))

    async def count(self) -> int:
        return await self._first(select(func.count(DocumentRow.id))) or 0

    async def list_documents(self) -> Sequence[DocumentRow]:
        """Return the metadata of every document, by path."""
        return sorted(await self._all(select(DocumentRow)), key=lambda row: row.path)

    async def remove(self, path: str) -> int:
        """Remove the document at `path`, or all below it, and return their number."""
        wanted = strip_unstorable(path).rstrip("/")
        if not wanted:
            return 0
        below = DocumentRow.path.startswith(f"{wanted}/", autoescape=True)
        statement = delete(DocumentRow).where(or_(DocumentRow.path == wanted, below))
        async with self.sessions.begin() as session:
            await _count_change(session)
            return await count_changed(session, statement)

    async def save(self, *documents: Document) -> list[Fate]:
        """Store documents with their chunks in place of older versions: all of them, or none.

        Return the fate of each document, in order. No two may have one path.
        """
        pieces = await asyncio.to_thread(lambda: [chunk(item.sections) for item in documents])
        async with self.sessions.begin() as session:
            return [
                await _save(session, document, parts, self.now())
                for document, parts in zip(documents, pieces, strict=True)
            ]

    async def embed_missing(self) -> int:
        """Give a vector to each chunk without one of this model, and return how many got one.

        A batch that the embedding source refuses waits for the next call.
        """
        done = last = refused = 0
        number, stored = CHUNKS.c.number, {"model": self._model, "vector": bindparam("bytes")}
        give = update(CHUNKS).where(number == bindparam("chunk")).values(stored)
        while self.embedder is not None and refused < MAX_REFUSED:
            is_next = ChunkRow.model.is_distinct_from(self._model) & (number > last)
            rows = await self._rows(_WITH_DOCUMENT.where(is_next).order_by(number).limit(BATCH))
            if not rows:
                break
            last = rows[-1].number
            texts = ["\n".join([row.title, *row.headings, row.text]) for row in rows]
            if not (vectors := await self._vectors_of(texts, INDEX_SECONDS)):
                refused += 1
                continue
            refused = 0
            given = [
                {"chunk": row.number, "bytes": array("f", vector).tobytes()}
                for row, vector in zip(rows, vectors, strict=True)
            ]
            async with self.sessions.begin() as session:
                await session.execute(give, given)
            done += len(given)
        if done:
            async with self.sessions.begin() as session:
                await _count_change(session)
        return done

    async def _vectors_of(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return the vectors of the texts, or none at all; a failure is logged once."""
        if self.embedder is None or not texts:
            return []
        try:
            vectors = await self.embedder.embed(texts, seconds)
        except EmbeddingError as error:
            if not self._embedder_failed:
                logger.warning("Documents are searched by words only: %s", error)
            self._embedder_failed = True
            return []
        self._embedder_failed = False
        return vectors


def _spread(ranked: Sequence[tuple[Row[*tuple[Any, ...]], float]], limit: int) -> list[Chunk]:
    """Return the first `limit` chunks, best first, few of each document unless nothing else fits.

    Of files with one content only one counts: a copy would take the place of another answer.
    """
    first: dict[tuple[str, int], Chunk] = {}
    for row, score in ranked:
        found = to_record(Chunk, row, id=f"{row.document_id}-{row.position}", score=score)
        first.setdefault((row.content_hash, row.position), found)
    taken, chosen, spare = Counter[str](), list[Chunk](), list[Chunk]()
    for found in first.values():
        taken[found.path] += 1
        (chosen if taken[found.path] <= MAX_PER_DOCUMENT else spare).append(found)
    return [*chosen, *spare][:limit]


async def _count_change(session: AsyncSession, chunks: int = 0) -> int:
    """Count a change of the documents; return the number for the first of `chunks` new chunks.

    This comes first in a transaction: until it ends, nobody else can change documents.
    """
    changes: int = await session.scalar(_CHANGE, {"count": chunks + 1})
    return changes - chunks


async def _save(
    session: AsyncSession, document: Document, pieces: Sequence[Section], now: datetime
) -> Fate:
    # An id is stable, and short enough for a model to repeat.
    document_id = hashlib.sha256(document.path.encode()).hexdigest()[:12]
    first = await _count_change(session, len(pieces))
    stored = await session.get(DocumentRow, document_id)
    if stored and stored.content_hash == document.hash:
        return "unchanged"
    await session.execute(delete(DocumentRow).where(DocumentRow.id == document_id))
    session.add(
        DocumentRow(
            id=document_id,
            path=document.path,
            title=document.title,
            kind=document.kind,
            content_hash=document.hash,
            size=document.size,
            parts=len(pieces),
            added_at=now,
        )
    )
    await session.flush()  # the chunks refer to it
    for at, piece in enumerate(pieces):
        place = {"number": first + at, "document_id": document_id, "position": at + 1}
        session.add(ChunkRow(**place, headings=list(piece.headings), text=piece.text))
    return "updated" if stored else "added"


async def add_documents(store: SqlDocumentStore, paths: Sequence[Path]) -> AddReport:
    """Index files and folders; a file that cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name and its path below it; a file that is named
    itself is known as it was given.
    """
    report = AddReport()
    files = await asyncio.to_thread(_files, paths, report.problems)
    hashes = {row.path: row.content_hash for row in await store.list_documents()}
    for path, file in files.items():
        try:
            data = await asyncio.to_thread(read_bytes, file)
            if content_hash(data) == hashes.get(path):
                report.unchanged.append(path)
                continue
            document = await asyncio.to_thread(read_document, data, path)
        except Unreadable as error:
            report.problems.append(f"{path} {error}")
            continue
        (fate,) = await store.save(document)
        getattr(report, fate).append(path)
        if document.note:
            report.notes.append(f"{path} {document.note}")
    report.embedded = await store.embed_missing()
    return report


async def load_starter_documents(store: SqlDocumentStore, folder: Path = STARTER) -> None:
    """Index the starter documents, all or none, if there are no documents."""
    if await store.count():
        return

    def read() -> list[Document]:
        return [
            read_document(read_bytes(file), f"starter/{file.relative_to(folder).as_posix()}")
            for file in sorted(folder.rglob("*.md"))
        ]

    await store.save(*await asyncio.to_thread(read))


def _files(paths: Iterable[Path], problems: list[str]) -> dict[str, Path]:
    """Return all files by the paths they are known by; hidden files and folders are left out."""
    files: dict[str, Path] = {}

    def report(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for path in paths:
        if not path.is_dir():
            files.setdefault(_known_as(path), path)
            continue
        for parent, folders, names in os.walk(path, onerror=report):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            for file in (Path(parent) / name for name in sorted(names) if name[0] != "."):
                files.setdefault(_known_as(path.resolve().name / file.relative_to(path)), file)
    return files


def _known_as(path: Path) -> str:
    """Return a path on one line and without square brackets, as a citation names it."""
    known = " ".join(strip_unstorable(path.as_posix()).splitlines())
    return known.replace("[", "(").replace("]", ")")

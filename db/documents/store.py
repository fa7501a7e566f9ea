"""Store documents, and search their chunks by words and by meaning."""

import asyncio
import hashlib
import logging
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import Row, bindparam, delete, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.embedding import Embedder, EmbeddingError
from agent.documents.passages import Chunk
from agent.documents.shop import (
    SHOP_DOCUMENT,
    find_shop_topics,
    is_shop_document,
    sort_by_topic,
)
from agent.text import strip_unstorable
from db.documents.chunking import Section, cut_sections
from db.documents.reading import Document
from db.engine import SqlRepository, count_changed
from db.models import ChunkRow, DocumentRow
from db.statements import to_record

if TYPE_CHECKING:
    from db.documents.finding import ChunkIndex

SaveResult = Literal["added", "updated", "unchanged"]
AnyRow = Row[*tuple[Any, ...]]
RankedRow = tuple[AnyRow, float]
"""The row of a chunk, with its score."""

CANDIDATES: Final = 50
"""From how many of the best chunks a search chooses."""
MAX_PER_DOCUMENT: Final = 3
SEARCH_SECONDS: Final = 5.0
"""How long the embedding service may take for the queries of a search."""
INDEX_SECONDS: Final = 60.0
"""How long the embedding service may take for a batch of chunks."""
MAX_FAILED_BATCHES: Final = 3
"""After so many failures in a row, the embedding service is taken to be down."""
BATCH_SIZE: Final = 32
"""How many texts a request to the embedding service has."""
ID_CHARS: Final = 12
STARTER_PREFIX: Final = "starter/"
"""How the paths of the starter documents begin."""
OWN_SHARE: Final = 0.5
"""A chunk of an own document comes before starter documents if it has this share of the best score.
"""
CHUNKS: Final = ChunkRow.__table__
_INCREASE_COUNTER: Final = text("""
    INSERT INTO library (id, changes) VALUES (1, :count)
    ON CONFLICT (id) DO UPDATE SET changes = library.changes + :count
    RETURNING changes
""")
_WITH_DOCUMENT: Final = select(
    CHUNKS,
    DocumentRow.path,
    DocumentRow.title,
    DocumentRow.parts,
    DocumentRow.content_hash,
).join(DocumentRow, DocumentRow.id == ChunkRow.document_id)

logger = logging.getLogger(__name__)


def ignore_progress(progress: str) -> None:
    """Tell nobody about the progress."""


@dataclass(eq=False)
class SqlDocumentStore(SqlRepository):
    """The stored documents, as the interface `DocumentStore` describes them.

    If there is an `embedder`, chunks are also found by meaning. While it fails, they are found only
    by words.
    """

    embedder: Embedder | None = None
    _index: "ChunkIndex | None" = None
    _embedder_failed: bool = False

    @property
    def _model(self) -> str:
        """Return the name of the model that makes the vectors, or "" if there is none."""
        if self.embedder is None:
            return ""
        return self.embedder.name

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        filled = [query for query in queries if query.strip()]
        storable = [strip_unstorable(query) for query in filled]
        unique_queries = list(dict.fromkeys(storable))
        if not unique_queries or limit < 1:
            return []
        ranked = await self._rank(unique_queries)
        own_first = _put_own_first(ranked)
        found = _diversify(own_first, limit)
        topics = find_shop_topics(queries)
        if not topics:
            return found
        chunks = await self.load_shop()
        chunks = sort_by_topic(chunks, topics)
        for chunk in found:
            if not is_shop_document(chunk.path):
                chunks.append(chunk)
        return chunks[:limit]

    async def measure_rarity(self, words: Sequence[str]) -> Mapping[str, float]:
        index = await self._load_index()
        return await index.measure_rarity(words)

    async def _load_index(self) -> "ChunkIndex":
        """Return the indexes of the chunks."""
        if self._index is None:
            # Imported in a thread, because the libraries are slow to import.
            finding = await asyncio.to_thread(import_module, "db.documents.finding")
            self._index = finding.ChunkIndex(self.sessions, self._model)
        return self._index

    async def _rank(self, queries: Sequence[str]) -> list[RankedRow]:
        """Return the best chunks by words and by meaning, with their scores, the best first."""
        index = await self._load_index()
        vectors = await self._embed(queries, SEARCH_SECONDS)
        scores = await index.search(queries, vectors, CANDIDATES)
        is_found = ChunkRow.number.in_(scores)
        rows = await self._rows(_WITH_DOCUMENT.where(is_found))
        rows_by_number = {row.number: row for row in rows}
        ranked: list[RankedRow] = []
        for number, score in scores.items():
            row = rows_by_number.get(number)
            # A chunk may have been deleted since the search.
            if row is not None:
                ranked.append((row, score))
        return ranked

    async def load_shop(self) -> list[Chunk]:
        """Return all chunks of the owner's document about the shop, in order."""
        may_be_shop = DocumentRow.path.ilike(f"%{SHOP_DOCUMENT}")
        in_order = _WITH_DOCUMENT.where(may_be_shop).order_by(ChunkRow.number)
        chunks: list[Chunk] = []
        for row in await self._rows(in_order.limit(CANDIDATES)):
            if is_shop_document(row.path):
                chunks.append(_to_chunk(row, 1.0))
        return chunks

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        storable = [path for path in paths if path == strip_unstorable(path)]
        is_known = DocumentRow.path.in_(storable)
        known = await self._values(select(DocumentRow.path).where(is_known))
        return set(known)

    async def count(self) -> int:
        count = await self._first_value(select(func.count(DocumentRow.id)))
        return count or 0

    async def list_documents(self) -> Sequence[DocumentRow]:
        """Return all documents, sorted by path."""
        documents = await self._values(select(DocumentRow))
        return sorted(documents, key=attrgetter("path"))

    async def remove(self, path: str) -> int:
        """Remove the document at `path`, or all documents in this folder. Return their number."""
        path = strip_unstorable(path).rstrip("/")
        if not path:
            return 0
        is_this = DocumentRow.path == path
        is_in_folder = DocumentRow.path.startswith(f"{path}/", autoescape=True)
        remove = delete(DocumentRow).where(is_this | is_in_folder)
        async with self.sessions.begin() as session:
            await _count_change(session)
            return await count_changed(session, remove)

    async def save(self, *documents: Document) -> list[SaveResult]:
        """Store documents with their chunks in one transaction, in place of older versions.

        Return what was done with each document, in order. No two documents may have the same path.
        """

        def cut() -> list[list[Section]]:
            return [cut_sections(document.sections) for document in documents]

        chunk_lists = await asyncio.to_thread(cut)
        results: list[SaveResult] = []
        async with self.sessions.begin() as session:
            for document, chunks in zip(documents, chunk_lists, strict=True):
                result = await _save(session, document, chunks, self.now())
                results.append(result)
        return results

    async def embed_missing(
        self, show_progress: Callable[[str], None] = ignore_progress
    ) -> int:
        """Embed all chunks that have no vector of this model. Return how many these were.

        A batch that fails is skipped until the next call.
        """
        embedded_count = 0
        last_number = 0
        failed_batches = 0
        while self.embedder is not None and failed_batches < MAX_FAILED_BATCHES:
            rows = await self._load_unembedded(last_number)
            if not rows:
                break
            numbers = [row.number for row in rows]
            last_number = numbers[-1]
            texts: list[str] = []
            for row in rows:
                lines = [row.title, *row.headings, row.text]
                texts.append("\n".join(lines))
            vectors = await self._embed(texts, INDEX_SECONDS)
            if not vectors:
                failed_batches += 1
                continue
            failed_batches = 0
            await self._store_vectors(numbers, vectors)
            embedded_count += len(rows)
            show_progress(f"{embedded_count} parts can be found by meaning")
        if embedded_count:
            async with self.sessions.begin() as session:
                await _count_change(session)
        return embedded_count

    async def _load_unembedded(self, last_number: int) -> Sequence[AnyRow]:
        """Return the next chunks after the number that have no vector of this model."""
        next_unembedded = (
            _WITH_DOCUMENT.where(
                ChunkRow.number > last_number,
                ChunkRow.model.is_distinct_from(self._model),
            )
            .order_by(ChunkRow.number)
            .limit(BATCH_SIZE)
        )
        return await self._rows(next_unembedded)

    async def _store_vectors(
        self, numbers: Sequence[int], vectors: list[list[float]]
    ) -> None:
        """Store the vectors of chunks, each as the bytes of 32-bit floats."""
        store_vector = (
            update(CHUNKS)
            .where(CHUNKS.c.number == bindparam("chunk"))
            .values(model=self._model, vector=bindparam("bytes"))
        )
        parameters: list[dict[str, object]] = []
        for number, vector in zip(numbers, vectors, strict=True):
            vector_bytes = array("f", vector).tobytes()
            parameters.append({"chunk": number, "bytes": vector_bytes})
        async with self.sessions.begin() as session:
            await session.execute(store_vector, parameters)

    async def _embed(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return the vectors of the texts, or [] after an error.

        Of several errors in a row, only the first one is logged.
        """
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


def _to_chunk(row: AnyRow, score: float) -> Chunk:
    chunk_id = f"{row.document_id}-{row.position}"
    return to_record(Chunk, row, id=chunk_id, score=score)


def _put_own_first(ranked: Sequence[RankedRow]) -> list[RankedRow]:
    """Return the chunks, those of own documents first, unless they are far from the best."""
    scores = [score for _, score in ranked]
    min_own_score = OWN_SHARE * max(scores, default=0.0)
    own: list[RankedRow] = []
    others: list[RankedRow] = []
    for row, score in ranked:
        is_starter = row.path.startswith(STARTER_PREFIX)
        if is_starter or score < min_own_score:
            others.append((row, score))
        else:
            own.append((row, score))
    return own + others


def _diversify(ranked: Sequence[RankedRow], limit: int) -> list[Chunk]:
    """Return at most `limit` chunks, the best first.

    If possible, there are only a few of each document. Copies of a file count as one, because they
    would take the places of others.
    """
    seen: set[tuple[str, int]] = set()
    counts_by_path: Counter[str] = Counter()
    chosen: list[Chunk] = []
    surplus: list[Chunk] = []
    for row, score in ranked:
        content = (row.content_hash, row.position)
        if content in seen:
            continue
        seen.add(content)
        counts_by_path[row.path] += 1
        chunk = _to_chunk(row, score)
        if counts_by_path[row.path] <= MAX_PER_DOCUMENT:
            chosen.append(chunk)
        else:
            surplus.append(chunk)
    best = chosen + surplus
    return best[:limit]


async def _count_change(session: AsyncSession, chunks: int = 0) -> int:
    """Increase the counter of the library. Return the number for the first of `chunks` new chunks.

    Call this at the beginning of a transaction: it locks out other changes of documents.
    """
    changes: int = await session.scalar(_INCREASE_COUNTER, {"count": chunks + 1})
    return changes - chunks


async def _save(
    session: AsyncSession,
    document: Document,
    chunks: Sequence[Section],
    now: datetime,
) -> SaveResult:
    """Store a document and its chunks, unless the same content is stored."""
    path_hash = hashlib.sha256(document.path.encode()).hexdigest()
    # The id is always the same, and short enough for a model to repeat it.
    document_id = path_hash[:ID_CHARS]
    first_number = await _count_change(session, len(chunks))
    stored = await session.get(DocumentRow, document_id)
    if stored and stored.content_hash == document.hash:
        return "unchanged"
    await session.execute(delete(DocumentRow).where(DocumentRow.id == document_id))
    row = DocumentRow(
        id=document_id,
        path=document.path,
        title=document.title,
        kind=document.kind,
        content_hash=document.hash,
        size=document.size,
        parts=len(chunks),
        added_at=now,
    )
    session.add(row)
    # The chunks refer to the document, so it must be stored before them.
    await session.flush()
    session.add_all(_make_chunk_rows(chunks, document_id, first_number))
    if stored:
        return "updated"
    return "added"


def _make_chunk_rows(
    chunks: Sequence[Section],
    document_id: str,
    first_number: int,
) -> list[ChunkRow]:
    """Return the rows of the chunks of a document."""
    rows: list[ChunkRow] = []
    for index, chunk in enumerate(chunks):
        row = ChunkRow(
            number=first_number + index,
            document_id=document_id,
            position=index + 1,
            headings=list(chunk.headings),
            text=chunk.text,
        )
        rows.append(row)
    return rows

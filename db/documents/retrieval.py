"""Finding chunks by their words and by their meaning, in indexes that this process holds in memory.

A counter in the database tells when they are out of date; then what is new is read, and what is
gone is left out. It also gives chunks their numbers, so that none is ever used again. Vectors come
from an embedding source, which may be anything; nothing it returns is trusted. They are scaled to
length 1.
"""

import asyncio
import math
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from sqlalchemy import Connection, Executable, Row, Select, delete, exists, insert, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.passages import Chunk, Embedder
from agent.engine.errors import AgentError
from db.documents.chunking import query_terms, term_number
from db.engine import Sessions
from db.models import ChunkRow, ChunkVectorRow, DocumentRow, LibraryRow

if TYPE_CHECKING:
    from db.documents.index import VectorIndex, WordIndex


BATCH: Final = 64
"""Texts sent to the embedding source at once."""


class EmbeddingError(Exception):
    """The embedding source is down, too slow, or returned something other than vectors."""


async def embed(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """Return one vector of length 1 for each text, in order; `seconds` is the time limit.

    Raises:
        EmbeddingError: no vectors, whatever the reason.
    """
    try:
        async with asyncio.timeout(seconds):
            vectors = await embedder.embed(texts)
    except TimeoutError:
        raise EmbeddingError(f"{embedder.name} did not answer within {seconds:g} s") from None
    except AgentError as error:
        raise EmbeddingError(f"{embedder.name} failed: {error}") from error
    except Exception as error:
        raise EmbeddingError(f"{embedder.name} failed: {type(error).__name__}") from error
    try:
        return _checked(vectors, len(texts))
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{embedder.name} gave no vectors: {error}") from None


def _checked(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} for {count} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("they are of different lengths")
    return [_unit(vector) for vector in vectors]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise ValueError("one has no direction")
    return [value / length for value in vector]


async def without_vectors(
    session: AsyncSession, model: str, limit: int, after: int = 0
) -> list[tuple[int, str]]:
    """Find at most `limit` chunks that `model` has not seen: numbers, and the texts to see.

    In order, from the first number above `after`.
    """
    seen = exists().where(ChunkVectorRow.chunk == ChunkRow.number, ChunkVectorRow.model == model)
    wanted = (
        select(ChunkRow, DocumentRow.title)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(~seen, ChunkRow.number > after)
        .order_by(ChunkRow.number)
        .limit(limit)
    )
    rows = await session.execute(wanted)
    return [(row.number, "\n".join([title, *row.headings, row.text])) for row, title in rows]


async def save_vectors(
    session: AsyncSession, model: str, vectors: Sequence[tuple[int, Sequence[float]]]
) -> None:
    """Store the vectors of chunks, each instead of any that another model gave."""
    numbers = [number for number, _ in vectors]
    await session.execute(delete(ChunkVectorRow).where(ChunkVectorRow.chunk.in_(numbers)))
    present = set(
        await session.scalars(select(ChunkRow.number).where(ChunkRow.number.in_(numbers)))
    )
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
        await session.execute(insert(ChunkVectorRow), rows)


class _Index(Protocol):
    """Chunks by one of the things they are found by; `numbers` is an array of theirs."""

    @property
    def numbers(self) -> Any: ...

    def changed(self, numbers: Sequence[int], added: Sequence[tuple[int, bytes]]) -> Self: ...


Held = TypeVar("Held", bound=_Index)

RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion, from Cormack, Clarke and Buettcher (2009)."""
MAX_PER_DOCUMENT: Final = 3
ROWS_AT_ONCE: Final = 2_000
"""Rows read between two moments in which others have their turn."""

_CHANGES: Final = select(LibraryRow.changes)
_CHANGE: Final = text("""
    INSERT INTO library (id, changes) VALUES (1, :count)
    ON CONFLICT (id) DO UPDATE SET changes = library.changes + :count RETURNING changes
""")
_SOURCES: Final = (
    ChunkRow.number,
    ChunkRow.position,
    DocumentRow.id,
    DocumentRow.content_hash,
)


async def change(session: AsyncSession, chunks: int = 0) -> int:
    """Tell every process that documents change; return the number of the first of new chunks.

    Whoever changes documents has the lock of the store until the transaction ends.
    """
    changes: int = await session.scalar(_CHANGE, {"count": chunks + 1})
    return changes - chunks


class Retrieval:
    """Searches the chunks of a database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        words = select(ChunkRow.number, ChunkRow.postings)
        self._words: _Copy[WordIndex] = _Copy(sessions, words, _no_words)
        self._vectors: dict[tuple[str, int], _Copy[VectorIndex]] = {}

    async def by_words(self, queries: Sequence[str], limit: int) -> list[list[int]]:
        """Return, for each query, numbers of chunks that hold a telling word, best match first."""
        asked = [list(map(term_number, query_terms(query))) for query in queries]
        index = await self._words.now()
        return await asyncio.to_thread(lambda: [index.nearest(terms, limit) for terms in asked])

    async def by_meaning(
        self, model: str, vectors: Sequence[Sequence[float]], limit: int
    ) -> list[list[int]]:
        """Return, for each vector, numbers of chunks that `model` finds most like it."""
        if not vectors:
            return []
        kind = model, len(vectors[0])
        if kind not in self._vectors:
            rows = select(ChunkVectorRow.chunk, ChunkVectorRow.vector).where(
                ChunkVectorRow.model == model, ChunkVectorRow.dimensions == kind[1]
            )
            self._vectors[kind] = _Copy(self._sessions, rows, _no_vectors)
        index = await self._vectors[kind].now()
        return await asyncio.to_thread(lambda: [index.nearest(each, limit) for each in vectors])

    async def sources(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the document id of each of these chunks, without those whose copy comes earlier.

        The same file at two paths would take the place of another answer.
        """
        wanted = (
            select(*_SOURCES)
            .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
            .where(ChunkRow.number.in_(numbers))
        )
        found = {row.number: row for row in await self._sessions.read(_all(wanted))}
        first: dict[tuple[str, int], int] = {}
        for number in filter(found.__contains__, numbers):
            first.setdefault((found[number].content_hash, found[number].position), number)
        return {number: found[number].id for number in first.values()}

    async def chunks(self, scores: dict[int, float]) -> list[Chunk]:
        """Return these chunks in the order given, each with its score."""
        wanted = (
            select(
                *(ChunkRow.number, ChunkRow.position, ChunkRow.headings, ChunkRow.text),
                *(DocumentRow.id, DocumentRow.path, DocumentRow.title, DocumentRow.parts),
            )
            .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
            .where(ChunkRow.number.in_(list(scores)))
        )
        found = {row.number: row for row in await self._sessions.read(_all(wanted))}
        return [_to_chunk(found[number], scores[number]) for number in scores if number in found]


class _Copy(Generic[Held]):
    """An index as of some change of the documents; `rows` are numbers of chunks, and its data."""

    def __init__(
        self, sessions: Sessions, rows: Select[int, bytes], empty: Callable[[], Held]
    ) -> None:
        self._sessions = sessions
        self._rows = rows
        self._empty = empty
        self._held: Held | None = None
        self._changes: int | None = None
        self._changing = asyncio.Lock()

    async def now(self) -> Held:
        """Return the index of the chunks that there are."""
        changes = await self._sessions.read(lambda on: on.scalar(_CHANGES))
        async with self._changing:
            if self._held is None or changes != self._changes:
                held = self._held
                if held is None:
                    held = await asyncio.to_thread(self._empty)
                # What is read may be newer than the counter: then it is compared once more.
                self._held, self._changes = await self._read(held), changes
            return self._held

    async def _read(self, held: Held) -> Held:
        number, _ = self._rows.selected_columns
        known = set(held.numbers.tolist())
        async with self._sessions() as session:
            numbers = self._rows.with_only_columns(number)
            now = [each async for (each,) in _streamed(session, numbers)]
            new = sorted(each for each in now if each not in known)
            rows = self._rows.where(number >= new[0]).order_by(number) if new else None
            added = [] if rows is None else [row async for row in _streamed(session, rows)]
        missing = [(each, data) for each, data in added if each not in known]
        return await asyncio.to_thread(held.changed, now, missing)


async def _streamed(session: AsyncSession, rows: Executable) -> AsyncIterator[Any]:
    result = await session.stream(rows.execution_options(yield_per=ROWS_AT_ONCE))
    async for part in result.partitions():
        for row in part:
            yield row


def _all(wanted: Executable) -> Callable[[Connection], Sequence[Row[Any]]]:
    return lambda on: on.execute(wanted).all()


def _no_words() -> "WordIndex":
    from db.documents.index import WordIndex  # noqa: PLC0415 - numpy, when first needed

    return WordIndex.empty()


def _no_vectors() -> "VectorIndex":
    from db.documents.index import VectorIndex  # noqa: PLC0415 - numpy, when first needed

    return VectorIndex.empty()


def _to_chunk(row: Row[Any], score: float) -> Chunk:
    return Chunk(
        id=f"{row.id}-{row.position}",
        document_id=row.id,
        path=row.path,
        title=row.title,
        headings=tuple(row.headings),
        position=row.position,
        parts=row.parts,
        text=row.text,
        score=score,
    )


def fuse(rankings: Iterable[Sequence[int]]) -> list[tuple[int, float]]:
    """Merge rankings: items with their scores, best first.

    An item scores 1 / (60 + its rank) in each ranking; equals keep the order of the smaller number.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))


def spread(
    ranked: Sequence[int],
    limit: int,
    document_of: Callable[[int], str],
    most: int = MAX_PER_DOCUMENT,
) -> list[int]:
    """Take the first `limit` items, at most `most` of a document unless nothing else matches."""
    taken: Counter[str] = Counter()
    chosen: list[int] = []
    spare: list[int] = []
    for item in ranked:
        document = document_of(item)
        taken[document] += 1
        (chosen if taken[document] <= most else spare).append(item)
    kept = {*chosen[:limit], *spare[: max(limit - len(chosen), 0)]}
    return [item for item in ranked if item in kept]

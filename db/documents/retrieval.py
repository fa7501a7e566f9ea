"""Chunks by their words and by their meaning: found in matrices that this process holds in memory.

A counter in the database tells when they are out of date; then what is new is read, and what is
gone is left out. Numbers are of chunks.

By words: bm25 (k1 1.2, b 0.75) over postings, for each term the chunks that hold it and how often.
By meaning: the cosine of vectors of length 1. Up to `SHORTLIST` chunks all are compared; of more,
sketches (one bit for each number of a vector) are compared first, and the nearest of those in full.

numpy takes a moment to load: import this where it is first needed.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Executable, Row, Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.passages import Chunk
from db.documents.chunking import query_terms, term_number
from db.engine import Sessions
from db.models import ChunkRow, ChunkVectorRow, DocumentRow, LibraryRow

Integers = NDArray[np.int64]

SATURATION: Final = 1.2
LENGTH_SHARE: Final = 0.75
LEAST_WEIGHT: Final = 1e-6
TERM: Final = np.uint64(32)
PLACE: Final = np.uint64(8)
"""Where in a posting these begin, in bits."""
COUNT: Final = np.uint64(0xFF)
MOST_CHUNKS: Final = np.uint64(0xFFFFFF)
SHORTLIST: Final = 2000
"""Vectors compared in full."""
ROWS_AT_ONCE: Final = 2_000
"""Rows read between two moments in which others have their turn."""

_CHANGES: Final = select(LibraryRow.changes)
_SOURCES: Final = (
    ChunkRow.number,
    ChunkRow.position,
    DocumentRow.id,
    DocumentRow.content_hash,
)


def _integers(numbers: Sequence[int]) -> Integers:
    return np.fromiter(numbers, np.int64, len(numbers))


def _best(scores: NDArray[Any], limit: int) -> Integers:
    """Where the highest scores are, best first; of equals the first."""
    if limit < len(scores):
        least = np.partition(scores, len(scores) - limit)[-limit]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")][:limit]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """Which chunks hold which terms, and how often.

    `lengths` is how many terms a chunk has. A posting is a term (32 bits), the place of a chunk in
    `numbers` (24) and a count (8); they are sorted, so that those of a term stand together.
    """

    numbers: Integers
    lengths: NDArray[np.float64]
    postings: NDArray[np.uint64]

    @classmethod
    def empty(cls) -> Self:
        """Make an index of no chunk."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint64))

    def changed(self, numbers: Sequence[int], added: Sequence[tuple[int, bytes]]) -> Self:
        """Return the index of those of its chunks that are in `numbers`, and of added ones.

        Each comes with what `db.documents.chunking.postings` made.
        """
        keep = np.isin(self.numbers, _integers(numbers), assume_unique=True)
        held = self.postings
        if not keep.all():
            held = held[keep[_places(held)]]
            moved = (np.cumsum(keep) - 1).astype(np.uint64)[_places(held)]
            held = held >> TERM << TERM | moved << PLACE | held & COUNT
        kept, lengths = self.numbers[keep], self.lengths[keep]
        if added:
            more, new = _read([blob for _, blob in added], len(kept))
            # What is sorted already takes little time, and what is new is sorted fastest by itself.
            held = np.sort(np.concatenate([held, np.sort(new)]), kind="stable")
            kept = np.concatenate([kept, _integers([number for number, _ in added])])
            lengths = np.concatenate([lengths, more])
        return type(self)(kept, lengths, held)

    def nearest(self, terms: Sequence[int], limit: int) -> list[int]:
        """Return the chunks that hold a telling one of `terms`, best match first.

        A term that half of the chunks hold weighs nothing in bm25, whatever the language. It is
        looked for only if there is no other.
        """
        found = filter(len, map(self._postings_of, terms))
        weighed = [(self._weight(len(postings)), postings) for postings in found]
        rare = [each for each in weighed if each[0] > LEAST_WEIGHT]
        chosen = rare or [(LEAST_WEIGHT, postings) for _, postings in weighed]
        if not chosen:
            return []
        norms = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * self.lengths / self.lengths.mean())
        scores = np.zeros(len(self.numbers))
        for weight, postings in chosen:
            places, often = _places(postings), (postings & COUNT).astype(np.float64)
            scores[places] += weight * often / (often + norms[places])
        best = _best(scores, limit)
        numbers: list[int] = self.numbers[best[scores[best] > 0]].tolist()
        return numbers

    def _postings_of(self, term: int) -> NDArray[np.uint64]:
        edges = np.array([term, term + 1], np.uint64) << TERM
        start, end = np.searchsorted(self.postings, edges)
        return self.postings[start:end]

    def _weight(self, holding: int) -> float:
        return math.log((len(self.numbers) - holding + 0.5) / (holding + 0.5))


def _places(postings: NDArray[np.uint64]) -> Integers:
    return (postings >> PLACE & MOST_CHUNKS).astype(np.int64)


def _read(blobs: Sequence[bytes], first: int) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """The lengths of chunks and their postings; their places count from `first`.

    Stored are 4 bytes of length, then 5 for each term: first all numbers, then all counts.
    """
    sizes = np.fromiter((len(blob) // 5 for blob in blobs), np.int64, len(blobs))
    ends = [4 * (size + 1) for size in sizes.tolist()]
    heads = b"".join(blob[:end] for blob, end in zip(blobs, ends, strict=True))
    tails = b"".join(blob[end:] for blob, end in zip(blobs, ends, strict=True))
    read = np.frombuffer(heads, "<u4")
    at = np.cumsum(sizes + 1) - sizes - 1
    terms = np.delete(read, at).astype(np.uint64)
    places = np.repeat(np.arange(first, first + len(blobs), dtype=np.uint64), sizes)
    counts = np.frombuffer(tails, np.uint8)
    return read[at].astype(np.float64), terms << TERM | places << PLACE | counts


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Vectors of chunks, a row each; sketches are the signs of what differs from their mean."""

    numbers: Integers
    vectors: NDArray[np.float16]
    mean: NDArray[np.float32]
    sketches: NDArray[np.uint64]

    @classmethod
    def empty(cls) -> Self:
        """Make an index of no chunk."""
        return cls._sketched(np.empty(0, np.int64), np.empty((0, 0), np.float16))

    @classmethod
    def _sketched(cls, numbers: Integers, vectors: NDArray[np.float16]) -> Self:
        # Of vectors that are all much alike the signs would be too, but for their mean.
        mean = vectors.mean(0, np.float32) if len(vectors) else np.zeros(vectors.shape[1], "f4")
        return cls(numbers, vectors, mean, _sketches(vectors, mean))

    def changed(self, numbers: Sequence[int], added: Sequence[tuple[int, bytes]]) -> Self:
        """Return the index of those of its chunks that are in `numbers`, and of added ones.

        Each comes with its vector, 4 bytes a number.
        """
        keep = np.isin(self.numbers, _integers(numbers), assume_unique=True)
        kept, vectors = self.numbers[keep], self.vectors[keep]
        if added:
            read = np.frombuffer(b"".join(blob for _, blob in added), "<f4")
            new = read.reshape(len(added), -1).astype(np.float16)
            vectors = np.concatenate([vectors, new]) if len(vectors) else new
            kept = np.concatenate([kept, _integers([number for number, _ in added])])
        order = np.argsort(kept, kind="stable")
        return self._sketched(kept[order], vectors[order])

    def nearest(self, vector: Sequence[float], limit: int, shortlist: int = SHORTLIST) -> list[int]:
        """Return the chunks whose vectors are most like `vector`, nearest first."""
        if not len(self.numbers):
            return []
        asked = np.asarray(vector, np.float32)
        near = np.arange(len(self.numbers))
        if len(near) > shortlist:
            near = np.sort(_best(self._alike(asked), shortlist))
        # Not `@`: for so little a library's threads wait busily for each other, on every core.
        cosines = np.einsum("ij,j", self.vectors[near].astype(np.float32), asked)
        numbers: list[int] = self.numbers[near[_best(cosines, limit)]].tolist()
        return numbers

    def _alike(self, asked: NDArray[np.float32]) -> NDArray[np.int16]:
        """How many signs of each vector are those of `asked`, less a constant."""
        alike = np.zeros(len(self.numbers), np.int16)
        for words, word in zip(self.sketches, _sketches(asked[None, :], self.mean), strict=True):
            alike -= np.bitwise_count(words ^ word)
        return alike


def _sketches(vectors: NDArray[Any], mean: NDArray[np.float32]) -> NDArray[np.uint64]:
    """One bit for each number of a vector, 1 where it is above the mean.

    A row holds 64 of each vector, since rows are read from end to end.
    """
    words = -(-vectors.shape[1] // 64)
    bits = np.zeros((len(vectors), 8 * words), np.uint8)
    packed = np.packbits(vectors > mean, axis=1) if vectors.size else bits[:, :0]
    bits[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(bits.view(np.uint64).T)


Held = TypeVar("Held", WordIndex, VectorIndex)


class Retrieval:
    """Searches the chunks of a database."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        words = select(ChunkRow.number, ChunkRow.postings)
        self._words = _Copy(sessions, words, WordIndex.empty())
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
            self._vectors[kind] = _Copy(self._sessions, rows, VectorIndex.empty())
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

    def __init__(self, sessions: Sessions, rows: Select[int, bytes], empty: Held) -> None:
        self._sessions = sessions
        self._rows = rows
        self._held: Held = empty
        self._changes: int | None = None
        self._changing = asyncio.Lock()

    async def now(self) -> Held:
        """Return the index of the chunks that there are."""
        changes = await self._sessions.read(lambda on: on.scalar(_CHANGES))
        async with self._changing:
            if changes != self._changes:
                # What is read may be newer than the counter: then it is compared once more.
                self._held, self._changes = await self._read(self._held), changes
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
        changed: Held = await asyncio.to_thread(held.changed, now, missing)
        return changed


async def _streamed(session: AsyncSession, rows: Executable) -> AsyncIterator[Any]:
    result = await session.stream(rows.execution_options(yield_per=ROWS_AT_ONCE))
    async for part in result.partitions():
        for row in part:
            yield row


def _all(wanted: Executable) -> Callable[[Connection], Sequence[Row[Any]]]:
    return lambda on: on.execute(wanted).all()


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

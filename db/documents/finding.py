"""Find chunks by their words and by their meaning, in indexes that a process keeps in memory.

By words: BM25 over stems. By meaning: the cosine of vectors. Chunks are known by their numbers. The
libraries take a moment to load: import this where it is first needed.
"""

import asyncio
import logging
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import bm25s
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, func, select

from agent.language import stem, stop_words
from agent.text import REMEMBERED, UNSPACED, words
from db.engine import Sessions
from db.models import ChunkRow, DocumentRow, LibraryRow

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for DEBUG itself

MAX_QUERY_TERMS: Final = 64
LATIN_LETTERS: Final = 7
"""Letters of a stem that count: "recommend" and "recommandation" differ later."""
OTHER_LETTERS: Final = 5
"""Letters that count of a word in another alphabet, for which there is no stemmer."""
HEADING_WEIGHT: Final = 2
"""The weight of a word of the title or a heading."""
SATURATION: Final = 1.2
COMMON_WORD: Final = 1e-6
"""The weight of a word that half of the chunks hold, to which BM25 gives none."""
RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion, from Cormack, Clarke and Buettcher (2009)."""


def terms(text: str) -> list[str]:
    """Return what `text` is found by, in order: stems without stop words, accents or case.

    Scripts without spaces are cut into overlapping pairs of characters.
    """
    return [term for word in words(text) for term in _terms_of_word(word)]


def _terms_of_word(word: str) -> Iterator[str]:
    if word.isascii():
        if word not in stop_words():
            stemmed = stem(word)
            yield stemmed[:LATIN_LETTERS] if stemmed.isalpha() else stemmed
        return
    end = 0
    for run in UNSPACED.finditer(word):
        yield from filter(None, [word[end : run.start()][:OTHER_LETTERS]])
        yield from (run[0][at : at + 2] for at in range(max(len(run[0]) - 1, 1)))
        end = run.end()
    yield from filter(None, [word[end:][:OTHER_LETTERS]])


class WordIndex:
    """Finds chunks by their words; searches see changes after `build`.

    `chunks` are the terms of the chunks, as numbers of words, by the numbers of the chunks.
    """

    def __init__(self) -> None:
        self.chunks: dict[int, array[int]] = {}
        self._vocabulary: dict[str, int] = {}
        self._ids_of_word: dict[str, list[int]] = {}
        self._built: tuple[bm25s.BM25, NDArray[np.int64]] | None = None

    def add(self, rows: Iterable[tuple[int, str, Sequence[str], str]]) -> None:
        """Add chunks by their number, title, headings and text."""
        for number, title, headings, text in rows:
            ids = self._ids(" ".join([title, *headings])) * HEADING_WEIGHT + self._ids(text)
            self.chunks[number] = array("I", ids)

    def build(self) -> None:
        """Index the chunks there are: 8 s for 100,000, as BM25 weighs each by all others."""
        if not any(self.chunks.values()):
            self._built = None
            return
        index = bm25s.BM25(k1=SATURATION, method="robertson")
        index.index((list(self.chunks.values()), self._vocabulary), show_progress=False)
        np.maximum(index.scores["data"], COMMON_WORD, out=index.scores["data"])
        self._built = index, np.fromiter(self.chunks, np.int64, len(self.chunks))

    def search(self, query: str, limit: int) -> dict[int, float]:
        """Return the chunks that hold words of `query`, best match first.

        Each comes with its share of the best score. Words that half of the chunks hold are only
        looked for if `query` has no other.
        """
        ids = [
            self._vocabulary[term]
            for term in dict.fromkeys(terms(query))
            if term in self._vocabulary
        ]
        if self._built is None or not ids:
            return {}
        index, numbers = self._built
        scores = index.get_scores(ids[:MAX_QUERY_TERMS])
        telling = COMMON_WORD * MAX_QUERY_TERMS
        least = telling if scores.max() > telling else 0.0
        return _best(numbers, scores / scores.max(), limit, above=least / scores.max())

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in words(text):
            if (known := self._ids_of_word.get(word)) is None:
                found = _terms_of_word(word)
                known = [self._vocabulary.setdefault(t, len(self._vocabulary)) for t in found]
                if len(self._ids_of_word) < REMEMBERED:
                    self._ids_of_word[word] = known
            ids += known
        return ids


class VectorIndex:
    """Finds chunks by vectors of length 1; searches see changes after `build`.

    `chunks` are the vectors, 4 bytes a value, by the numbers of the chunks.
    """

    def __init__(self) -> None:
        self.chunks: dict[int, bytes] = {}
        self._built = np.empty(0, np.int64), np.empty((0, 0), np.float32)

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Add chunks by their number and vector."""
        self.chunks.update(rows)

    def build(self) -> None:
        """Make one matrix of all vectors."""
        matrix = np.frombuffer(b"".join(self.chunks.values()), np.float32)
        count = len(self.chunks)
        numbers = np.fromiter(self.chunks, np.int64, count)
        self._built = numbers, matrix.reshape(count, -1 if count else 0)

    def search(self, vector: Sequence[float], limit: int) -> dict[int, float]:
        """Return the chunks whose vectors are nearest to `vector`, with cosines, nearest first."""
        numbers, vectors = self._built
        if not len(numbers):
            return {}
        # Not `@`: for so little, the threads of a BLAS library wait busily for each other.
        cosines = np.einsum("ij,j", vectors, np.asarray(vector, np.float32))
        return _best(numbers, cosines, limit)


def _best(
    numbers: NDArray[np.int64], scores: NDArray[np.float32], limit: int, above: float = -np.inf
) -> dict[int, float]:
    """Return the chunks with the highest scores, best first; of equals the earliest."""
    places = np.flatnonzero(scores > above)
    if limit < len(places):
        found = scores[places]
        places = places[found >= np.partition(found, len(found) - limit)[-limit]]
    best = places[np.argsort(-scores[places], kind="stable")][:limit]
    return dict(zip(numbers[best].tolist(), scores[best].tolist(), strict=True))


def fuse(rankings: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Merge rankings by reciprocal rank: return each item with its highest score, best first.

    An item gets 1 / (60 + its rank) for each ranking; of equals the smaller number comes first.
    """
    merits: defaultdict[int, float] = defaultdict(float)
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, (item, score) in enumerate(ranking.items(), 1):
            merits[item] += 1 / (RANK_CONSTANT + rank)
            scores[item] = max(score, scores.get(item, score))
    ranked = sorted(scores, key=lambda item: (-merits[item], item))
    return {item: scores[item] for item in ranked}


_WORDS: Final = (
    select(ChunkRow.number, DocumentRow.title, ChunkRow.headings, ChunkRow.text)
    .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
    .order_by(ChunkRow.number)
)
ROWS_AT_ONCE: Final = 1000


class ChunkIndex:
    """Both indexes of a database's chunks, brought up to date before a search.

    A counter in the database changes with the documents, whichever process changes them.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._updating = asyncio.Lock()
        self._words = WordIndex()
        self._vectors: dict[tuple[str, int], VectorIndex] = {}
        self._changes: dict[WordIndex | VectorIndex, int] = {}

    async def search(
        self, queries: Sequence[str], model: str, vectors: Sequence[Sequence[float]], limit: int
    ) -> dict[int, float]:
        """Return the best chunks by words and by meaning with their scores, best first.

        `vectors` are those that `model` gives the queries; there may be none.
        """
        kind = model, len(vectors[0]) if vectors else 0
        by_meaning = self._vectors.setdefault(kind, VectorIndex())
        async with self._updating:
            await self._update(self._words, _WORDS)
            if vectors:
                await self._update(by_meaning, _vectors_of(*kind))

        def rank() -> dict[int, float]:
            rankings = [self._words.search(query, limit) for query in queries]
            return fuse(rankings + [by_meaning.search(vector, limit) for vector in vectors])

        return await asyncio.to_thread(rank)

    async def _update(self, index: WordIndex | VectorIndex, rows: Select[*tuple[Any, ...]]) -> None:
        """Bring an index in step with its rows, if documents have changed."""
        number = rows.selected_columns[0]
        async with self._sessions() as session:
            # The rows may be newer than the counter: the next search then compares once more.
            changes = await session.scalar(select(LibraryRow.changes)) or 0
            if changes == self._changes.get(index):
                return
            stored = set(await session.scalars(rows.with_only_columns(number)))
            for gone in index.chunks.keys() - stored:
                del index.chunks[gone]
            if missing := stored - index.chunks.keys():
                # Numbers only grow, so new chunks are behind known ones.
                new = rows.where(number >= min(missing)).execution_options(yield_per=ROWS_AT_ONCE)
                async for part in (await session.stream(new)).partitions():
                    fresh = [tuple(row) for row in part if row[0] in missing]
                    await asyncio.to_thread(index.add, fresh)
        await asyncio.to_thread(index.build)
        self._changes[index] = changes


def _vectors_of(model: str, dimensions: int) -> Select[*tuple[Any, ...]]:
    return (
        select(ChunkRow.number, ChunkRow.vector)
        .where(ChunkRow.model == model, func.length(ChunkRow.vector) == 4 * dimensions)
        .order_by(ChunkRow.number)
    )

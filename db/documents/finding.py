"""Find chunks by their words and by their meaning, in indexes that a process keeps in memory.

By words: BM25 over stems. By meaning: the cosine of vectors. Chunks are known by their numbers. The
libraries take a moment to load: import this where it is first needed.
"""

import asyncio
import logging
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import bm25s
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import case, select

from agent.language import stem, stop_words
from agent.text import CACHE_SIZE, UNSPACED_SCRIPTS, split_words
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
ROWS_AT_ONCE: Final = 1000


def extract_terms(text: str) -> list[str]:
    """Return what `text` is found by, in order: stems without stop words, accents or case.

    Scripts without spaces are cut into overlapping pairs of characters.
    """
    return [term for word in split_words(text) for term in _terms_of_word(word)]


@lru_cache(CACHE_SIZE)
def _terms_of_word(word: str) -> tuple[str, ...]:
    if word.isascii():
        if word in stop_words():
            return ()
        stemmed = stem(word)
        return (stemmed[:LATIN_LETTERS] if stemmed.isalpha() else stemmed,)
    found, end = list[str](), 0
    for run in UNSPACED_SCRIPTS.finditer(word):
        pairs = [run[0][at : at + 2] for at in range(max(len(run[0]) - 1, 1))]
        found += [word[end : run.start()][:OTHER_LETTERS], *pairs]
        end = run.end()
    return tuple(filter(None, [*found, word[end:][:OTHER_LETTERS]]))


class WordIndex:
    """Finds chunks by their words, once they are added and the index is built."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._terms: list[list[str]] = []
        self._bm25: bm25s.BM25 | None = None

    def add(self, number: int, title: str, headings: Sequence[str], text: str) -> None:
        """Add a chunk by its number."""
        self._numbers.append(number)
        self._terms.append(
            extract_terms(" ".join([title, *headings])) * HEADING_WEIGHT + extract_terms(text)
        )

    def build(self) -> None:
        """Index the chunks: 10 s for 100,000, as BM25 weighs each by all others."""
        if any(self._terms):
            self._bm25 = bm25s.BM25(k1=SATURATION, method="robertson")
            self._bm25.index(self._terms, show_progress=False)
            scores = self._bm25.scores["data"]
            np.maximum(scores, COMMON_WORD, out=scores)
        self._terms = []

    def search(self, query: str, limit: int) -> dict[int, float]:
        """Return the chunks that hold words of `query`, best match first.

        Each comes with its share of the best score. Words that half of the chunks hold are only
        looked for if `query` has no other.
        """
        asked = list(dict.fromkeys(extract_terms(query)))[:MAX_QUERY_TERMS]
        if self._bm25 is None or not (known := self._bm25.get_tokens_ids(asked)):
            return {}
        scores = self._bm25.get_scores_from_ids(known)
        telling = COMMON_WORD * MAX_QUERY_TERMS
        least = telling if scores.max() > telling else 0.0
        numbers = np.asarray(self._numbers)
        return _best(numbers, scores / scores.max(), limit, above=least / scores.max())


class VectorIndex:
    """Finds chunks by vectors of length 1, which have 4 bytes a value."""

    def __init__(self, vectors: dict[int, bytes]) -> None:
        # A model may have changed under its name: then vectors of another length are old.
        size = len(next(reversed(vectors.values()), b""))
        current = {number: vector for number, vector in vectors.items() if len(vector) == size}
        matrix = np.frombuffer(b"".join(current.values()), np.float32)
        self._numbers = np.fromiter(current, np.int64, len(current))
        self._matrix = matrix.reshape(len(current), size // matrix.itemsize)

    def search(self, vector: Sequence[float], limit: int) -> dict[int, float]:
        """Return the chunks whose vectors are nearest to `vector`, with cosines, nearest first."""
        if self._matrix.shape[1] != len(vector):
            return {}
        # Not `@`: for so little, the threads of a BLAS library wait busily for each other.
        cosines = np.einsum("ij,j", self._matrix, np.asarray(vector, np.float32))
        return _best(self._numbers, cosines, limit)


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


def _fuse(rankings: Iterable[Mapping[int, float]], limit: int) -> dict[int, float]:
    """Merge rankings by reciprocal rank: return the best items with their highest scores.

    An item gets 1 / (60 + its rank) for each ranking; of equals the smaller number comes first.
    """
    merits: defaultdict[int, float] = defaultdict(float)
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, (item, score) in enumerate(ranking.items(), 1):
            merits[item] += 1 / (RANK_CONSTANT + rank)
            scores[item] = max(score, scores.get(item, score))
    ranked = sorted(scores, key=lambda item: (-merits[item], item))
    return {item: scores[item] for item in ranked[:limit]}


class ChunkIndex:
    """Both indexes of a database's chunks, with the vectors of one model.

    They are made again before a search if a counter in the database tells that documents have
    changed, whichever process changed them.
    """

    def __init__(self, sessions: Sessions, model: str) -> None:
        self._sessions = sessions
        vector = case((ChunkRow.model == model, ChunkRow.vector))
        chunk = (ChunkRow.number, DocumentRow.title, ChunkRow.headings, ChunkRow.text, vector)
        rows = select(*chunk).join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        self._rows = rows.order_by(ChunkRow.number).execution_options(yield_per=ROWS_AT_ONCE)
        self._updating = asyncio.Lock()
        self._by_words = WordIndex()
        self._by_meaning = VectorIndex({})
        self._changes = 0

    async def search(
        self, queries: Sequence[str], vectors: Sequence[Sequence[float]], limit: int
    ) -> dict[int, float]:
        """Return the best chunks by words and by meaning with their scores, best first.

        `vectors` are those that the model gives the queries; there may be none.
        """
        async with self._updating:
            await self._update()
        by_words, by_meaning = self._by_words, self._by_meaning

        def rank() -> dict[int, float]:
            rankings = [by_words.search(query, limit) for query in queries]
            rankings += [by_meaning.search(vector, limit) for vector in vectors]
            return _fuse(rankings, limit)

        return await asyncio.to_thread(rank)

    async def _update(self) -> None:
        """Make the indexes again, if documents have changed."""
        by_words, vectors = WordIndex(), dict[int, bytes]()

        def add(rows: Sequence[Any]) -> None:
            for *chunk, vector in rows:
                by_words.add(*chunk)
                if vector:
                    vectors[chunk[0]] = vector

        async with self._sessions() as session:
            # The rows may be newer than the counter: the next search then compares once more.
            changes = await session.scalar(select(LibraryRow.changes)) or 0
            if changes == self._changes:
                return
            async for rows in (await session.stream(self._rows)).partitions():
                await asyncio.to_thread(add, rows)
        await asyncio.to_thread(by_words.build)
        self._by_words, self._by_meaning = by_words, VectorIndex(vectors)
        self._changes = changes

"""Find chunks by words (BM25 over stems) and by meaning (cosines of vectors).

The indexes are in the memory of a process and identify chunks by number. The libraries are slow to
import, so import this module only where it is needed.
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
MAX_STEM_LETTERS: Final = 7
"""Stems are truncated, so that "recommend" and "recommandation" match."""
MAX_NON_LATIN_LETTERS: Final = 5
"""Words of other alphabets, which have no stemmer, are truncated instead."""
HEADING_WEIGHT: Final = 2
"""How often a word of the title or a heading counts."""
SATURATION: Final = 1.2  # k1 of BM25
MIN_WORD_SCORE: Final = 1e-6
"""The score of a word that half of the chunks contain, for which BM25 gives 0."""
RANK_CONSTANT: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""
ROWS_PER_PARTITION: Final = 1000


def extract_terms(text: str) -> list[str]:
    """Return the index terms of `text`: stems without stop words, accents or case, in order.

    Scripts without spaces become overlapping pairs of characters.
    """
    return [term for word in split_words(text) for term in _terms_of_word(word)]


@lru_cache(CACHE_SIZE)
def _terms_of_word(word: str) -> tuple[str, ...]:
    if word.isascii():
        if word in stop_words():
            return ()
        stemmed = stem(word)
        return (stemmed[:MAX_STEM_LETTERS] if stemmed.isalpha() else stemmed,)
    word_terms: list[str] = []
    end = 0
    for run in UNSPACED_SCRIPTS.finditer(word):
        pairs = [run[0][start : start + 2] for start in range(max(len(run[0]) - 1, 1))]
        word_terms += [word[end : run.start()][:MAX_NON_LATIN_LETTERS], *pairs]
        end = run.end()
    return tuple(filter(None, [*word_terms, word[end:][:MAX_NON_LATIN_LETTERS]]))


class WordIndex:
    """An index of chunks by words. Add all chunks, then build it, then search."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._terms: list[list[str]] = []
        self._bm25: bm25s.BM25 | None = None

    def add(self, number: int, title: str, headings: Sequence[str], text: str) -> None:
        """Add a chunk, to be indexed by `build`."""
        self._numbers.append(number)
        heading_terms = extract_terms(" ".join([title, *headings]))
        self._terms.append(heading_terms * HEADING_WEIGHT + extract_terms(text))

    def build(self) -> None:
        """Index the chunks, which takes 10 s for 100,000."""
        if any(self._terms):
            self._bm25 = bm25s.BM25(k1=SATURATION, method="robertson")
            self._bm25.index(self._terms, show_progress=False)
            scores = self._bm25.scores["data"]
            np.maximum(scores, MIN_WORD_SCORE, out=scores)
        self._terms = []

    def search(self, query: str, limit: int) -> dict[int, float]:
        """Return the chunks that contain words of `query`, the best first, with their scores.

        Scores are relative to the best one. Common words only count if `query` has no others.
        """
        if self._bm25 is None:
            return {}
        query_terms = list(dict.fromkeys(extract_terms(query)))[:MAX_QUERY_TERMS]
        token_ids = self._bm25.get_tokens_ids(query_terms)
        if not token_ids:
            return {}
        scores = self._bm25.get_scores_from_ids(token_ids)
        best_score = scores.max()
        max_common_score = MIN_WORD_SCORE * MAX_QUERY_TERMS
        threshold = max_common_score if best_score > max_common_score else 0.0
        numbers = np.asarray(self._numbers)
        return _best(numbers, scores / best_score, limit, above=threshold / best_score)


class VectorIndex:
    """An index of chunks by meaning. Vectors are unit-length 4-byte floats."""

    def __init__(self, vectors: dict[int, bytes]) -> None:
        # A model may change without a new name: vectors of another length are then outdated.
        size = len(next(reversed(vectors.values()), b""))
        current = {number: vector for number, vector in vectors.items() if len(vector) == size}
        matrix = np.frombuffer(b"".join(current.values()), np.float32)
        self._numbers = np.fromiter(current, np.int64, len(current))
        self._matrix = matrix.reshape(len(current), size // matrix.itemsize)

    def search(self, vector: Sequence[float], limit: int) -> dict[int, float]:
        """Return the chunks nearest to `vector` with their cosines, the nearest first."""
        if self._matrix.shape[1] != len(vector):
            return {}
        # Not `@`: on matrices this small, the threads of a BLAS library waste time on spinning.
        cosines = np.einsum("ij,j", self._matrix, np.asarray(vector, np.float32))
        return _best(self._numbers, cosines, limit)


def _best(
    numbers: NDArray[np.int64], scores: NDArray[np.float32], limit: int, above: float = -np.inf
) -> dict[int, float]:
    """Return at most `limit` chunks with scores over `above`, best first, equals in order."""
    indices = np.flatnonzero(scores > above)
    if limit < len(indices):
        # Find the score at `limit` first, so that only the best need sorting.
        eligible = scores[indices]
        indices = indices[eligible >= np.partition(eligible, len(eligible) - limit)[-limit]]
    best = indices[np.argsort(-scores[indices], kind="stable")][:limit]
    return dict(zip(numbers[best].tolist(), scores[best].tolist(), strict=True))


def _fuse(rankings: Iterable[Mapping[int, float]], limit: int) -> dict[int, float]:
    """Merge rankings by reciprocal rank: return the best items with their highest scores.

    An item gains 1 / (60 + rank) per ranking. Ties are broken by the smaller number.
    """
    fused: defaultdict[int, float] = defaultdict(float)
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, (item, score) in enumerate(ranking.items(), 1):
            fused[item] += 1 / (RANK_CONSTANT + rank)
            scores[item] = max(score, scores.get(item, score))
    ranked = sorted(scores, key=lambda item: (-fused[item], item))
    return {item: scores[item] for item in ranked[:limit]}


class ChunkIndex:
    """Both indexes of the stored chunks, with the vectors of one model.

    A search first rebuilds them if a counter in the database shows that any process has changed
    documents.
    """

    def __init__(self, sessions: Sessions, model: str) -> None:
        self._sessions = sessions
        vector = case((ChunkRow.model == model, ChunkRow.vector))
        chunk = (ChunkRow.number, DocumentRow.title, ChunkRow.headings, ChunkRow.text, vector)
        rows = select(*chunk).join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        self._rows = rows.order_by(ChunkRow.number).execution_options(yield_per=ROWS_PER_PARTITION)
        self._updating = asyncio.Lock()
        self._by_words = WordIndex()
        self._by_meaning = VectorIndex({})
        self._changes = 0

    async def search(
        self, queries: Sequence[str], vectors: Sequence[Sequence[float]], limit: int
    ) -> dict[int, float]:
        """Return the best chunks by words and by meaning with their scores, best first.

        `vectors` are the embeddings of the queries, or empty.
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
        """Rebuild the indexes if documents have changed."""
        by_words, vectors = WordIndex(), dict[int, bytes]()

        def add(rows: Sequence[Any]) -> None:
            for *chunk, vector in rows:
                by_words.add(*chunk)
                if vector:
                    vectors[chunk[0]] = vector

        async with self._sessions() as session:
            # The rows may be newer than the counter; the next search then rebuilds once more.
            changes = await session.scalar(select(LibraryRow.changes)) or 0
            if changes == self._changes:
                return
            async for rows in (await session.stream(self._rows)).partitions():
                await asyncio.to_thread(add, rows)
        await asyncio.to_thread(by_words.build)
        self._by_words, self._by_meaning = by_words, VectorIndex(vectors)
        self._changes = changes

"""Find chunks by words (BM25 over stems) and by meaning (cosines of vectors).

The indexes are in the memory of a process and know chunks by their numbers. The libraries are slow
to import, so import this module only where it is needed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import case, select

from db.engine import Sessions
from db.models import ChunkRow, DocumentRow, LibraryRow
from db.word_index import WordIndex, choose_best

RANK_CONSTANT: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Buettcher 2009)."""
ROWS_PER_PARTITION: Final = 1000
Ranking = Mapping[int, float]
"""The scores of chunks by their numbers, the best chunk first."""


class VectorIndex:
    """An index of chunks by meaning.

    Vectors are unit-length 4-byte floats, in the order in which they were stored.
    """

    def __init__(self, vectors: dict[int, bytes]) -> None:
        lengths = [len(vector) for vector in vectors.values()]
        newest_length = 0
        if lengths:
            newest_length = lengths[-1]
        # A model may change under the same name. Vectors that have not the length of the newest
        # one are from before the change.
        current: dict[int, bytes] = {}
        for number, vector in vectors.items():
            if len(vector) == newest_length:
                current[number] = vector
        all_floats = np.frombuffer(b"".join(current.values()), np.float32)
        dimensions = newest_length // all_floats.itemsize
        self._numbers = np.fromiter(current, np.int64, len(current))
        self._matrix = all_floats.reshape(len(current), dimensions)

    def search(self, vector: Sequence[float], limit: int) -> dict[int, float]:
        """Return the chunks nearest to `vector` with their cosines, the nearest first."""
        _, dimensions = self._matrix.shape
        if len(vector) != dimensions:
            return {}
        # `@` would use the threads of a BLAS library, which waste time on matrices this small.
        column = np.asarray(vector, np.float32)
        cosines = np.einsum("ij,j", self._matrix, column)
        return choose_best(self._numbers, cosines, limit)


def _fuse(rankings: Iterable[Ranking], limit: int) -> dict[int, float]:
    """Merge rankings by reciprocal rank. Return the best chunks, each with its highest score.

    A chunk gains 1 / (60 + rank) in each ranking. Of two that gained as much, the one with the
    smaller number comes first.
    """
    gains: defaultdict[int, float] = defaultdict(float)
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            gains[number] += 1 / (RANK_CONSTANT + rank)
        for number, score in ranking.items():
            highest = scores.get(number, score)
            scores[number] = max(score, highest)
    by_number = sorted(scores)
    # This second sort keeps the order of those that gained as much.
    ranked = sorted(by_number, key=lambda number: gains[number], reverse=True)
    return {number: scores[number] for number in ranked[:limit]}


class ChunkIndex:
    """Both indexes of the stored chunks, with the vectors of one model.

    A search first rebuilds them if any process has changed documents, which a counter in the
    database shows.
    """

    def __init__(self, sessions: Sessions, model: str) -> None:
        self._sessions = sessions
        is_of_model = ChunkRow.model == model
        self._rows = (
            select(
                ChunkRow.number,
                DocumentRow.title,
                ChunkRow.headings,
                ChunkRow.text,
                case((is_of_model, ChunkRow.vector)),
            )
            .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
            .order_by(ChunkRow.number)
            .execution_options(yield_per=ROWS_PER_PARTITION)
        )
        self._updating = asyncio.Lock()
        self._by_words = WordIndex()
        self._by_meaning = VectorIndex({})
        self._changes = 0

    async def search(
        self,
        queries: Sequence[str],
        vectors: Sequence[Sequence[float]],
        limit: int,
    ) -> dict[int, float]:
        """Return the best chunks by words and by meaning with their scores, best first.

        `vectors` are the embeddings of the queries, or empty.
        """
        async with self._updating:
            await self._update()
        # Taken now: the next search may replace the indexes while this one is in its thread.
        by_words = self._by_words
        by_meaning = self._by_meaning

        def rank() -> dict[int, float]:
            rankings: list[Ranking] = []
            for query in queries:
                rankings.append(by_words.search(query, limit))
            for vector in vectors:
                rankings.append(by_meaning.search(vector, limit))
            return _fuse(rankings, limit)

        return await asyncio.to_thread(rank)

    async def measure_rarity(self, words: Iterable[str]) -> dict[str, float]:
        """Return how rare each word is in the chunks, from about 0 to 1 if no chunk has it."""
        async with self._updating:
            await self._update()
        return {word: self._by_words.measure_rarity(word) for word in words}

    async def _update(self) -> None:
        """Rebuild the indexes if documents have changed."""
        by_words = WordIndex()
        vectors: dict[int, bytes] = {}

        def add(rows: Sequence[Any]) -> None:
            for number, title, headings, text, vector in rows:
                by_words.add(number, title, headings, text)
                if vector:
                    vectors[number] = vector

        async with self._sessions() as session:
            # Read before the rows. If a change comes in between, the next search rebuilds again.
            counter = await session.scalar(select(LibraryRow.changes))
            changes = counter or 0
            if changes == self._changes:
                return
            stream = await session.stream(self._rows)
            async for rows in stream.partitions():
                await asyncio.to_thread(add, rows)
        await asyncio.to_thread(by_words.build)
        self._by_words = by_words
        self._by_meaning = VectorIndex(vectors)
        self._changes = changes

"""Synthetic documents, the same in every run; also the source of their vectors.

Chunks are made of words as unevenly common as those of a language (Zipf), 200 to a chunk, 10 chunks
to a document; a query holds 3 to 8 such words. Vectors have a direction that all share, as those of
real models do, a topic, a document and some of their own; a query is about a topic.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from agent.documents.embedding import Embedder
from db.documents.chunking import Section
from db.documents.reading import Document

VOCABULARY = 20_000
WORDS = 200
PARTS = 10
DIMENSIONS = 384
TOPICS = 100
MODEL = "benchmark"


class Corpus(Embedder):
    """Endless synthetic documents: `texts` and `vectors` of all chunks that were made."""

    def __init__(self, seed: int = 7) -> None:
        self.name = MODEL
        self._random, self._chance = random.Random(seed), np.random.default_rng(seed)
        self._vocabulary = [
            "".join(self._random.choices("bdfgklmoprtuvz", k=7))
            for _ in range(VOCABULARY)
        ]
        self._common = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
        self._shared = self._chance.normal(size=DIMENSIONS)
        self._topics = self._chance.normal(size=(TOPICS, DIMENSIONS))
        self._made: list[NDArray[np.float32]] = []
        self.texts: list[str] = []

    @property
    def vectors(self) -> NDArray[np.float32]:
        return np.concatenate(self._made)

    def words(self, count: int) -> str:
        return " ".join(
            self._random.choices(self._vocabulary, cum_weights=self._common, k=count)
        )

    def query(self) -> str:
        return self.words(self._random.randint(3, 8))

    def documents(self, chunks: int) -> Iterator[Document]:
        """Yield documents until so many chunks have been made in all."""
        for number in range(len(self.texts), chunks, PARTS):
            texts = [self.words(WORDS) for _ in range(PARTS)]
            self.texts += texts
            sections = tuple(
                Section((f"Part {part}",), text) for part, text in enumerate(texts)
            )
            name = f"{number:09d}.md"
            yield Document(
                name, self.words(2), "markdown", name, 1600 * PARTS, sections
            )

    def query_vector(self) -> NDArray[np.float32]:
        topic = self._topics[self._chance.integers(TOPICS)]
        return unit(self._shared + topic + self._chance.normal(0, 1.5, DIMENSIONS))

    async def embed(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return the vectors of chunks in their order; of one text that of a question."""
        if len(texts) == 1:
            return [self.query_vector().tolist()]
        documents = -(-len(texts) // PARTS)
        centres = (
            self._shared + self._topics[self._chance.integers(0, TOPICS, documents)]
        )
        centres = (centres + self._chance.normal(size=centres.shape)).repeat(PARTS, 0)[
            : len(texts)
        ]
        made = unit(centres + self._chance.normal(0, 0.7, centres.shape))
        self._made.append(made)
        return [vector.tolist() for vector in made]


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    """Scale vectors, or one, to length 1."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return scaled

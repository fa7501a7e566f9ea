"""What no table knows, by meaning: the phrase of the tables that a text is nearest to.

It needs an embedding source. The vectors of a language's phrases (dishes, words, topics) are made
once, when they are first needed, and kept in memory; a message's own are asked for in one request.
Whatever goes wrong, the tables serve.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from agent.documents.passages import Embedder, EmbeddingError, embed
from agent.house_sommelier.data import described, entries, topics
from agent.house_sommelier.lexicon import Glossary, Meaning
from agent.text import Language

logger = logging.getLogger(__name__)

NEAR: Final = 0.4
"""How much of the way from a typical phrase to one that means the same the nearest has to go.

Models differ in what cosine they give to texts that have nothing in common: 0.1 with one, 0.75
with another. The median over all phrases tells which, so the way is counted from there to 1.
"""
LEAD: Final = 0.02
"""How much of that the nearest has to lead by, before the nearest phrase that means another thing:
a source that finds everything alike tells nothing."""
SECONDS: Final = 1.5
"""How long a message waits for vectors."""
TABLE_SECONDS: Final = 60.0
"""How long a batch of the tables' phrases may take, beside the talk."""
REST_SECONDS: Final = 60.0
"""How long a source that failed or was too slow is not asked again."""
BATCH: Final = 32
_MOST_ASKED: Final = 8
_MOST_REMEMBERED: Final = 2_000
_COMPARED: Final = frozenset(
    "dish hue styles text sweetness bodies tannins acidities allergen abstains people special "
    "festive feeling mourning party reception meal talk cue".split()
)
"""Fields of phrases that a text can be near to: dishes, kinds, tastes, people and occasions."""

Meanings = tuple[Meaning, ...]


class Nearest(NamedTuple):
    """The phrases of a language: their vectors, of length 1, and what means which of `meanings`."""

    meanings: Sequence[Meanings]
    owners: np.ndarray
    vectors: np.ndarray

    def to(self, vectors: np.ndarray) -> list[Meanings]:
        """What the phrase nearest to each vector means; nothing where none is clearly near.

        Raises:
            ValueError: the vectors are of another length.
        """
        return [self._nearest(row) for row in vectors @ self.vectors.T]

    def _nearest(self, likeness: np.ndarray) -> Meanings:
        found = self.owners[likeness.argmax()]
        best, usual = likeness.max(), np.median(likeness)
        rival = likeness[self.owners != found].max(initial=-1)
        way = 1 - usual
        is_near = best - usual >= NEAR * way and best - rival >= LEAD * way
        return self.meanings[found] if is_near else ()


class MeaningIndex:
    """Finds what texts mean by an embedding source, and remembers it."""

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder, self._seconds = embedder, seconds
        self._tables: dict[Language, asyncio.Task[Nearest | None]] = {}
        self._known: dict[tuple[Language, str], Meanings] = {}
        self._rests_until = 0.0

    async def glossary(
        self, texts: Sequence[str], language: Language, *, may_ask: bool = True
    ) -> Glossary:
        """What `texts` mean, of those that come near to a phrase of the tables. Never raises.

        At most one request, of at most 8 texts, the last ones; with `may_ask` off, from memory.
        """
        new = [text for text in texts if (language, text) not in self._known][-_MOST_ASKED:]
        clock = asyncio.get_running_loop().time
        if new and may_ask and clock() >= self._rests_until:
            try:
                async with asyncio.timeout(self._seconds):
                    await self._look_up(new, language)
            except (EmbeddingError, TimeoutError, ValueError) as error:
                self._rests_until = clock() + REST_SECONDS
                logger.warning("Nothing is understood by meaning for a minute: %s", error or "slow")
        known = ((text, self._known.get((language, text), ())) for text in texts)
        return tuple((text, meanings) for text, meanings in known if meanings)

    async def close(self) -> None:
        """Give up the phrases whose vectors are being made."""
        tasks = list(self._tables.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, texts: Sequence[str], language: Language) -> None:
        if language not in self._tables:
            self._tables[language] = asyncio.create_task(self._made(language))
        # Shielded: a message that cannot wait leaves them to the next.
        table = await asyncio.shield(self._tables[language])
        if table is None:
            self._tables.pop(language, None)
            raise EmbeddingError("the phrases of the tables have no vectors")
        vectors = np.asarray(await embed(self._embedder, texts, self._seconds), np.float32)
        found = table.to(vectors)
        self._known |= {(language, text): each for text, each in zip(texts, found, strict=True)}
        for key in [*self._known][:-_MOST_REMEMBERED]:
            del self._known[key]

    async def _made(self, language: Language) -> Nearest | None:
        """The phrases of a language with their vectors; None if the source does not make them."""
        said = await asyncio.to_thread(lambda: dict(phrases_of(language)))
        rows: list[np.ndarray] = []
        with suppress(EmbeddingError, ValueError):
            for start in range(0, len(said), BATCH):
                texts = [*said][start : start + BATCH]
                made = await embed(self._embedder, texts, TABLE_SECONDS)
                rows.append(np.asarray(made, np.float32))
            places = {meant: at for at, meant in enumerate(dict.fromkeys(said.values()))}
            owners = np.array([places[meant] for meant in said.values()])
            return Nearest([*places], owners, np.concatenate(rows))
        return None


def phrases_of(language: Language) -> Iterator[tuple[str, Meanings]]:
    """What can be near to a text: phrases of the tables, questions and answers of topics.

    Those that say nothing of a wine (a greeting, "birthday") count too: what is nearest to one of
    them is no dish and no taste.
    """
    for name, topic in topics(language).items():
        asked = (Meaning("topic", (name,)),)
        yield from ((topic.question, asked), (topic.answer, asked))
    for entry in (*described(), *entries()):
        is_spoken = entry.language in (language, "any")
        if is_spoken and any(field in _COMPARED for field, _ in entry.meanings):
            # Alone "softer" is "soft".
            meanings = tuple(Meaning(*each) for each in entry.meanings if each[0] != "cue")
            yield from ((phrase, meanings) for phrase in entry.phrases)

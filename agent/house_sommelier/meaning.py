"""What no table knows, by meaning: the phrase of the tables that a text is nearest to.

It needs an embedding source. The vectors of a language's phrases (dishes, words, topics) are made
once, when they are first needed, and kept in memory; a message's own are asked for in one request.
Whatever goes wrong, the tables serve.
"""

import asyncio
import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from agent.documents.passages import Embedder, EmbeddingError, embed
from agent.house_sommelier.data import described, dishes, entries, topics
from agent.house_sommelier.lexicon import Glossary, Meaning
from agent.text import Language

logger = logging.getLogger(__name__)

NEAR: Final = 0.4
"""How much of the way from a typical phrase to one that means the same the nearest has to go.

Models differ in what cosine they give to texts that have nothing in common: 0.1 with one, 0.75
with another. The median over all phrases tells which, so the way is counted from there to 1.
"""
AS_NEAR: Final = 0.02
"""How much of that way phrases are behind the nearest that are as near as it is.

Of these more than half must mean the same: a source that finds everything alike tells nothing.
"""
SECONDS: Final = 1.5
"""How long a message waits for vectors; the first of a language, for those of its phrases too."""
TABLE_SECONDS: Final = 60.0
"""How long a batch of the tables' phrases may take, beside the talk."""
REST_SECONDS: Final = 60.0
"""How long a source that failed or was too slow is not asked again."""
BATCH: Final = 64
_MOST_ASKED: Final = 8
_MOST_REMEMBERED: Final = 2_000
_COMPARED: Final = frozenset(
    "dish hue styles text sweetness bodies tannins acidities allergen abstains people special "
    "festive feeling mourning party reception meal talk cue".split()
)
"""Fields of phrases that a text can be near to: dishes, kinds, tastes, people and occasions."""

Meanings = tuple[Meaning, ...]
_Table = tuple["Phrases", "Phrases"]
"""The phrases of a language, and the questions of its topics."""


class Phrases:
    """Phrases, and their vectors of length 1."""

    def __init__(self, meanings: Sequence[Meanings], vectors: np.ndarray) -> None:
        self._meanings, self._vectors = meanings, vectors
        said = [_sense(each) for each in meanings]
        places = {sense: at for at, sense in enumerate(dict.fromkeys(said))}
        self._senses = np.array([places[sense] for sense in said])

    def nearest(self, vector: np.ndarray) -> Meanings:
        """What the phrase nearest to a vector means; nothing where none is clearly near.

        Raises:
            ValueError: the vector is of another length.
        """
        likeness = self._vectors @ vector
        usual, best = np.median(likeness), likeness.max()
        way = max(1 - usual, 0)
        votes = np.bincount(self._senses[likeness >= best - AS_NEAR * way])
        if best - usual < NEAR * way or 2 * votes.max() <= votes.sum():
            return ()
        of_sense = np.where(self._senses == votes.argmax(), likeness, -1)
        return self._meanings[int(of_sense.argmax())]


def _sense(meanings: Meanings) -> Hashable:
    """What a phrase comes to: of dishes their pairing."""
    places = [int(place) for field, values in meanings if field == "dish" for place in values]
    return tuple(dishes()[place].pairing for place in places) or meanings


class MeaningIndex:
    """Finds what texts mean by an embedding source, and remembers it."""

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder, self._seconds = embedder, seconds
        self._tables: dict[Language, asyncio.Task[_Table | None]] = {}
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
                await self._look_up(new, language)
            except (EmbeddingError, ValueError) as error:
                self._rests_until = clock() + REST_SECONDS
                logger.warning("Nothing is understood by meaning for a minute: %s", error)
        known = ((text, self._known.get((language, text), ())) for text in texts)
        return tuple((text, meanings) for text, meanings in known if meanings)

    async def close(self) -> None:
        """Give up the phrases whose vectors are being made."""
        tasks = list(self._tables.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, texts: Sequence[str], language: Language) -> None:
        making = self._tables.get(language)
        if making is None:
            making = self._tables[language] = asyncio.create_task(self._made(language))
            await asyncio.wait([making], timeout=self._seconds)
        if not making.done():
            return
        table = making.result()
        if table is None:
            self._tables.pop(language, None)
            raise EmbeddingError("the phrases of the tables have no vectors")
        made = await embed(self._embedder, texts, self._seconds)
        for text, vector in zip(texts, np.asarray(made, np.float32), strict=True):
            found = (each for phrases in table for each in phrases.nearest(vector))
            self._known[language, text] = tuple(found)
        for key in [*self._known][:-_MOST_REMEMBERED]:
            del self._known[key]

    async def _made(self, language: Language) -> _Table | None:
        """The phrases of a language with their vectors; None if the source does not make them."""
        try:
            return await self._phrases(phrases_of(language)), await self._phrases(asked(language))
        except (EmbeddingError, ValueError):
            return None

    async def _phrases(self, said: Mapping[str, Meanings]) -> Phrases:
        texts, rows = [*said], list[np.ndarray]()
        for start in range(0, len(texts), BATCH):
            made = await embed(self._embedder, texts[start : start + BATCH], TABLE_SECONDS)
            rows.append(np.asarray(made, np.float32))
        return Phrases([*said.values()], np.concatenate(rows))


def phrases_of(language: Language) -> dict[str, Meanings]:
    """The phrases of the tables that a text can be near to, and what they mean.

    Those that say nothing of a wine (a greeting, "party") count too: what is nearest to one of
    them is no dish and no taste.
    """
    return {
        # Alone "softer" is "soft".
        phrase: tuple(Meaning(*each) for each in entry.meanings if each[0] != "cue")
        for entry in (*described(), *entries())
        if entry.language in (language, "any")
        and any(field in _COMPARED for field, _ in entry.meanings)
        for phrase in entry.phrases
    }


def asked(language: Language) -> dict[str, Meanings]:
    """The questions and the answers of all topics."""
    return {
        text: (Meaning("topic", (name,)),)
        for name, topic in topics(language).items()
        for text in (topic.question, topic.answer)
    }

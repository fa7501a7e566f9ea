"""What no table knows, by meaning: the phrase of the tables that a text is nearest to.

It needs an embedding source. The vectors of a language's phrases (dishes, words, topics) are made
once, when they are first needed, and kept in memory; a message's own are asked for in one request.
Whatever goes wrong, the tables serve.
"""

import asyncio
import logging
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from agent.documents.vectors import Embedder, EmbeddingError, embed
from agent.house_sommelier.data import described, dishes, entries, topics
from agent.house_sommelier.lexicon import Glossary, Meaning
from agent.text import Language

logger = logging.getLogger(__name__)

RIGHT: Final = 2 / 3
"""How many of the phrases that are about as sure as a text must be told right by those around them.

Models differ in what cosine they give to texts that have nothing in common: 0.1 with one, 0.75
with another; and a model may not know a language at all. So each source sets its own bar: every
phrase is left out and told by the others, from the surest on, and where fewer are right is the bar.
A source that tells the tables' own phrases wrong is not believed about others.
"""
AS_SURE: Final = 0.05
"""How many of all phrases are compared at a time, as being about as sure."""
AROUND: Final = 10
"""How many of the nearest phrases tell what a text means."""
ASKED_AROUND: Final = 3
"""The same of questions and answers, of which a topic has but two."""
SECONDS: Final = 1.5
"""How long a message waits for vectors; the first of a language, for those of its phrases too."""
TABLE_SECONDS: Final = 60.0
"""How long a batch of the tables' phrases may take, beside the talk."""
REST_SECONDS: Final = 60.0
"""How long a source that failed or was too slow is not asked again."""
BATCH: Final = 64
BLOCK: Final = 256
_MOST_ASKED: Final = 8
_MOST_REMEMBERED: Final = 2_000
_COMPARED: Final = frozenset(
    "dish hue styles text sweetness bodies tannins acidities allergen abstains people special "
    "festive feeling mourning party reception meal talk cue".split()
)
"""Fields of phrases that a text can be near to: dishes, kinds, tastes, people and occasions."""

_TOLD: Final = frozenset("hue styles text sweetness bodies tannins acidities topic".split())
"""Fields besides dishes that a text is told to mean; what is near to others means nothing."""
NOTHING: Final = ""
_TINY: Final = 1e-9

Meanings = tuple[Meaning, ...]
_Table = tuple["Phrases", "Phrases"]
"""The phrases of a language, and the questions of its topics."""


class Phrases:
    """Phrases with their vectors, and how sure their nearest must be to tell what a text means."""

    def __init__(self, meanings: Sequence[Meanings], vectors: np.ndarray, around: int) -> None:
        self._meanings, self._around = meanings, around
        self._middle = vectors.mean(0)
        self._vectors = _directions(vectors - self._middle)
        senses = [_senses(each) for each in meanings]
        places = {sense: at for at, sense in enumerate(dict.fromkeys(chain((NOTHING,), *senses)))}
        self._has = np.zeros((len(meanings), len(places)), np.float32)
        for at, said in enumerate(senses):
            self._has[at, [places[sense] for sense in said]] = 1
        self._bar = self._deserved()

    def nearest(self, vector: np.ndarray) -> Meanings:
        """What the phrases nearest to a vector mean; nothing where they do not agree, or are far.

        Raises:
            ValueError: the vector is of another length.
        """
        if vector.shape != self._middle.shape:
            raise ValueError("a vector of another length")
        likeness = self._vectors @ _directions(vector - self._middle)
        (sense,), (sureness,) = self._told(likeness[None])
        if not sense or sureness < self._bar:
            return ()
        return self._meanings[int(np.where(self._has[:, sense], likeness, -2).argmax())]

    def _told(self, likeness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row of likenesses the sense most told by the nearest, and how sure it is.

        That is the sense's share among them, times how near the nearest is.
        """
        nearest = np.argpartition(-likeness, self._around, axis=1)[:, : self._around]
        near = np.maximum(np.take_along_axis(likeness, nearest, axis=1), 0)
        votes = np.einsum("rn,rns->rs", near**4, self._has[nearest])
        told = votes.max(1) / np.maximum((near**4).sum(1), _TINY)
        return votes.argmax(1), told * near.max(1)

    def _deserved(self) -> float:
        """The lowest bar above which the others tell phrases right often enough."""
        told = [self._told_by_others(start) for start in range(0, len(self._vectors), BLOCK)]
        senses, sureness = (np.concatenate(each) for each in zip(*told, strict=True))
        tells = np.flatnonzero(senses)
        tells = tells[np.argsort(-sureness[tells], kind="stable")]
        at_once = max(int(AS_SURE * len(self._vectors)), 1)
        if len(tells) < at_once:
            return np.inf
        is_right = self._has[tells, senses[tells]]
        share = np.convolve(is_right, np.full(at_once, 1 / at_once), "valid")
        is_enough = np.append(share >= RIGHT, False)
        last = int(is_enough.argmin()) - 1
        return float(sureness[tells[last + at_once // 2]]) if last >= 0 else np.inf

    def _told_by_others(self, start: int) -> tuple[np.ndarray, np.ndarray]:
        likeness = self._vectors[start : start + BLOCK] @ self._vectors.T
        rows = np.arange(len(likeness))
        likeness[rows, start + rows] = -1
        return self._told(likeness)


def _directions(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    directions: np.ndarray = vectors / np.maximum(lengths, _TINY)
    return directions


def _senses(meanings: Meanings) -> list[Hashable]:
    """What a phrase comes to: of dishes their foods, of tastes each value."""
    senses = list[Hashable]()
    for field, values in meanings:
        if field == "dish":
            senses += (food for place in values for food in dishes()[int(place)].foods)
        elif field in _TOLD:
            senses += ((field, word) for value in values for word in value.split())
    return senses or [NOTHING]


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
            return (
                await self._phrases(phrases_of(language), AROUND),
                await self._phrases(asked(language), ASKED_AROUND),
            )
        except (EmbeddingError, ValueError):
            return None

    async def _phrases(self, said: Mapping[str, Meanings], around: int) -> Phrases:
        texts, rows = [*said], list[np.ndarray]()
        for start in range(0, len(texts), BATCH):
            made = await embed(self._embedder, texts[start : start + BATCH], TABLE_SECONDS)
            rows.append(np.asarray(made, np.float32))
        return await asyncio.to_thread(Phrases, [*said.values()], np.concatenate(rows), around)


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

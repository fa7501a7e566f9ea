"""Where in its sources a sentence stands: the sources' own sentences that it rests on.

Whether a sentence says what its source says is not judged: no rule of words and no model fitted to
them could (docs/decisions/0006-answers.md). A sentence stands as it is worded if its words are
those of a sentence of the source, with some left out at most. In the place of any other stand the
sentences that share most with it, numbers, names and words in six languages, those weighing most
that few sentences have.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from agent.documents.passages import (
    PASSAGE_CHARS,
    Chunk,
    Keys,
    Vocabulary,
    is_anaphor,
    items,
    verbatim,
    vocabulary,
)
from agent.text import fold, language_of, sentences, truncate_at_boundary, words

MOST: Final = 3
"""Sentences of its sources that one sentence may rest on, beside those that these point back to."""
LEAST_SHARED: Final = 2.0
"""What a sentence shares at least with the first that it rests on, and adds by each further one."""
NEXT: Final = 2.0
"""How many times more a sentence beside one that was found counts than it shares."""
ELSEWHERE: Final = 0.3
"""The same of any other sentence."""
TOPIC: Final = 0.3
"""What a word counts that only the title and headings above a sentence have."""
TYPICAL: Final = 20
"""Sentences of an article: in a shorter text words are as telling as in that."""
MOST_LEFT_OUT: Final = 4
"""Words that are left out between others of a sentence that is still its source's own."""


StandingKind = Literal["kept", "replaced", "stopped"]


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences of a source that follow each other, as they stand there."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is shown of a sentence: itself (kept), passages in its place (replaced), or nothing."""

    kind: StandingKind
    passages: tuple[Passage, ...] = ()


class Source:
    """Passages by their sentences, read once."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._language = language_of(" ".join(chunk.text for chunk in chunks))
        self._told = vocabulary(self._language or "en")
        self._said = [(chunk, said) for chunk in chunks for said in sentences(chunk.text)]
        self._own = [self._told.telling(said) for _, said in self._said]
        self._keys = [self._of(said) for _, said in self._said]
        topics = {chunk.id: self._of(f"{chunk.title} {chunk.location}") for chunk in chunks}
        self._topics = [topics[chunk.id] for chunk, _ in self._said]
        counts = Counter(key for keys in self._keys for key in keys)
        total = max(len(self._said), TYPICAL) + 1
        self._weights = {key: math.log(total / (count + 0.5)) for key, count in counts.items()}

    def _of(self, text: str) -> Keys:
        return Keys().union(*items(text, self._language))

    def standing(self, text: str) -> Standing:
        """Tell what is shown of a sentence."""
        if self.has(text):
            return Standing("kept")
        found = self._passages(self._places(text))
        return Standing("replaced", found) if found else Standing("stopped")

    def has(self, text: str) -> bool:
        """Say whether a text stands there, as a part of it or with words left out of a sentence."""
        if any(verbatim(text, chunk.text) for chunk in self._chunks):
            return True
        said = self._told.telling(text)
        return not said or any(_is_shortened(said, own, self._told) for own in self._own)

    def names(self, text: str, question: str) -> bool:
        """Say whether all words of a text that say something are of the passages or a question."""
        language = language_of(text)
        told = vocabulary(language or self._language or "en")
        known = Keys().union(*self._keys, *self._topics, *items(question, language))
        return all(keys & known for keys in items(" ".join(told.telling(text)), language))

    def _places(self, text: str) -> list[int]:
        """The sentences that a text rests on: those that share most with it, in their order."""
        said = list(dict.fromkeys(items(text, language_of(text))))
        held, chosen = [0.0] * len(said), list[int]()
        while len(chosen) < min(MOST, len(self._said)):
            adds = [self._adds(at, said, held, chosen) for at in range(len(self._said))]
            best = max(range(len(adds)), key=adds.__getitem__)
            if adds[best] < LEAST_SHARED:
                break
            chosen.append(best)
            held = [max(self._weight(keys, at) for at in chosen) for keys in said]
        return sorted(chosen)

    def _adds(
        self, at: int, said: Sequence[Keys], held: Sequence[float], chosen: Sequence[int]
    ) -> float:
        """What a sentence shares with a text that those chosen before it do not."""
        weights = (self._weight(keys, at) for keys in said)
        added = sum(max(0.0, each - was) for each, was in zip(weights, held, strict=True))
        if not chosen:
            return added
        beside = any(self._follows(*sorted((at, each))) for each in chosen)
        return added * (NEXT if beside else ELSEWHERE)

    def _weight(self, keys: Keys, at: int) -> float:
        if shared := keys & self._keys[at]:
            return max(self._weights[key] for key in shared)
        return TOPIC if keys & self._topics[at] else 0.0

    def _follows(self, one: int, other: int) -> bool:
        return other == one + 1 and self._said[one][0] is self._said[other][0]

    def _passages(self, places: Sequence[int]) -> tuple[Passage, ...]:
        """Sentences as they stand, with those that they point back to; neighbours together."""
        back = {at - 1 for at in places if at and self._follows(at - 1, at) and self._points(at)}
        runs: list[list[int]] = []
        for at in sorted({*places, *back}):
            if runs and self._follows(runs[-1][-1], at):
                runs[-1].append(at)
            else:
                runs.append([at])
        return tuple(Passage(self._said[run[0]][0].path, self._text(run)) for run in runs)

    def _points(self, at: int) -> bool:
        return any(map(is_anaphor, words(self._said[at][1][:20])[:1]))

    def _text(self, run: Sequence[int]) -> str:
        said = " ".join(" ".join(self._said[at][1].split()) for at in run)
        return truncate_at_boundary(said.replace("[", "(").replace("]", ")"), PASSAGE_CHARS)


def _is_shortened(said: Sequence[str], own: Sequence[str], told: Vocabulary) -> bool:
    """Whether words are those of another sentence, in its order, with none left out that counts."""
    exact = [told.exact(token) for token in own]
    places, at = list[int](), 0
    for token in map(told.exact, said):
        at = next((n for n in range(at, len(own)) if exact[n] == token), -1) + 1
        if not at:
            return False
        places.append(at - 1)
    left = [(n, token) for n, token in enumerate(own) if n not in places]
    within = [token for n, token in left if places and places[0] < n < places[-1]]
    return (
        len(within) <= MOST_LEFT_OUT
        and not any(each[0].isupper() or each[0].isdecimal() for each in within)
        and not any(told.is_qualifier(fold(token)) for _, token in left)
    )


@lru_cache(maxsize=64)
def source_of(chunks: tuple[Chunk, ...]) -> Source:
    """Read passages, each set of them once."""
    return Source(chunks)


async def read_sources(chunks: Sequence[Chunk]) -> None:
    """Read what may be cited of these passages, each document and all together, beside the loop."""
    paths = dict.fromkeys(chunk.path for chunk in chunks)
    apart = (tuple(chunk for chunk in chunks if chunk.path == path) for path in paths)
    for each in (*apart, tuple(chunks)):
        await asyncio.to_thread(source_of, each)


def standing(text: str, chunks: Sequence[Chunk]) -> Standing:
    """Tell what is shown of a sentence that cites these passages."""
    return source_of(tuple(chunks)).standing(text)

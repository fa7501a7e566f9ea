"""Indexes of parts of names: words by their lengths, groups of letters, and the rarest words.

They find the few texts that are worth comparing with another, without a look at each.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

GROUP_LETTERS: Final = 3
MAX_CANDIDATES: Final = 400
"""How many texts are compared at most, those that have the most groups in common."""


class SpellingIndex:
    """Words by their numbers of letters: a misspelt word has about as many."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words: dict[int, list[str]] = defaultdict(list)
        for word in words:
            self._words[len(word)].append(word)

    def find(self, word: str, edits: int) -> dict[str, int]:
        """Return the other words that differ in so many letters at most, with their distances."""
        found: dict[str, int] = {}
        for letters in range(len(word) - edits, len(word) + edits + 1):
            words = self._words.get(letters, [])
            near = process.extract(
                word, words, scorer=OSA.distance, score_cutoff=edits, limit=None
            )
            found |= {other: distance for other, distance, _ in near if other != word}
        return found


class SimilarTexts:
    """Texts by their groups of three letters: "opus" has "opu" and "pus"."""

    def __init__(self, texts: Sequence[str]) -> None:
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for group in _groups_of(text):
                numbers[group].append(number)
        self._count = len(texts)
        self._numbers: dict[str, NDArray[np.int32]] = {
            group: np.array(own, np.int32) for group, own in numbers.items()
        }

    def find(self, text: str, min_share: float) -> list[int]:
        """Return the numbers of the texts that have this share of the groups of `text`.

        If there are too many, return those with the largest share.
        """
        groups = _groups_of(text)
        known = [self._numbers[group] for group in groups if group in self._numbers]
        if not known:
            return []
        counts = np.bincount(np.concatenate(known), minlength=self._count)
        found = np.flatnonzero(counts >= max(min_share * len(groups), 1))
        if len(found) > MAX_CANDIDATES:
            order = np.argsort(-counts[found], kind="stable")
            found = found[order[:MAX_CANDIDATES]]
        return [int(number) for number in sorted(found.tolist())]


class MentionIndex:
    """Sets of words by one word of each: a text that mentions all of a set has this one too."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)

    def add(self, number: int, words: Collection[str]) -> None:
        """Add the words of a name or a producer; nothing without any."""
        if words:
            longest = max(words, key=lambda word: (len(word), word))
            self._parts[longest].append((number, frozenset(words)))

    def count_words(self, words: Collection[str]) -> Counter[int]:
        """Return how many words are in the sets of each number that these words mention whole."""
        counts = Counter[int]()
        for number, part in self._mentioned(frozenset(words)):
            counts[number] += len(part)
        return counts

    def _mentioned(self, words: frozenset[str]) -> Iterator[tuple[int, frozenset[str]]]:
        for word in words:
            for number, part in self._parts.get(word, ()):
                if part <= words:
                    yield number, part


def _groups_of(text: str) -> set[str]:
    """Return the groups of letters of a text; a shorter text is one itself."""
    last_start = max(len(text) - GROUP_LETTERS, 0)
    return {text[start : start + GROUP_LETTERS] for start in range(last_start + 1)}

"""Indexes of parts of names: words by their lengths, groups of letters, and longest words.

Each finds the few names that are worth comparing with a text, without comparing all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

Numbers = NDArray[np.int32]
"""The numbers of texts."""
NumberedWords = tuple[int, frozenset[str]]
"""The words of a name or a producer, after the number of the wine."""

GROUP_LETTERS: Final = 3
MAX_CANDIDATES: Final = 400
"""How many texts are found at most: those that have the most groups in common."""


class SpellingIndex:
    """Finds words that are spelt alike.

    The words are kept by length: a misspelt word is about as long.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words_by_length: dict[int, list[str]] = defaultdict(list)
        for word in words:
            self._words_by_length[len(word)].append(word)

    def find(self, word: str, max_edits: int) -> dict[str, int]:
        """Return the other words at most `max_edits` letters away, with their distances."""
        distances: dict[str, int] = {}
        shortest = len(word) - max_edits
        longest = len(word) + max_edits
        for length in range(shortest, longest + 1):
            words = self._words_by_length.get(length, [])
            near = process.extract(
                word,
                words,
                scorer=OSA.distance,
                score_cutoff=max_edits,
                limit=None,
            )
            for other, distance, _ in near:
                distances[other] = distance
        distances.pop(word, None)
        return distances


class SimilarTexts:
    """Finds texts that share groups of three letters: "opus" has the groups "opu" and "pus".

    The number of a text is its position in the list.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        numbers_by_group: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for group in _letter_groups(text):
                numbers_by_group[group].append(number)
        self._text_count = len(texts)
        self._numbers_by_group: dict[str, Numbers] = {}
        for group, numbers in numbers_by_group.items():
            self._numbers_by_group[group] = np.array(numbers, np.int32)

    def find(self, text: str, min_share: float) -> list[int]:
        """Return the numbers of the texts that have this share of the groups of `text`.

        If there are too many, return those with the largest share.
        """
        groups = _letter_groups(text)
        with_group: list[Numbers] = []
        for group in groups:
            numbers_of_group = self._numbers_by_group.get(group)
            if numbers_of_group is not None:
                with_group.append(numbers_of_group)
        if not with_group:
            return []
        # A text is among these numbers once for each group that it shares with `text`.
        numbers = np.concatenate(with_group)
        shared_counts = np.bincount(numbers, minlength=self._text_count)
        min_shared = max(min_share * len(groups), 1)
        found = np.flatnonzero(shared_counts >= min_shared)
        if len(found) > MAX_CANDIDATES:
            counts = shared_counts[found]
            most_shared_first = np.argsort(-counts, kind="stable")
            best = most_shared_first[:MAX_CANDIDATES]
            found = found[best]
        found_numbers: list[int] = found.tolist()
        return sorted(found_numbers)


class MentionIndex:
    """Finds the sets of words that a text mentions. Each set is filed under its longest word.

    A text that mentions all words of a set also mentions the longest one. So only the sets that are
    filed under a word of the text have to be compared with it.
    """

    def __init__(self) -> None:
        self._sets: defaultdict[str, list[NumberedWords]] = defaultdict(list)

    def add(self, number: int, words: Collection[str]) -> None:
        """Add the words of a name or a producer. `number` is that of its wine."""
        if not words:
            return
        longest = max(words, key=len)
        numbered_words = (number, frozenset(words))
        self._sets[longest].append(numbered_words)

    def count_words(self, words: Collection[str]) -> Counter[int]:
        """Return, by number, how many words there are in the sets that these words contain."""
        mentioned = frozenset(words)
        counts: Counter[int] = Counter()
        for word in mentioned:
            for number, name_words in self._sets.get(word, ()):
                if name_words <= mentioned:
                    counts[number] += len(name_words)
        return counts


def _letter_groups(text: str) -> set[str]:
    """Return the groups of three letters of a text. A text of fewer letters is its only group."""
    last_start = max(len(text) - GROUP_LETTERS, 0)
    groups: set[str] = set()
    for start in range(last_start + 1):
        end = start + GROUP_LETTERS
        groups.add(text[start:end])
    return groups

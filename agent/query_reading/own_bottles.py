"""Read what a message says of the user's own bottles: "how many of my Barolos are ready?"."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from agent.language import common_words
from agent.query_reading.phrases import Phrase
from agent.query_reading.tokens import Token
from agent.text import fold

MY: Final = "my"
"""The value of words for "my" in the field "cellar". They stand before a wine."""
MINE: Final = "mine"
"""The value of "I have", "at home" and other words that may stand before or after a wine."""
POSSESSIVES: Final = frozenset({MY, MINE})
OF_OWNER: Final = frozenset({MINE, "own", "count"})
ASKED_OF_BOTTLES: Final = frozenset(
    {
        "count",
        "now",
        "soon",
        "past",
        "wait",
    }
)
WINE_FIELDS: Final = frozenset(
    {
        "styles",
        "colour",
        "grapes",
        "regions",
        "offer",
    }
)
"""The fields of phrases that name wines. A country is not among them: it may be that of guests."""
BESIDE_NAMES: Final = frozenset({MY, MINE, "count"})
"""The values of words beside which the name of a bottle may stand: "how many tignanello"."""


@dataclass(frozen=True, slots=True)
class OwnBottlesReader:
    """Reads what a message says of the user's own bottles."""

    tokens: Sequence[Token]
    included: Sequence[Phrase]
    """The phrases that the message does not exclude, from left to right."""
    language: str
    is_question: bool
    """Whether the message has a word that asks for knowledge: "how do I"."""

    def read_cellar_words(self) -> frozenset[str]:
        """Return what the message says of the user's own bottles.

        "I have" and "my" mean bottles only beside the name of a wine: "my Barolos", but not "my
        guests".
        """
        words: set[str] = set()
        for phrase in self.included:
            words.update(phrase.values("cellar"))
        possessives = words & POSSESSIVES
        if not possessives:
            return frozenset(words)
        is_about_bottles = not words.isdisjoint(ASKED_OF_BOTTLES)
        if self.is_question and not is_about_bottles:
            possessives.discard(MY)  # "how do I store my wine?"
        neighbours = self._list_neighbours(possessives)
        is_beside_wine = any(map(self._is_of_wine, neighbours))
        if is_about_bottles or is_beside_wine:
            words.add("own")
        return frozenset(words - POSSESSIVES)

    def _list_neighbours(self, cellar_values: Set[str]) -> Iterator[int]:
        """Yield the indices of the nearest words beside some phrases that are not common words.

        The phrases are those with one of `cellar_values` in the field "cellar", such as "my".
        """
        for phrase in self.included:
            values = cellar_values & {*phrase.values("cellar")}
            if not values:
                continue
            yield self._skip_common(phrase.end, step=1)
            if values != {MY}:  # "my" belongs only to what follows
                index_before = phrase.start - 1
                yield self._skip_common(index_before, step=-1)

    def _skip_common(self, index: int, step: int) -> int:
        """Return the index of the next word that is not common, forwards or backwards.

        The index is outside of the message if all words up to its end are common.
        """
        while 0 <= index < len(self.tokens):
            if not self._is_common(index):
                break
            index += step
        return index

    def _is_common(self, index: int) -> bool:
        """Return whether a word is common, or says how to sort, such as "expensive"."""
        if self._is_of_wine(index):
            return False
        word = fold(self.tokens[index].written)
        if word in common_words(self.language):
            return True
        for phrase in self.included:
            if phrase.values("order") and index in phrase.indices:
                return True
        return False

    def _is_of_wine(self, index: int) -> bool:
        """Return whether a word is part of a phrase that names wines."""
        for phrase in self.included:
            if index not in phrase.indices:
                continue
            cellar_values = phrase.values("cellar")
            if not OF_OWNER.isdisjoint(cellar_values):
                return True
            return phrase.has_role("wine") or phrase.has_field(WINE_FIELDS)
        return False

    def list_owned_words(self, unknown: Sequence[int]) -> Iterator[str]:
        """Yield the unknown words beside "my", "have I" and "how many"."""
        for index in self._list_neighbours(BESIDE_NAMES):
            if index in unknown:
                yield self.tokens[index].written

"""Find the aromas that a wish asks for: "a red that smells of violets", "mit Aromen von Leder".

Only beside words such as "smells of" is an aroma a wish. Elsewhere it may be a dish: "a wine for
chocolate".
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Final

from agent.languages import ENGLISH, load_languages
from agent.query_reading.aromas import load_aroma_words, split_phrases
from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import Phrase
from agent.query_reading.tokens import Token
from agent.text import fold, split_words

TASTE: Final = "text"
"""The field of tastes that a search looks for in the text of wines."""
MAX_PHRASE_WORDS: Final = 5
"""The most words of a phrase of the tables."""

Words = tuple[str, ...]
"""The folded words of a phrase."""


def read_wished_aromas(
    tokens: Sequence[Token],
    phrases: Sequence[Phrase],
    language: str,
) -> list[Phrase]:
    """Return the phrases of a message, with the aromas that it asks for in their places.

    A phrase that already names a taste, such as "leather", is kept.
    """
    known_tastes = [phrase for phrase in phrases if TASTE in phrase.meanings]
    taste_indices = _list_indices(known_tastes)
    aromas: list[Phrase] = []
    for aroma in _AromaReader(tokens, language).read():
        if taste_indices.isdisjoint(aroma.indices):
            aromas.append(aroma)
    aroma_indices = _list_indices(aromas)
    others = [phrase for phrase in phrases if aroma_indices.isdisjoint(phrase.indices)]
    return sorted([*others, *aromas], key=attrgetter("start"))


def list_search_words(aroma: str, language: str) -> list[str]:
    """Return the words by which a search finds an aroma in notes: in English, and in a language."""
    words: list[str] = []
    for code in (ENGLISH, language):
        table = load_aroma_words().get(code)
        if table is not None and aroma in table.aromas:
            name = split_phrases(table.aromas[aroma])[0]
            words += name.split()
    return list(dict.fromkeys(words))


def _list_indices(phrases: Sequence[Phrase]) -> set[int]:
    """Return the indices of all tokens of some phrases."""
    indices: set[int] = set()
    for phrase in phrases:
        indices.update(phrase.indices)
    return indices


class _AromaReader:
    """Reads the aromas of a message, each with the words that ask for it."""

    def __init__(self, tokens: Sequence[Token], language: str) -> None:
        self.words = tuple(fold(token.written) for token in tokens)
        self.aromas = _load_aromas().get(language, {})
        self.words_before = _load_words("words_before").get(language, frozenset())
        self.words_after = _load_words("words_after").get(language, frozenset())
        self.has_compounds = load_languages()[language].has_compounds

    def read(self) -> Iterator[Phrase]:
        """Yield the aromas from left to right, and the words beside them without a meaning."""
        index = 0
        while index < len(self.words):
            found = self._read_after_words(index) or self._read_before_words(index)
            yield from found
            if found:
                index = found[-1].end
            else:
                index += 1

    def _read_after_words(self, start: int) -> list[Phrase]:
        """Return the words at an index that ask for aromas, and the aromas after them."""
        end = self._find_end(start, self.words_before)
        if end == start:
            return []
        aromas = self._read_list(end)
        if not aromas:
            return []
        wish = [Phrase(start, end, {}), *aromas]
        end_of_list = aromas[-1].end
        end_of_verb = self._find_end(end_of_list, self.words_after)
        if end_of_verb > end_of_list:  # "nach Veilchen duftet"
            wish.append(Phrase(end_of_list, end_of_verb, {}))
        return wish

    def _read_before_words(self, start: int) -> list[Phrase]:
        """Return the aroma at an index if such words follow it: "violet notes", "Honignoten"."""
        aroma_end = self._find_end(start, self.aromas)
        end = self._find_end(aroma_end, self.words_after)
        if start < aroma_end < end:
            return [self._make_phrase(start, aroma_end), Phrase(aroma_end, end, {})]
        if self.has_compounds:
            return self._read_compound(start)
        return []

    def _read_compound(self, index: int) -> list[Phrase]:
        """Return the aroma with which the word at an index begins: "Honignoten"."""
        word = self.words[index]
        for words_after in self.words_after:
            first_part = word.removesuffix(words_after[0])
            key = (first_part,)
            if first_part != word and key in self.aromas:
                meanings = {TASTE: (self.aromas[key],)}
                return [Phrase(index, index + 1, meanings)]
        return []

    def _read_list(self, start: int) -> list[Phrase]:
        """Return the aromas of a list: "leather, tobacco and the smoke"."""
        aromas: list[Phrase] = []
        listing_words = load_grammar().listing_words
        index = start
        while index < len(self.words):
            end = self._find_end(index, self.aromas)
            if end > index:
                aromas.append(self._make_phrase(index, end))
                index = end
            elif self.words[index] in listing_words:
                index += 1
            else:
                break
        return aromas

    def _make_phrase(self, start: int, end: int) -> Phrase:
        aroma = self.aromas[self.words[start:end]]
        return Phrase(start, end, {TASTE: (aroma,)})

    def _find_end(self, start: int, phrases: Container[Words]) -> int:
        """Return the end of the longest phrase at an index, or the index itself."""
        following = self.words[start : start + MAX_PHRASE_WORDS]
        for length in range(len(following), 0, -1):
            if following[:length] in phrases:
                return start + length
        return start


@cache
def _load_aromas() -> Mapping[str, Mapping[Words, str]]:
    """Return the aromas of each language by their folded phrases."""
    by_language: dict[str, dict[Words, str]] = {}
    for code, words in load_aroma_words().items():
        aromas: dict[Words, str] = {}
        for aroma, text in words.aromas.items():
            for phrase in split_phrases(text):
                key = tuple(split_words(phrase))
                aromas.setdefault(key, aroma)
        by_language[code] = aromas
    return by_language


@cache
def _load_words(field: str) -> Mapping[str, frozenset[Words]]:
    """Return the folded phrases of a field of `AromaWords`, by language."""
    by_language: dict[str, frozenset[Words]] = {}
    for code, words in load_aroma_words().items():
        phrases = split_phrases(getattr(words, field))
        keys = [tuple(split_words(phrase)) for phrase in phrases if phrase]
        by_language[code] = frozenset(keys)
    return by_language

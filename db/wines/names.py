"""Find wines by their names, as guests type them.

Every word of a name must be among the words of a wine: its producer, name, places, grapes or
vintage. A word that no wine has may be misspelt: then similar words count. A name is also found if
its spaces are missing or stand elsewhere: "chateau neuf du pape".

To compare a name with each of 20,000 others would take too long. A name is compared only with those
that have enough letters in common with it (`db.wines.name_parts`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Final

from rapidfuzz import fuzz, process

from agent.numerals import YEARS
from agent.text import split_words
from db.wines.entries import Entry
from db.wines.name_parts import MentionIndex, SimilarTexts, SpellingIndex
from db.wines.telling_words import (
    GENERIC_WORDS,
    MIN_TELLING_LETTERS,
    list_grape_words,
    list_identifying_words,
    list_known_words,
    list_name_words,
    list_place_words,
    select_telling_words,
)
from db.wines.years import complete_year

SHORT_YEAR_DIGITS: Final = 2
ESTATE_WORDS: Final = frozenset(
    "chateau domaine weingut tenuta castello schloss quinta bodega bodegas cantina".split()
)
"""Words before the name of an estate: "Château Margaux"."""
MAX_EDITS: Final = (
    (12, 3),
    (8, 2),
    (4, 1),
)
"""How many letters of a misspelt word may differ: 3 in a word of 12 letters or more, and so on."""
MIN_EDITED_LETTERS: Final = 4
MIN_COMMON_LETTERS: Final = 4
"""A common word of fewer letters, such as an article, never distinguishes wines."""
MIN_SQUEEZED_LETTERS: Final = 7
"""A shorter name is not looked for without its spaces."""
MIN_SQUEEZED_SCORE: Final = 92
"""How much of a name without spaces must be in the name of a wine, out of 100."""
MIN_SQUEEZED_SHARE: Final = 0.6
"""Which share of the groups of letters of such a name must be in the name of a wine.

A group has three letters (`db.wines.name_parts`).
"""
MIN_CLOSE_SCORE: Final = 72
"""How similar a name must be to that of a wine to be close to it, out of 100."""
MIN_CLOSE_SHARE: Final = 0.25
"""Which share of the groups of letters of a name must be in a close name."""
MAX_SHARING: Final = 3
"""A name is close to the wines that share one of its words, if they are not more than this.

The word must have at least `MIN_TELLING_LETTERS`.
"""
MAX_CLOSE: Final = 30
"""How many close names are returned. Filters may leave out most of them."""

Numbers = set[int]
"""Numbers of wines. The number of a wine is its position in the catalogue."""
NumbersByWord = defaultdict[str, Numbers]
"""For each word, the numbers of the wines that have it."""


class NameIndex:
    """The words of all wines, and their names without spaces."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._by_name: NumbersByWord = defaultdict(set)
        """The wines by the words of their names and producers."""
        self._by_place: NumbersByWord = defaultdict(set)
        """The wines by the words of their names, producers and places."""
        self._by_any: NumbersByWord = defaultdict(set)
        """The wines by all their words: also those of grapes."""
        self._numbers_by_vintage: dict[int | None, Numbers] = defaultdict(set)

        # In these lists, the item of a wine stands at the wine's number.
        self._telling_texts: list[str] = []
        """The telling words of each wine: those that distinguish it from others."""
        self._squeezed: list[str] = []
        """The same words without spaces."""
        self._telling_producers: list[frozenset[str]] = []
        """The telling words of each wine's producer."""
        self._producers: list[frozenset[str]] = []
        """All words of each wine's producer."""
        self._mentionable = MentionIndex()
        """The words of the names and of the producers that a text may mention."""
        for entry in entries:
            self._add_entry(entry)
        self._spellings = SpellingIndex(self._by_any)
        self._similar = SimilarTexts(self._squeezed)

    def _add_entry(self, entry: Entry) -> None:
        """Add a wine under the words of its name, its producer, its origin and its grapes."""
        wine = entry.wine
        number = entry.number
        name_words = list_name_words(wine)
        name_and_place_words = [*name_words, *list_place_words(wine)]
        all_words = [*name_and_place_words, *list_grape_words(wine)]
        unique_words = list(dict.fromkeys(all_words))
        _add_words(self._by_name, name_words, number)
        _add_words(self._by_place, name_and_place_words, number)
        _add_words(self._by_any, unique_words, number)
        self._numbers_by_vintage[wine.vintage].add(number)

        telling = select_telling_words(unique_words)
        self._telling_texts.append(" ".join(telling))
        self._squeezed.append("".join(telling))

        producer = frozenset(split_words(wine.producer))
        telling_producer = list_identifying_words(wine.producer)
        self._producers.append(producer)
        self._telling_producers.append(telling_producer)
        self._mentionable.add(number, telling_producer)
        self._mentionable.add(number, list_identifying_words(wine.name))

    def find(self, name: str) -> frozenset[int]:
        """Return the numbers of the wines with this name.

        A year in the name must be the vintage of the wine, or a part of its name ("Solera 1927").
        """
        words, years = self._split_name(name)
        if years and not words:
            found = self._find_year(years[0])
        else:
            found = self._find_named(words)
        for year in years:
            found = found & self._find_year(year)
        return frozenset(found)

    def has_wine_with(self, words: Collection[str]) -> bool:
        """Return whether a wine has all these words, folded, in its name, place or grapes."""
        found = _find_exact([*words], self._by_any)
        return bool(found)

    def find_other_vintages(self, name: str) -> frozenset[int]:
        """Return the numbers of the wines with this name in any vintage.

        If the name has no year, return none.
        """
        words, years = self._split_name(name)
        if not years:
            return frozenset()
        return frozenset(self._find_named(words))

    def find_mentioned(self, text: str) -> list[int]:
        """Return the numbers of the wines whose name or producer is a part of a longer text.

        "A bottle called Deseado that I had in Chile" mentions "Deseado". If the text mentions
        several names, the name with the most words counts.
        """
        counts = self._mentionable.count_words(split_words(text))
        most = max(counts.values(), default=0)
        mentioned: list[int] = []
        for number, count in counts.items():
            if count == most:
                mentioned.append(number)
        return sorted(mentioned)

    def find_closest(self, name: str) -> list[int]:
        """Return the numbers of the wines with similar names, the most similar first.

        Wines that share a rare word with the name come before all others: "Tignanello Riserva" is
        close to the only wine with the word "Tignanello".
        """
        words, _ = self._split_name(name)
        telling = select_telling_words(words)
        closest = self._find_sharing_word(telling)
        squeezed = "".join(telling)
        candidates: dict[int, str] = {}
        for number in self._similar.find(squeezed, MIN_CLOSE_SHARE):
            candidates[number] = self._telling_texts[number]
        matches = process.extract(
            " ".join(telling),
            candidates,
            scorer=fuzz.token_set_ratio,
            score_cutoff=MIN_CLOSE_SCORE,
            limit=MAX_CLOSE,
        )
        for _, _, number in matches:
            closest.append(number)
        return list(dict.fromkeys(closest))

    def _find_sharing_word(self, words: Sequence[str]) -> list[int]:
        """Return the wines that have one of these words, if few wines have this word.

        The wines with the longest of the words come first.
        """
        sharing: list[int] = []
        for word in sorted(words, key=len, reverse=True):
            if len(word) < MIN_TELLING_LETTERS:
                break
            numbers = self._by_name.get(word, set())
            if len(numbers) <= MAX_SHARING:
                sharing += sorted(numbers)
        return sharing

    def _split_name(self, name: str) -> tuple[list[str], list[int]]:
        """Return the words of a name, and its years.

        "09" is a year, unless it is a word in the name of a wine.
        """
        words: list[str] = []
        years: list[int] = []
        for word in split_words(name):
            is_number = word.isascii() and word.isdigit()
            if not is_number:
                words.append(word)
            elif int(word) in YEARS:
                years.append(int(word))
            elif len(word) == SHORT_YEAR_DIGITS and word not in self._by_any:
                years.append(complete_year(int(word)))
            else:
                words.append(word)
        unique_words = list(dict.fromkeys(words))
        return unique_words, years

    def _find_named(self, words: Sequence[str]) -> Numbers:
        """Return the wines with these words.

        Common words are ignored at first. Then they choose among the wines that were found. "Weil
        Riesling" is the Riesling of Robert Weil, though "weil" means "because" in German.
        """
        telling = select_telling_words(words)
        found = self._find_words(telling)
        if not found:
            found = self._find_squeezed(telling)
        if not found:
            found = self._find_at_end(telling)
        found = self._without_other_estates(telling, found)
        common = [word for word in words if word not in telling]
        for word in common:
            # Short common words are articles and the like. But "old" or "vin" is in few names, and
            # may choose among the wines.
            is_article = len(word) < MIN_COMMON_LETTERS and word not in GENERIC_WORDS
            if is_article:
                continue
            named_by_word = self._by_name.get(word, set())
            with_word = found & named_by_word
            if with_word:
                found = with_word
        return found

    def _without_other_estates(self, words: Sequence[str], found: Numbers) -> Numbers:
        """Return the wines in `found` except those of an estate with another name.

        For "Château Margaux", a Margaux of Château Palmer is not meant.
        """
        others: Numbers = set()
        for estate, name in pairwise(words):
            if estate not in ESTATE_WORDS:
                continue
            with_name = found & self._by_any.get(name, set())
            for number in with_name:
                producer = self._producers[number]
                if estate in producer and name not in producer:
                    others.add(number)
        return found - others

    def _find_at_end(self, words: Sequence[str]) -> Numbers:
        """Return the wines whose name and producer stand at the end of a text.

        Before the name, a guest may use words that no wine has: "je suis à la recherche de Michel
        Lynch". Every word from the first word of a wine on must be in the wine's name. So "Penfolds
        Bin 707" does not find another wine of Penfolds.
        """
        if not words or words[0] in self._by_any:
            return set()
        name: list[str] = []
        for word in words:
            if name or word in self._by_any:
                name.append(word)
        with_producer: Numbers = set()
        for number in self._find_words(name):
            producer = self._telling_producers[number]
            if producer and producer.issubset(name):
                with_producer.add(number)
        return with_producer

    def _find_year(self, year: int) -> Numbers:
        """Return the wines of a vintage, and those with the year in their name."""
        of_vintage = self._numbers_by_vintage.get(year, set())
        with_name = self._by_name.get(str(year), set())
        return of_vintage | with_name

    def _find_words(self, words: Sequence[str]) -> Numbers:
        """Return the wines that have every word, or a similar one.

        If there are several words, they are first looked for in names and producers only: "Château
        Margaux" is a producer, and does not mean every château in Margaux. If no wine has them
        there, their places are searched too, and then their grapes.
        """
        indexes = [self._by_place, self._by_any]
        if len(words) > 1:
            indexes.insert(0, self._by_name)
        for index in indexes:
            found = _find_exact(words, index)
            if found:
                return found
        found = _find_all(words, self._find_word)
        if not found and len(words) > 1:
            return _find_all(words, self._find_word_or_alike)
        return found

    def _find_word_or_alike(self, word: str) -> Numbers:
        """Return the wines that have a word, and those that have a word with one other letter.

        "Comte Lafon" means "Comtes Lafon", though another wine has the word "Comte".
        """
        return self._find_word(word) | self._find_alike(word, 1)

    def _find_word(self, word: str) -> Numbers:
        """Return the wines that have a word, or else those with the most similar words."""
        if word in self._by_any:
            return self._by_any[word]
        for min_letters, max_edits in MAX_EDITS:
            if len(word) >= min_letters:
                return self._find_alike(word, max_edits)
        return set()

    def _find_alike(self, word: str, max_edits: int) -> Numbers:
        """Return the wines with the most similar other words, `max_edits` letters away at most.

        Short words, numbers, and names of places and grapes are never taken for misspelt words.
        """
        if len(word) < MIN_EDITED_LETTERS or not word.isalpha():
            return set()
        if word in list_known_words():
            return set()
        distances = self._spellings.find(word, max_edits)
        nearest = min(distances.values(), default=0)
        found: Numbers = set()
        for other, distance in distances.items():
            if distance == nearest:
                found |= self._by_any[other]
        return found

    def _find_squeezed(self, words: Sequence[str]) -> Numbers:
        """Return the wines whose names have these words, wherever their spaces stand."""
        squeezed = "".join(words)
        if len(squeezed) < MIN_SQUEEZED_LETTERS:
            return set()
        containing: Numbers = set()
        for number in self._similar.find(squeezed, min_share=1.0):
            if squeezed in self._squeezed[number]:
                containing.add(number)
        # Digits must be equal: "Bin 28" is another wine than "Bin 389".
        if containing or not squeezed.isalpha():
            return containing
        return self._find_nearly_squeezed(squeezed)

    def _find_nearly_squeezed(self, squeezed: str) -> Numbers:
        """Return the wines whose names nearly have these letters, wherever their spaces stand."""
        candidates: dict[int, str] = {}
        for number in self._similar.find(squeezed, MIN_SQUEEZED_SHARE):
            # A short name of a wine would be a part of too many longer texts.
            if len(self._squeezed[number]) >= len(squeezed):
                candidates[number] = self._squeezed[number]
        matches = process.extract(
            squeezed,
            candidates,
            scorer=fuzz.partial_ratio,
            score_cutoff=MIN_SQUEEZED_SCORE,
            limit=None,
        )
        return {number for _, _, number in matches}


def _add_words(
    index: NumbersByWord,
    words: Iterable[str],
    number: int,
) -> None:
    """Add a wine to an index under each of these words."""
    for word in words:
        index[word].add(number)


def _find_exact(words: Sequence[str], index: NumbersByWord) -> Numbers:
    """Return the wines that have each of the words."""

    def find(word: str) -> Numbers:
        return index.get(word, set())

    return _find_all(words, find)


def _find_all(words: Sequence[str], find: Callable[[str], Numbers]) -> Numbers:
    """Return the wines that `find` returns for each of the words. Without words, return none."""
    if not words:
        return set()
    found = find(words[0])
    for word in words[1:]:
        if not found:
            return set()
        found = found & find(word)
    return found

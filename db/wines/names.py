"""Find wines by their names, as guests type them.

Every word of a name must be one of a wine's words: its producer, name, place, grape or vintage. A
word that no wine has may differ in a few letters. Names without spaces, and with spaces elsewhere,
are found as well: "chateau neuf du pape".

Comparing a name with each of 20,000 others takes too long: only those are compared that share
enough of its letters (`db.wines.name_parts`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Final

from rapidfuzz import fuzz, process

from agent.language import all_common_words, stop_words
from agent.query_reading.tables import load_profiles
from agent.sommelier.vocabulary import known_names, synonyms
from agent.text import split_words
from db.wines.entries import Entry
from db.wines.name_parts import MentionIndex, SimilarTexts, SpellingIndex

YEARS: Final = range(1900, 2101)
SHORT_YEAR_DIGITS: Final = 2
UNNAMED_WORDS: Final = frozenset(
    "wine wines bottle bottles wein weine flasche flaschen vin vins bouteille vino vinos vini "
    "botella bottiglia wijn wijnen fles vinho vinhos garrafa nv anything something any some etwas "
    "irgendwas irgendwelche noch eure eurem quelque chose algo alguno algun alguna ningun qualcosa "
    "qualche iets nog algum algo still old left stock list one ones cuvee vintage year jahrgang "
    "millesime annata anada jaar colheita".split()
)
"""Words that say nothing of which wine is meant, in addition to common ones."""
ESTATE_WORDS: Final = frozenset(
    "chateau domaine weingut tenuta castello schloss quinta bodega bodegas cantina".split()
)
"""Words that the name of an estate follows."""
MAX_EDITS: Final = ((12, 3), (8, 2), (4, 1))
"""How many letters of a word may differ, by its least number of letters."""
MIN_EDITED_LETTERS: Final = 4
MIN_COMMON_LETTERS: Final = 4
"""Shorter common words, such as articles, never tell wines apart."""
MIN_SQUEEZED_LETTERS: Final = 7
MIN_SQUEEZED_SCORE: Final = 92
"""How much of a name without spaces must be in a wine's, of 100."""
MIN_SQUEEZED_SHARE: Final = 0.6
"""The share of its letter groups that such a name must have in common with another."""
MIN_CLOSE_SCORE: Final = 72
"""How alike the closest names must be, of 100."""
MIN_CLOSE_SHARE: Final = 0.25
"""The share of its letter groups that a name must have in common with a close one."""
MIN_TELLING_LETTERS: Final = 5
MAX_SHARING: Final = 3
"""A word with as many letters, in the names of as few wines, makes a name close to theirs."""
MAX_SIMILAR: Final = 30
"""How many similar names are compared; filters may leave most of them out."""

NumbersByWord = defaultdict[str, set[int]]
"""The numbers of the wines that have a word."""


class NameIndex:
    """The words of all wines, and their names without spaces."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._by_name: NumbersByWord = defaultdict(set)
        self._by_place: NumbersByWord = defaultdict(set)
        self._by_any: NumbersByWord = defaultdict(set)
        self._numbers_by_vintage = defaultdict[int | None, set[int]](set)
        self._names: list[str] = []
        self._squeezed: list[str] = []
        self._producers: list[frozenset[str]] = []
        self._producer_words: list[frozenset[str]] = []
        self._own_parts = MentionIndex()
        for entry in entries:
            own_words, place_words, grape_words = _words_of(entry)
            words = list(dict.fromkeys((*own_words, *place_words, *grape_words)))
            _add(self._by_name, own_words, entry.number)
            _add(self._by_place, (*own_words, *place_words), entry.number)
            _add(self._by_any, words, entry.number)
            self._numbers_by_vintage[entry.wine.vintage].add(entry.number)
            telling = _telling_words(words)
            self._names.append(" ".join(telling))
            self._squeezed.append("".join(telling))
            producer = _own_words(entry.wine.producer)
            self._producers.append(producer)
            self._producer_words.append(frozenset(split_words(entry.wine.producer)))
            self._own_parts.add(entry.number, producer)
            self._own_parts.add(entry.number, _own_words(entry.wine.name))
        self._spellings = SpellingIndex(self._by_any)
        self._similar = SimilarTexts(self._squeezed)

    def find(self, name: str) -> frozenset[int]:
        """Return the numbers of the wines with this name.

        A year must be their vintage, or a part of their name as in "Solera 1927".
        """
        words, years = self._split_name(name)
        found = self._find_named(words)
        if not words and years:
            found = set().union(*map(self._find_year, years))
        for year in years:
            found = found & self._find_year(year)
        return frozenset(found)

    def find_other_vintages(self, name: str) -> frozenset[int]:
        """Return the numbers of the wines with this name, whatever year it asks for."""
        words, years = self._split_name(name)
        return frozenset(self._find_named(words)) if years else frozenset()

    def find_mentioned(self, name: str) -> list[int]:
        """Return the numbers of the wines whose own name or producer is in a longer text.

        "A bottle called Deseado that I had in Chile" mentions "Deseado". Only those with the most
        words are meant.
        """
        counts = self._own_parts.count_words({*split_words(name)})
        most = max(counts.values(), default=0)
        return sorted(number for number, count in counts.items() if count == most)

    def find_closest(self, name: str) -> list[int]:
        """Return the numbers of the wines with similar names, the closest first.

        "Tignanello Riserva" is close to the only wine with the word "Tignanello".
        """
        words = _telling_words(self._split_name(name)[0])
        sharing: list[int] = []
        for word in sorted(words, key=len, reverse=True):
            numbers = self._by_name.get(word, set())
            if len(word) >= MIN_TELLING_LETTERS and len(numbers) <= MAX_SHARING:
                sharing += sorted(numbers)
        candidates = self._similar.find("".join(words), MIN_CLOSE_SHARE)
        matches = process.extract(
            " ".join(words),
            {number: self._names[number] for number in candidates},
            scorer=fuzz.token_set_ratio,
            score_cutoff=MIN_CLOSE_SCORE,
            limit=MAX_SIMILAR,
        )
        similar = [number for _, _, number in matches]
        return list(dict.fromkeys((*sharing, *similar)))

    def _split_name(self, name: str) -> tuple[list[str], list[int]]:
        """Return the words of a name, and its years; "09" is one unless a wine is called so."""
        words: list[str] = []
        years: list[int] = []
        for word in split_words(name):
            if not (word.isascii() and word.isdigit()):
                words.append(word)
            elif int(word) in YEARS:
                years.append(int(word))
            elif len(word) == SHORT_YEAR_DIGITS and word not in self._by_any:
                this_year = datetime.now(UTC).year
                year = this_year - this_year % 100 + int(word)
                years.append(year if year <= this_year else year - 100)
            else:
                words.append(word)
        return list(dict.fromkeys(words)), years

    def _find_named(self, words: Sequence[str]) -> set[int]:
        """Return the wines with these words; a common word counts only if one of them has it.

        "Weil Riesling" is that of Robert Weil, though "weil" is "because" in German.
        """
        telling = _telling_words(words)
        found = self._find_words(telling) or self._find_squeezed(telling)
        found = found or self._find_at_end(telling)
        found = self._without_other_estates(telling, found)
        for word in words:
            is_article = len(word) < MIN_COMMON_LETTERS and word not in UNNAMED_WORDS
            if word not in telling and not is_article:
                found = found & self._by_name.get(word, set()) or found
        return found

    def _without_other_estates(self, words: Sequence[str], found: set[int]) -> set[int]:
        """Return the wines found, but for those of an estate with another name.

        "Château Margaux" is no Margaux of Château Palmer.
        """
        for estate, name in pairwise(words):
            if estate not in ESTATE_WORDS:
                continue
            with_name = self._by_any.get(name, set())
            kept: set[int] = set()
            for number in found:
                producer = self._producer_words[number]
                is_other = (
                    estate in producer and name not in producer and number in with_name
                )
                if not is_other:
                    kept.add(number)
            found = kept
        return found

    def _find_at_end(self, words: Sequence[str]) -> set[int]:
        """Return the wines with the last of these words, if these have a whole producer.

        What guests say before a name is in no wine: "je suis à la recherche de Michel Lynch". What
        follows it tells the wine: "Penfolds Bin 707" is no other wine of Penfolds.
        """
        start = next(
            (i for i, word in enumerate(words) if word in self._by_any), len(words)
        )
        rest = words[start:]
        if start == 0 or not rest:
            return set()
        own = {*rest}
        found = self._find_words(rest)
        return {number for number in found if self._has_whole_producer(number, own)}

    def _has_whole_producer(self, number: int, words: set[str]) -> bool:
        producer = self._producers[number]
        return bool(producer) and producer <= words

    def _find_year(self, year: int) -> set[int]:
        return self._numbers_by_vintage.get(year, set()) | self._by_name.get(
            str(year), set()
        )

    def _find_words(self, words: Sequence[str]) -> set[int]:
        """Return the wines that have every word, or one like it.

        Two words are first looked for in the names of wines alone: "Château Margaux" is a producer,
        and not every château in Margaux. Then in their places too, then in their grapes.
        """
        indexes = [self._by_place, self._by_any]
        if len(words) > 1:
            indexes.insert(0, self._by_name)
        for index in indexes:
            if found := _find_exact(words, index):
                return found
        if found := _find_all(words, self._find_word):
            return found
        if len(words) < 2:
            return set()
        return _find_all(words, self._find_word_or_alike)

    def _find_word_or_alike(self, word: str) -> set[int]:
        """Return the wines that have a word or one like it.

        "Comte Lafon" is "Comtes Lafon", though another wine has "Comte".
        """
        return self._find_word(word) | self._find_alike(word, 1)

    def _find_word(self, word: str) -> set[int]:
        """Return the wines that have a word; if none has, those with the nearest ones."""
        if word in self._by_any:
            return self._by_any[word]
        edits = next((edits for letters, edits in MAX_EDITS if len(word) >= letters), 0)
        return self._find_alike(word, edits)

    def _find_alike(self, word: str, edits: int) -> set[int]:
        """Return the wines with the nearest other words, which differ in so many letters at most.

        Short words, numbers, and the names of places and grapes are not another's misspelling.
        """
        if (
            len(word) < MIN_EDITED_LETTERS
            or not word.isalpha()
            or word in _known_words()
        ):
            return set()
        others = self._spellings.find(word, edits)
        nearest = min(others.values(), default=0)
        words = [other for other, distance in others.items() if distance == nearest]
        return set().union(*(self._by_any[other] for other in words))

    def _find_squeezed(self, words: Sequence[str]) -> set[int]:
        """Return the wines whose names have these words, wherever the spaces are."""
        squeezed = "".join(words)
        if len(squeezed) < MIN_SQUEEZED_LETTERS:
            return set()
        exact: set[int] = set()
        for number in self._similar.find(squeezed, 1.0):
            if squeezed in self._squeezed[number]:
                exact.add(number)
        if exact or not squeezed.isalpha():  # "Bin 28" is not like "Bin 389"
            return exact
        candidates = self._similar.find(squeezed, MIN_SQUEEZED_SHARE)
        matches = process.extract(
            squeezed,
            {number: self._squeezed[number] for number in candidates},
            scorer=fuzz.partial_ratio,
            score_cutoff=MIN_SQUEEZED_SCORE,
            limit=None,
        )
        # A wine's name that is shorter would be found in any longer one.
        return {number for text, _, number in matches if len(text) >= len(squeezed)}


def _add(index: NumbersByWord, words: Iterable[str], number: int) -> None:
    for word in words:
        index[word].add(number)


def _find_exact(words: Sequence[str], index: NumbersByWord) -> set[int]:
    """Return the wines that have each of the words."""

    def find(word: str) -> set[int]:
        return index.get(word, set())

    return _find_all(words, find)


def _find_all(words: Sequence[str], find: Callable[[str], set[int]]) -> set[int]:
    """Return the wines that are found by each of the words; empty without any word."""
    found: set[int] | None = None
    for word in words:
        with_word = find(word)
        found = with_word if found is None else found & with_word
        if not found:  # a look for the other words would be in vain
            return set()
    return found or set()


def _words_of(entry: Entry) -> tuple[list[str], list[str], list[str]]:
    """Return the words of a wine's name and producer, of its places, and of its grapes."""
    wine = entry.wine
    places = [wine.appellation, wine.region, wine.country]
    for region in (wine.appellation, wine.region):
        places += synonyms("regions", region)
    grapes = [name for grape in wine.grapes for name in synonyms("grapes", grape)]
    names = (f"{wine.producer} {wine.name}", " ".join(places), " ".join(grapes))
    own, place, grape = (split_words(text) for text in names)
    return own, place, grape


def _own_words(text: str) -> frozenset[str]:
    """Return the telling words of a producer or a name; none of "Chardonnay", which many have."""
    words = frozenset(_telling_words(split_words(text)))
    has_long_word = any(
        len(word) >= MIN_TELLING_LETTERS for word in words - _known_words()
    )
    return words if has_long_word else frozenset()


def _telling_words(words: Iterable[str]) -> list[str]:
    """Return the words that tell wines apart: no common ones, and no article as in "l'Opus"."""
    return [
        word
        for word in words
        if word not in ignored_words() and (len(word) > 1 or word.isdecimal())
    ]


@cache
def _known_words() -> frozenset[str]:
    """Return the words of the names of grapes and regions, which are not another's misspelling."""
    names = (*known_names("grapes"), *known_names("regions"), *load_profiles())
    return frozenset(split_words(" ".join(names)))


@cache
def ignored_words() -> frozenset[str]:
    """Return the words that do not tell a wine from others, in all languages."""
    return UNNAMED_WORDS | all_common_words() | stop_words()

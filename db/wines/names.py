"""Find wines by their names, as guests type them.

Every word of a name must be one of a wine's words: its producer, name, place, grape or vintage. A
word that no wine has may differ in a few letters. Names without spaces, and with spaces elsewhere,
are found as well: "chateau neuf du pape".
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from agent.language import all_common_words
from agent.sommelier.vocabulary import known_names, synonyms
from agent.text import split_words
from db.wines.entries import Entry

YEARS: Final = range(1900, 2101)
UNNAMED_WORDS: Final = frozenset(
    "wine wines bottle bottles wein weine flasche flaschen vin vins bouteille vino vinos vini "
    "botella bottiglia wijn wijnen fles vinho vinhos garrafa nv anything something any some etwas "
    "irgendwas irgendwelche noch eure eurem quelque chose algo alguno algun alguna ningun qualcosa "
    "qualche iets nog algum algo still old left stock list".split()
)
"""Words that say nothing of which wine is meant, in addition to common ones."""
MAX_EDITS: Final = ((12, 3), (8, 2), (4, 1))
"""How many letters of a word may differ, by its least number of letters."""
MIN_SQUEEZED_LETTERS: Final = 7
MIN_SQUEEZED_SCORE: Final = 92
"""How much of a name without spaces must be in a wine's, of 100."""
MIN_CLOSE_SCORE: Final = 72
"""How alike the closest names must be, of 100."""

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
        for entry in entries:
            own_words, place_words, grape_words = _words_of(entry)
            words = list(dict.fromkeys((*own_words, *place_words, *grape_words)))
            _add(self._by_name, own_words, entry.number)
            _add(self._by_place, (*own_words, *place_words), entry.number)
            _add(self._by_any, words, entry.number)
            self._numbers_by_vintage[entry.wine.vintage].add(entry.number)
            self._names.append(" ".join(words))
            self._squeezed.append("".join(words))

    def find(self, name: str) -> frozenset[int]:
        """Return the numbers of the wines with this name; a year must be their vintage."""
        words, years = _split_name(name)
        found = self._find_words(words) or self._find_squeezed(words)
        if not words and years:
            found = set().union(*(self._numbers_by_vintage[year] for year in years))
        for year in years:
            found = found & self._numbers_by_vintage.get(year, set())
        return frozenset(found)

    def find_closest(self, name: str, limit: int) -> list[int]:
        """Return the numbers of the wines with the closest names, the closest first."""
        words, _ = _split_name(name)
        others = self._find_words(words) or self._find_squeezed(words)  # of other vintages
        if others:
            return sorted(others)[:limit]
        matches = process.extract(
            " ".join(words),
            self._names,
            scorer=fuzz.token_set_ratio,
            score_cutoff=MIN_CLOSE_SCORE,
            limit=limit,
        )
        return [number for _, _, number in matches]

    def _find_words(self, words: Sequence[str]) -> set[int]:
        """Return the wines that have every word, or one like it.

        Two words are first looked for in the names of wines alone: "Château Margaux" is a producer,
        and not every château in Margaux. Then in their places too, then in their grapes.
        """
        indexes = [self._by_place, self._by_any]
        if len(words) > 1:
            indexes.insert(0, self._by_name)
        for index in indexes:
            if found := _intersect([index.get(word, set()) for word in words]):
                return found
        return _intersect([self._find_word(word) for word in words])

    def _find_word(self, word: str) -> set[int]:
        """Return the wines that have a word; if none has, those with the nearest ones."""
        if word in self._by_any:
            return self._by_any[word]
        edits = next((edits for letters, edits in MAX_EDITS if len(word) >= letters), 0)
        if not edits or not word.isalpha() or word in _known_words():
            return set()
        near = process.extract(
            word, self._by_any.keys(), scorer=OSA.distance, score_cutoff=edits, limit=None
        )
        nearest = min((distance for _, distance, _ in near), default=0)
        words = [other for other, distance, _ in near if distance == nearest]
        return set().union(*(self._by_any[other] for other in words))

    def _find_squeezed(self, words: Sequence[str]) -> set[int]:
        """Return the wines whose names have these words, wherever the spaces are."""
        squeezed = "".join(words)
        if len(squeezed) < MIN_SQUEEZED_LETTERS:
            return set()
        exact = {number for number, text in enumerate(self._squeezed) if squeezed in text}
        if exact or not squeezed.isalpha():  # "Bin 28" is not like "Bin 389"
            return exact
        matches = process.extract(
            squeezed,
            self._squeezed,
            scorer=fuzz.partial_ratio,
            score_cutoff=MIN_SQUEEZED_SCORE,
            limit=None,
        )
        # A wine's name that is shorter would be found in any longer one.
        return {number for text, _, number in matches if len(text) >= len(squeezed)}


def _add(index: NumbersByWord, words: Iterable[str], number: int) -> None:
    for word in words:
        index[word].add(number)


def _intersect(sets: Sequence[set[int]]) -> set[int]:
    """Return what is in all sets; empty without any."""
    return sets[0].intersection(*sets[1:]) if sets else set()


def _words_of(entry: Entry) -> tuple[list[str], list[str], list[str]]:
    """Return the words of a wine's name and producer, of its places, and of its grapes."""
    wine = entry.wine
    places = [wine.appellation, wine.region, wine.country]
    for region in (wine.appellation, wine.region):
        places += synonyms("regions", region)
    grapes = [name for grape in wine.grapes for name in synonyms("grapes", grape)]
    names = (f"{wine.producer} {wine.name}", " ".join(places), " ".join(grapes))
    own, place, grape = (_telling_words(text) for text in names)
    return own, place, grape


def _telling_words(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _ignored_words()]


def _split_name(name: str) -> tuple[list[str], list[int]]:
    """Return the words of a name, and its years."""
    words: list[str] = []
    years: list[int] = []
    for word in split_words(name):
        if word.isascii() and word.isdigit() and int(word) in YEARS:
            years.append(int(word))
        elif word not in _ignored_words():
            words.append(word)
    return list(dict.fromkeys(words)), years


@cache
def _known_words() -> frozenset[str]:
    """Return the words of the names of grapes and regions, which are not another's misspelling."""
    names = (*known_names("grapes"), *known_names("regions"))
    return frozenset(split_words(" ".join(names)))


@cache
def _ignored_words() -> frozenset[str]:
    """Return the words that do not tell a wine from others, in all languages."""
    return UNNAMED_WORDS | all_common_words()

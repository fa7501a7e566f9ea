"""When two search queries are the same, and when one belongs to a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") do not tell two
queries apart, nor does the place, which is in all of them. What is left counts as the same when
the two share 0.7 of their words or more: at 0.6 "wine shop" and "natural wine shop" were one.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from agent.grounding import fold
from agent.research.countries import country_names

SAME: Final = 0.7
FILLER: Final = frozenset(
    "a an the in on at of for to from with and or by near nearby around me my where what best top "
    "good great local find list guide le la les el los las il lo gli der die das den dem de des "
    "du di da do dos del della en im am zu beste bester meilleur meilleure meilleurs mejor mejores "
    "migliore migliori y et und e".split()
)
COMMON_IN_NAMES: Final = frozenset(
    "san santa saint sao são st ste new north south east west upon city town village valley island "
    "lake river county province region district".split()
)
"""A word of many places' names; alone it names none of them."""
POSTCODE: Final = re.compile(r"\d{4,}")
COORDINATE: Final = re.compile(r"\d+[.,]\d+")
ALIKE: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
"""Letters as they are written on a keyboard without them."""


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """The pairs of queries that are the same, in order."""
    known = set(stems(place))
    sets = [(query, meaning(query) - known) for query in queries]
    return [
        (first, second)
        for position, (second, later) in enumerate(sets)
        for first, earlier in sets[:position]
        if alike(earlier, later)
    ]


def alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether two sets of words share at least `SAME` of all their words; empty ones do."""
    union = first | second
    return not union or len(first & second) / len(union) >= SAME


def meaning(query: str) -> frozenset[str]:
    """The stems of a query that tell it from others."""
    return frozenset(stem for stem in stems(query) if stem not in FILLER)


def stems(text: str) -> list[str]:
    """The words of a text, folded, without plural endings."""
    return [word if word in FILLER else _singular(word) for word in re.findall(r"\w+", fold(text))]


def _singular(word: str) -> str:
    """A crude singular, the same for both numbers in most languages that mark it by s or x."""
    if len(word) <= 3 or not word.isascii():
        return word
    if re.search(r"(?:[^s]s|eaux)$", word):
        word = word[:-1]
    word = word.removesuffix("e")
    return re.sub(r"y$", "i", word)


def mentions(query: str, place: str) -> bool:
    """Whether a query names the place or a part of it; a place without letters names nothing.

    Of "Lyon, France" that is Lyon: the country alone is no place to look for a shop in. A name may
    be spelled with its accents, without them, or with `oe` for `ö`; a postcode is a part too.
    """
    parts = telling_words(place)
    said = {spelling for word in _words(query) for spelling in spellings(word)}
    return not parts or any(
        spellings(part) & said or (not part.isascii() and part in query.casefold())
        for part in parts
    )


def telling_words(place: str) -> set[str]:
    """The words of a place by which a query names it: not the country, unless there is no more."""
    words = _words(COORDINATE.sub(" ", place))
    return _specific(without_countries(words)) or _specific(words)


def _words(text: str) -> list[str]:
    # In lower case the Turkish İ leaves a dot behind that would end the word.
    lowered = unicodedata.normalize("NFC", text).casefold().replace("\u0307", "")
    return re.findall(r"\w+", lowered)


def _specific(words: Iterable[str]) -> set[str]:
    common = FILLER | COMMON_IN_NAMES
    return {
        word
        for word in words
        if (POSTCODE.fullmatch(word) or not word.isdigit())
        and word not in common
        and (len(word) > 1 or not word.isascii())
    }


def without_countries(words: Sequence[str]) -> list[str]:
    """Words of a place without those that are a country's name, the longest names first."""
    if not words:
        return []
    for size in (4, 3, 2, 1):
        if tuple(map(fold, words[:size])) in country_names():
            return without_countries(words[size:])
    return [words[0], *without_countries(words[1:])]


def spellings(word: str) -> set[str]:
    """A word as it may be written: without accents, or with `oe` for `ö`; as a singular too."""
    plain = fold(word.translate(ALIKE))
    typed = fold(word.translate(UMLAUTS).translate(ALIKE))
    return {plain, typed, _singular(plain), _singular(typed)}

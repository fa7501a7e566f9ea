"""When two search queries are the same, and when one belongs to a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") do not tell two
queries apart, nor does the place, which is in all of them. What is left counts as the same when
the two share 0.7 of their words or more: at 0.6 "wine shop" and "natural wine shop" were one.
"""

import re
from collections.abc import Sequence
from typing import Final

from agent.grounding import fold

SAME: Final = 0.7
FILLER: Final = frozenset(
    "a an the in on at of for to from with and or by near nearby around me my where what best top "
    "good great local find list guide le la les el los las il lo gli der die das den dem de des "
    "du di da do dos del della en im am zu beste bester meilleur meilleure meilleurs mejor mejores "
    "migliore migliori y et und e".split()
)
COMMON_IN_NAMES: Final = frozenset("san santa saint sao st ste new north south east west".split())
"""A word of many places' names; alone it names none of them."""


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
    """Whether a query names the place or a part of it; a place without letters names nothing."""
    unspecific = FILLER | {_singular(word) for word in COMMON_IN_NAMES}
    parts = {stem for stem in stems(place) if stem not in unspecific and not stem.isdigit()}
    said = set(stems(query))
    return not parts or any(
        part in said or (not part.isascii() and part in fold(query)) for part in parts
    )

"""When two search queries are the same, and when one belongs to a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") do not tell two
queries apart, nor does the place, which is in all of them. What is left counts as the same when
the two share 0.7 of their words or more: at 0.6 "wine shop" and "natural wine shop" were one.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby, takewhile
from typing import Final

from agent.places.countries import COUNTRY_NAMES
from agent.text import fold

SAME: Final = 0.7
FILLER: Final = frozenset(
    "a an the in on at of for to from with and or by near nearby around me my where what best top "
    "good great local find list guide le la les el los las il lo gli der die das den dem de des "
    "du di da do dos del della en im am zu bei mit von fur beste bester besten bestes meilleur "
    "meilleure meilleurs meilleures mejor mejores migliore migliori melhor melhores pour avec "
    "dans con para em com per nel nella y et und e и в の で に を が は と も".split()
)
COMMON_IN_NAMES: Final = frozenset(
    "san santa saint sao st ste new north south east west upon city town village valley island "
    "lake river county province region district".split()
)
"""A word of many places' names; alone it names none of them."""
POSTCODE: Final = re.compile(r"\d{4,}")
COORDINATE: Final = re.compile(r"\d+[.,]\d+")

AS_TYPED: Final = re.compile(r"([ao])\1|([aou])e")
"""An umlaut, å or ø as it is written on a keyboard without them, beside what looks like one."""

INFLECTED: Final = frozenset(
    tuple(pair.split("/"))
    for pair in (
        "/s /es /x y/ies l/ux /e /n /en /er /ar o/i e/i a/e a/he o/hi io/i ao/os "
        "/ie a/ie a/y /u /ы /и а/ы а/и а/е ь/и и/е о/а /а /у /е /ες α/ες ο/α /ים ה/ות"
    ).split(" ")
)
"""Endings of one word in both numbers, or in the case that "in" asks for, in some languages."""
LEAST_STEM: Final = 3


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """The pairs of queries that are the same, in order."""
    named = words(place)
    told = [(query, telling(query, named)) for query in queries]
    return [
        (first, second)
        for position, (second, later) in enumerate(told)
        for first, earlier in told[:position]
        if alike(earlier, later)
    ]


def alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two lists of words share at least `SAME` of all their words; empty ones do.

    So do those that differ in spaces only, which some languages do without.
    """
    left = list(dict.fromkeys(second))
    shared = 0
    for word in dict.fromkeys(first):
        mate = next((each for each in left if same_word(word, each)), None)
        if mate is not None:
            left.remove(mate)
            shared += 1
    union = len(set(first)) + len(left)
    return shared >= SAME * union or "".join(first) == "".join(second)


def telling(query: str, place: Sequence[str]) -> list[str]:
    """The words of a query that tell it from others for the same place."""
    others = (word for word in words(query) if not any(same_word(word, each) for each in place))
    told = (_without_names(word, place) for word in others)
    return [word for word in told if word and word not in FILLER]


def _without_names(word: str, place: Sequence[str]) -> str:
    for each in filter(_is_chinese, place):
        word = word.replace(each, "")
    return word


def words(text: str) -> list[str]:
    """The words of a text, in one spelling: no case, no accents, `o` for `ö`, `oe` and `ø`.

    A word ends where the script does: Japanese has no spaces.
    """
    scripts = groupby(fold(text), _script)
    found = ("".join(characters) for script, characters in scripts if script)
    return [AS_TYPED.sub(r"\1\2", word) for word in found]


def _script(character: str) -> str:
    """What a word is made of: letters and signs of one script; nothing between words."""
    if unicodedata.category(character)[0] not in "LMN":
        return ""
    if _is_chinese(character):
        return "han"
    if "\u3040" <= character <= "\u309f":
        return "hiragana"
    return "katakana" if "\u30a0" <= character <= "\u30ff" else "letters"


def _is_chinese(word: str) -> bool:
    return "\u3400" <= word[0] <= "\u9fff" or word[0] == "々"


def same_word(first: str, second: str) -> bool:
    """Whether two words are one, in whichever number."""
    if first == second:
        return True
    pairs = zip(first, second, strict=False)
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if stem < LEAST_STEM:
        return False
    endings = first[stem:], second[stem:]
    # "negozio, negozi": the stem has swallowed the ending's first letter.
    swallowed = first[stem - 1] == "i" and sorted(endings) == ["", "o"]
    return swallowed or endings in INFLECTED or endings[::-1] in INFLECTED


def mentions(query: str, place: str) -> bool:
    """Whether a query names the place or a part of it; a place without letters names nothing.

    Of "Lyon, France" that is Lyon: the country alone is no place to look for a shop in. A name may
    be spelled with its accents, without them, or with `oe` for `ö`; a postcode is a part too.
    """
    parts, said = telling_words(place), words(query)
    return not parts or any(_is_said(part, said) for part in parts)


def _is_said(part: str, said: Sequence[str]) -> bool:
    if any(same_word(part, word) for word in said):
        return True
    if part.isascii():
        return False
    # Without spaces, a part of the name is enough: 渋谷 for 東京都渋谷区.
    pieces = {part[at : at + 2] for at in range(len(part) - 1)} if _is_chinese(part) else {part}
    return any(piece in word for piece in pieces or {part} for word in said)


def telling_words(place: str) -> set[str]:
    """The words of a place by which a query names it: not the country, unless there is no more."""
    named = words(COORDINATE.sub(" ", place))
    return _specific(without_countries(named)) or _specific(named)


def _specific(named: Iterable[str]) -> set[str]:
    common = FILLER | COMMON_IN_NAMES
    return {
        word
        for word in named
        if (POSTCODE.fullmatch(word) or not word.isdigit())
        and word not in common
        and (len(word) > 1 or not word.isascii())
    }


def without_countries(named: Sequence[str]) -> list[str]:
    """Words of a place without those that are a country's name, the longest names first."""
    if not named:
        return []
    for size in (4, 3, 2, 1):
        if tuple(named[:size]) in _countries():
            return without_countries(named[size:])
    return [named[0], *without_countries(named[1:])]


@cache
def _countries() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words(name)) for name in COUNTRY_NAMES)

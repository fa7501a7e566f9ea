"""Words of search queries: which two queries are the same, and which name a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") tell no two queries
apart, nor does the place, which is in all of them. Two queries are the same when they share 0.7 of
their other words: at 0.6, with the place left out, "wine shop" and "natural wine shop" were one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from agent import text
from agent.tables import Strict, read_toml

SAME: Final = 0.7
LEAST_STEM: Final = 3
LEAST_PREFIX: Final = 4
"""Letters that a word shares with a name from the start: "Kölner Weinhandlung", "w Warszawie"."""
LONGEST_NAME: Final = 4
"""Words of a place's name."""
POSTCODE: Final = text.pattern(r"\d{4,}")
COORDINATE: Final = text.pattern(r"(?<!\d)\d+[.,]\d+")
TRANSLITERATED: Final = text.pattern("aa|oo|[aou]e")
"""An umlaut, å or ø as it is written on a keyboard without them."""
PLURAL: Final = text.pattern(r"(?:ies|oes|ao|os|as|hi|he|en|es|er|[yisxeoaыиаь])\Z")
"""The endings that tell the singular of a word from its plural, in some languages."""
ONE_SCRIPT: Final = text.pattern(
    r"[\u3400-\u9fff々]+|[\u3040-\u309f]+|[\u30a0-\u30ff]+|[^\u3400-\u9fff々\u3040-\u30ff]+"
)
"""Chinese, hiragana, katakana, any other: Japanese has no spaces between them."""

Name = tuple[str, ...]


def words(said: str) -> list[str]:
    """Return the words of a text in one spelling: no case, no accents, `o` for `ö`, `oe` and `ø`.

    A word ends where its script does.
    """
    parts = (part for word in text.words(said) for part in ONE_SCRIPT.findall(word))
    return [TRANSLITERATED.sub(lambda found: found[0][0], part) for part in parts]


def stem(word: str) -> str:
    """Return a word without its plural ending, if enough of it is left."""
    stripped = PLURAL.sub("", word)
    return stripped if len(stripped) >= LEAST_STEM else word


def stems(said: str) -> list[str]:
    """Return the words of a text without their plural endings."""
    return [stem(word) for word in words(said)]


def names_in(listed: str) -> tuple[Name, ...]:
    """Return the names of places in a list, each as its words."""
    return tuple(tuple(words(name)) for name in listed.split(","))


class _Data(Strict):
    """The content of `words.toml`."""

    filler: Annotated[frozenset[str], BeforeValidator(stems)]
    common_in_names: Annotated[frozenset[str], BeforeValidator(words)]
    countries: Annotated[frozenset[Name], BeforeValidator(names_in)]


@cache
def _data() -> _Data:
    return read_toml(_Data, Path(__file__).with_name("words.toml"))


def countries() -> frozenset[Name]:
    """Return the names of countries and states in several languages, each as its words."""
    return _data().countries


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """Return the pairs of queries that are the same, in order."""
    named = [(query, _telling(query, place)) for query in queries]
    return [
        (first, second)
        for position, (second, later) in enumerate(named)
        for first, earlier in named[:position]
        if _are_same(earlier, later)
    ]


def _are_same(first: Sequence[str], second: Sequence[str]) -> bool:
    # Some languages do without spaces: "wine-bar", "winebar".
    one, other = set(map(stem, first)), set(map(stem, second))
    return len(one & other) >= SAME * len(one | other) or "".join(first) == "".join(second)


def _telling(query: str, place: str) -> list[str]:
    """Return the words of a query that tell it from others for the same place."""
    named = words(place)
    for name in filter(is_chinese, named):
        query = query.replace(name, " ")
    common = {stem(name) for name in named} | _data().filler
    return [word for word in words(query) if stem(word) not in common]


def is_chinese(word: str) -> bool:
    """Return whether a word begins with a Chinese character."""
    return "\u3400" <= word[0] <= "\u9fff" or word[0] == "々"


def mentions(query: str, place: str) -> bool:
    """Return whether a query names the place or a part of it; a place of no words is in all.

    Of "Lyon, France" that is Lyon: the country alone is no place to look for a shop in. A name may
    be spelled with its accents, without them, or with `oe` for `ö`; a postcode is a part too.
    """
    named, found = words(COORDINATE.sub(" ", place)), words(query)
    in_country = [
        word for name in split_names(named, countries()) if name not in countries() for word in name
    ]
    parts = _specific(in_country) or _specific(named)
    return not parts or any(_is_named(part, found) for part in parts)


def _specific(named: Iterable[str]) -> set[str]:
    """Return the words of a place that few other places share."""
    return {
        word
        for word in named
        if (POSTCODE.fullmatch(word) or not word.isdigit())
        and word not in _data().common_in_names
        and stem(word) not in _data().filler
        and (len(word) > 1 or not word.isascii())
    }


def _is_named(part: str, found: Sequence[str]) -> bool:
    prefix = stem(part) if len(stem(part)) > LEAST_PREFIX else part
    if len(prefix) >= LEAST_PREFIX and any(word.startswith(prefix) for word in found):
        return True
    if part in found or part.isascii():
        return part in found
    # Without spaces, a part of the name is enough: 渋谷 for 東京都渋谷区.
    pieces = {part[at : at + 2] for at in range(len(part) - 1)} if is_chinese(part) else {part}
    return any(piece in word for piece in pieces or {part} for word in found)


def split_names(named: Sequence[str], known: Collection[Name]) -> Iterator[Name]:
    """Yield the words of a place in order, the longest `known` names as one."""
    at = 0
    while at < len(named):
        sizes = range(LONGEST_NAME, 0, -1)
        size = next((size for size in sizes if tuple(named[at : at + size]) in known), 1)
        yield tuple(named[at : at + size])
        at += size

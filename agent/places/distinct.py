"""Words of search queries: which two queries are the same, and which name a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") tell no two queries
apart, nor does the place, which is in all of them. Two queries are the same when they share 0.7 of
their other words: at 0.6, with the place left out, "wine shop" and "natural wine shop" were one.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from agent import text
from agent.tables import Strict, read_toml

SAME: Final = 0.7
MIN_STEM: Final = 3
MIN_PREFIX: Final = 4
"""Letters that a word shares with a name from the start: "Kölner Weinhandlung", "w Warszawie"."""
POSTCODE: Final = text.pattern(r"\d{4,}")
COORDINATE: Final = text.pattern(r"\d+[.,]\d+")
TRANSLITERATED: Final = text.pattern("aa|oo|[aou]e")
"""An umlaut, å or ø as it is written on a keyboard without them."""
PLURAL: Final = text.pattern(r"(?:ies|oes|ao|os|as|hi|he|en|es|er|[yisxeoaыиаь])\Z")
"""The endings that tell the singular of a word from its plural, in some languages."""


def words(said: str) -> list[str]:
    """Return the words of a text in one spelling: no case, no accents, `o` for `ö`, `oe`, `ø`."""
    return [TRANSLITERATED.sub(lambda found: found[0][0], word) for word in text.words(said)]


def stem(word: str) -> str:
    """Return a word without its plural ending, if enough of it is left."""
    stripped = PLURAL.sub("", word)
    return stripped if len(stripped) >= MIN_STEM else word


def stems(said: str) -> list[str]:
    """Return the words of a text without their plural endings."""
    return [stem(word) for word in words(said)]


def names_in(listed: str) -> tuple[str, ...]:
    """Return the names of a list with commas, each in the spelling of `words`."""
    return tuple(" ".join(words(name)) for name in listed.split(","))


class _Data(Strict):
    """The content of `words.toml`."""

    filler: Annotated[frozenset[str], BeforeValidator(stems)]
    common_in_names: Annotated[frozenset[str], BeforeValidator(words)]
    countries: Annotated[frozenset[str], BeforeValidator(names_in)]


@cache
def _data() -> _Data:
    return read_toml(_Data, Path(__file__).with_name("words.toml"))


def countries() -> frozenset[str]:
    """Return the names of countries and states in several languages."""
    return _data().countries


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """Return the pairs of queries that are the same, in order."""
    pairs = combinations(queries, 2)
    return [(first, second) for first, second in pairs if _are_same(first, second, place)]


def _are_same(first: str, second: str, place: str) -> bool:
    common = {*stems(place), *_data().filler}
    one, other = set(stems(first)) - common, set(stems(second)) - common
    # Some languages do without spaces: "wine-bar", "winebar".
    return len(one & other) >= SAME * len(one | other) or _joined(first) == _joined(second)


def _joined(query: str) -> str:
    return "".join(words(query))


def mentions(query: str, place: str) -> bool:
    """Return whether a query names the place or a part of it; a place of no words is in all.

    Of "Lyon, France" that is Lyon: the country alone is no place to look for a shop in. A name may
    be spelled with its accents, without them, or with `oe` for `ö`; a postcode is a part too.
    """
    parts = [words(part) for part in COORDINATE.sub(" ", place).split(",")]
    in_country = [part for part in parts if " ".join(part) not in countries()]
    names = _specific(word for part in in_country for word in part)
    names = names or _specific(word for part in parts for word in part)
    return not names or any(_is_named(name, words(query)) for name in names)


def _specific(names: Iterable[str]) -> set[str]:
    """Return the words of a place that few other places share."""
    return {
        word
        for word in names
        if (POSTCODE.fullmatch(word) or not word.isdigit())
        and word not in _data().common_in_names
        and stem(word) not in _data().filler
        and (len(word) > 1 or not word.isascii())
    }


def _is_named(name: str, found: Sequence[str]) -> bool:
    prefix = stem(name) if len(stem(name)) > MIN_PREFIX else name
    if name in found or (len(prefix) >= MIN_PREFIX and any(w.startswith(prefix) for w in found)):
        return True
    # Without spaces, a part of the name is enough: 渋谷 for 東京都渋谷区.
    pieces = {name[at : at + 2] for at in range(len(name) - 1)} or {name}
    return not name.isascii() and any(piece in word for piece in pieces for word in found)

"""Text made comparable: case, accents and punctuation folded, synonyms resolved. Pure."""

import zlib
from collections.abc import Iterable
from typing import Final

from agent.sommelier.synonyms import COUNTRIES, GRAPES, REGIONS, alternatives, canonical
from agent.sommelier.wine import Wine
from agent.text import stop_words, words

_GRAPE_KEYS: Final = canonical(GRAPES)
_COUNTRY_KEYS: Final = canonical(COUNTRIES)
_GRAPE_NAMES: Final = alternatives(GRAPES)
_REGION_NAMES: Final = alternatives(REGIONS)

MAX_TERMS: Final = 32

_SAYS_NOTHING_HERE: Final = frozenset(
    """
    something anything wine wines bottle bottles please want like would could find show
    give need good nice best great get got let us
    """.split()
)


def fold(text: str) -> str:
    """Lower-case words without accents, joined by single spaces: `Côte-Rôtie` is `cote rotie`."""
    return " ".join(words(text))


def terms(text: str) -> tuple[str, ...]:
    """The words of `text` worth searching for: folded, without stop words and doubles.

    A term consists of letters and digits only, so no text can break a query's syntax.
    """
    # All stop words of Postgres' English configuration are left out: a term that it drops must not
    # count in SQLite either, or the two would disagree on what a text matches.
    nothing = stop_words() | _SAYS_NOTHING_HERE
    return tuple(dict.fromkeys(word for word in words(text) if word not in nothing))[:MAX_TERMS]


def grape_key(name: str) -> str:
    """The same key for every name of a grape: `Shiraz` and `Syrah` are `syrah`."""
    folded = fold(name)
    return _GRAPE_KEYS.get(folded, folded)


def country_key(name: str) -> str:
    """The same key for every name of a country: `USA` is `united states`."""
    folded = fold(name).removeprefix("the ")
    return _COUNTRY_KEYS.get(folded, folded)


def region_phrases(name: str) -> tuple[str, ...]:
    """All names of a region, folded; empty when `name` holds no word."""
    folded = fold(name)
    return _REGION_NAMES.get(folded, (folded,)) if folded else ()


def grape_phrases(name: str) -> tuple[str, ...]:
    """All names of a grape, folded; empty when `name` holds no word."""
    folded = fold(name)
    return _GRAPE_NAMES.get(folded, (folded,)) if folded else ()


def places(wine: Wine) -> str:
    """Region and appellation, so that ` rhone ` is found as whole words in either."""
    return f" {fold(wine.region)} | {fold(wine.appellation)} "


def slug(*parts: str) -> str:
    """An id in lower-case ASCII: `trimbach-riesling-reserve-2021`; empty if nothing is left."""
    return "-".join(word for word in words(" ".join(parts)) if word.isascii())


def shuffle(wine_id: str) -> int:
    """A fixed number that looks random, to order equals by."""
    return zlib.crc32(wine_id.encode())


def search_text(wine: Wine) -> str:
    """Every word that a text search should find this wine by, with all names of its grapes."""
    synonyms = (name for grape in wine.grapes for name in _GRAPE_NAMES.get(fold(grape), ()))
    return fold(" ".join(_words(wine, synonyms)))


def _words(wine: Wine, synonyms: Iterable[str]) -> Iterable[str]:
    yield from (wine.producer, wine.name, str(wine.vintage or "NV"))
    yield from (wine.country, wine.region, wine.appellation)
    yield from wine.grapes
    yield from synonyms
    yield from (value for value in (wine.style, wine.colour, wine.sweetness) if value)
    yield from (food.replace("_", " ") for food in wine.foods)
    yield wine.notes


def storable(text: str) -> str:
    """`text` without what a database cannot hold: NUL characters and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")

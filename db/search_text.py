"""Text made comparable: case, accents and punctuation folded, synonyms resolved. Pure."""

import re
import unicodedata
import zlib
from collections.abc import Iterable
from typing import Final

from agent.sommelier.synonyms import COUNTRIES, GRAPES, REGIONS, alternatives, canonical
from agent.sommelier.wine import Wine

_WORD: Final = re.compile(r"[^\W_]+")
_UNDECOMPOSED: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_GRAPE_KEYS: Final = canonical(GRAPES)
_COUNTRY_KEYS: Final = canonical(COUNTRIES)
_GRAPE_NAMES: Final = alternatives(GRAPES)
_REGION_NAMES: Final = alternatives(REGIONS)

MAX_TERMS: Final = 32

# All stop words of Postgres' English configuration: a term that it drops must not count in SQLite
# either, or the two would disagree on what a text matches.
_ENGLISH: Final = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves what
    which who whom this that these those am is are was were be been being have has had
    having do does did doing a an the and but if or because as until while of at by for
    with about against between into through during before after above below to from up
    down in out on off over under again further then once here there when where why how
    all any both each few more most other some such no nor not only own same so than too
    very s t can will just don should now
"""
_SAYS_NOTHING_HERE: Final = """
    something anything wine wines bottle bottles please want like would could find show
    give need good nice best great get got let us
"""
STOP_WORDS: Final = frozenset(f"{_ENGLISH} {_SAYS_NOTHING_HERE}".split())


def fold(text: str) -> str:
    """Lower-case words without accents, joined by single spaces: `Côte-Rôtie` is `cote rotie`."""
    decomposed = unicodedata.normalize("NFKD", text.lower().translate(_UNDECOMPOSED))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(_WORD.findall(plain.lower()))


def terms(text: str) -> tuple[str, ...]:
    """The words of `text` worth searching for: folded, without stop words and doubles.

    A term consists of letters and digits only, so no text can break a query's syntax.
    """
    words = (word for word in fold(text).split() if word not in STOP_WORDS)
    return tuple(dict.fromkeys(words))[:MAX_TERMS]


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
    words = fold(" ".join(parts)).split()
    return "-".join(word for word in words if word.isascii())


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

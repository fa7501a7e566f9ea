"""When two search queries are the same, and when one belongs to a place.

Case, accents, plurals, word order and words that narrow nothing ("best", "in") do not tell two
queries apart, nor does the place, which is in all of them. What is left counts as the same when
the two share 0.7 of their words or more: at 0.6 "wine shop" and "natural wine shop" were one.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from agent import text
from agent.tables import Strict, read_toml

SAME: Final = 0.7
LEAST_STEM: Final = 3
POSTCODE: Final = text.pattern(r"\d{4,}")
COORDINATE: Final = text.pattern(r"(?<!\d)\d+[.,]\d+")
AS_TYPED: Final = text.pattern("aa|oo|[aou]e")
"""An umlaut, å or ø as it is written on a keyboard without them, beside what looks like one."""
OF_ONE_SCRIPT: Final = text.pattern(
    r"[\u3400-\u9fff々]+|[\u3040-\u309f]+|[\u30a0-\u30ff]+|[^\u3400-\u9fff々\u3040-\u30ff]+"
)
"""Chinese, hiragana, katakana, any other: Japanese has no spaces between them."""


def words(said: str) -> list[str]:
    """Return the words of a text in one spelling: no case, no accents, `o` for `ö`, `oe` and `ø`.

    A word ends where the script does.
    """
    parts = (part for word in text.words(said) for part in OF_ONE_SCRIPT.findall(word))
    return [AS_TYPED.sub(lambda found: found[0][0], part) for part in parts]


Words = Annotated[frozenset[str], BeforeValidator(words)]


def _endings(said: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(pair.split("/")) for pair in text.fold(said).split())


def names_in(said: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of places in a list, each as its words."""
    return tuple(tuple(words(name)) for name in said.split(","))


class _Data(Strict):
    """What `words.toml` holds: words that narrow nothing, endings of one word, names of places."""

    filler: Words
    common_in_names: Words
    endings: Annotated[frozenset[tuple[str, ...]], BeforeValidator(_endings)]
    countries: Annotated[frozenset[tuple[str, ...]], BeforeValidator(names_in)]
    search: Words
    site_pages: Annotated[frozenset[str], BeforeValidator(lambda said: said.split())]


@cache
def _data() -> _Data:
    file = Path(__file__).with_name("words.toml")
    return read_toml(_Data, file)


def countries() -> frozenset[tuple[str, ...]]:
    """Return the names of countries and states in several languages, each as its words."""
    return _data().countries


def site_pages() -> frozenset[str]:
    """Return what the pages of a site are called that are about the same place as its first."""
    return _data().site_pages


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """Return the pairs of queries that are the same, in order."""
    named = words(place)
    told = [(query, telling(query, named)) for query in queries]
    return [
        (first, second)
        for position, (second, later) in enumerate(told)
        for first, earlier in told[:position]
        if alike(earlier, later)
    ]


def alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Say whether two lists of words share at least `SAME` of all their words; empty ones do.

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
    """Return the words of a query that tell it from others for the same place."""
    others = (word for word in words(query) if not any(same_word(word, each) for each in place))
    told = (_without_names(word, place) for word in others)
    return [word for word in told if word and word not in _data().filler]


def _without_names(word: str, place: Sequence[str]) -> str:
    for each in filter(is_chinese, place):
        word = word.replace(each, "")
    return word


def is_chinese(word: str) -> bool:
    """Say whether a word begins with a Chinese character."""
    return "\u3400" <= word[0] <= "\u9fff" or word[0] == "々"


def same_word(first: str, second: str) -> bool:
    """Say whether two words are one, in whichever number."""
    if first == second:
        return True
    if first[:LEAST_STEM] != second[:LEAST_STEM]:
        return False
    pairs = zip(first, second, strict=False)
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    endings = first[stem:], second[stem:]
    # "negozio, negozi": the stem has swallowed the ending's first letter.
    swallowed = first[stem - 1] == "i" and sorted(endings) == ["", "o"]
    return swallowed or not _data().endings.isdisjoint({endings, endings[::-1]})


def mentions(query: str, place: str) -> bool:
    """Say whether a query names the place or a part of it; one without letters names nothing.

    Of "Lyon, France" that is Lyon: the country alone is no place to look for a shop in. A name may
    be spelled with its accents, without them, or with `oe` for `ö`; a postcode is a part too.
    """
    parts, said = telling_words(place), words(query)
    return not parts or any(_is_said(part, said) for part in parts)


def of_search(word: str, place: str, known: Iterable[str]) -> bool:
    """Tell whether a word is of a place, of a search for such places, or of those `known`.

    One without case, as in Chinese, may be any.
    """
    if word.upper() == word.lower() and not any(map(str.isdecimal, word)):
        return True
    expected = [*words(place), *known, *_data().search, *_data().filler]
    return all(any(same_word(part, each) for each in expected) for part in words(word))


def _is_said(part: str, said: Sequence[str]) -> bool:
    if any(same_word(part, word) for word in said):
        return True
    if part.isascii():
        return False
    # Without spaces, a part of the name is enough: 渋谷 for 東京都渋谷区.
    pieces = {part[at : at + 2] for at in range(len(part) - 1)} if is_chinese(part) else {part}
    return any(piece in word for piece in pieces or {part} for word in said)


def telling_words(place: str) -> set[str]:
    """Return the words by which a query names a place: not the country, unless there is no more."""
    named = words(COORDINATE.sub(" ", place))
    return _specific(without_countries(named)) or _specific(named)


def _specific(named: Iterable[str]) -> set[str]:
    common = _data().filler | _data().common_in_names
    return {
        word
        for word in named
        if (POSTCODE.fullmatch(word) or not word.isdigit())
        and word not in common
        and (len(word) > 1 or not word.isascii())
    }


def without_countries(named: Sequence[str]) -> list[str]:
    """Return the words of a place that are no country's name; the longest names are tried first."""
    left: list[str] = []
    at = 0
    while at < len(named):
        sizes = (size for size in (4, 3, 2, 1) if tuple(named[at : at + size]) in _data().countries)
        size = next(sizes, 0)
        left += named[at : at + 1] if not size else []
        at += size or 1
    return left

"""A wine, or a text, held against what is expected of it."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evals.dataset import Expectation
from agent.sommelier.synonyms import Kind, folded, names
from agent.sommelier.wine import Wine, in_euros
from agent.text import fold, pattern, words

DENIALS: Final = frozenset("no not without never zero".split())
DENIED_WITHIN: Final = 3
"""How many words after a denial it still denies: "without any obvious oak"."""
ANYBODYS: Final = frozenset(
    """red white rose pink orange rouge blanc rosso bianco rosato tinto blanco rosado negre branco
    brut nature dry sec demi extra sekt cremant cava prosecco reserva riserva reserve crianza roble
    gran grand grande vin vino wine cru premier 1er classic classico superiore estate cuvee nv
    di de la le del du des aoc doc docg""".split()
)
"""Words of wines' names that many wines have."""
CLAUSE: Final = pattern(r"(?i)[.,;:!?()–—]| but | with ")
DASHES: Final = pattern(r"\s*[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*")
UNSEEN: Final = pattern(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")


def plain(text: str) -> str:
    """Return `text` folded, with one kind of dash and without what a reader does not see."""
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(fold(DASHES.sub("-", seen)).split())


def has_words(text: str, asked: str) -> bool:
    """Tell whether words stand in `text`, whole and in a row."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted} " in f" {' '.join(words(text))} "


def begins_words(text: str, asked: str) -> bool:
    """Tell whether `text` has words that begin with `asked`: "oxidative" begins with "oxida"."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted}" in f" {' '.join(words(text))}"


def within_budget(wine: Wine, expect: Expectation) -> bool:
    """Tell whether a wine keeps to the price limits, in euros at the product's own rates."""
    if expect.min_price is None and expect.max_price is None:
        return True
    price = wine.price_in_euros
    if price is None:
        return False
    low = in_euros(expect.min_price, expect.currency) if expect.min_price else 0.0
    high = in_euros(expect.max_price, expect.currency) if expect.max_price else price
    return low <= price <= high


def telling_names(wine: Wine) -> list[str]:
    """Return what a wine is told by: its producer, and its name unless others are called so too."""
    shared = {
        word for each in (wine.region, wine.appellation, *wine.grapes) for word in words(each)
    }
    is_telling = set(words(wine.name)) - shared - ANYBODYS
    return [wine.producer, wine.name] if is_telling else [wine.producer]


Meets = Callable[[str, str], bool]
"""Whether a value that is asked for is the one that a wine has."""


def same(asked: str, found: str) -> bool:
    """Tell whether two values are the same word."""
    return fold(asked) == fold(found)


def same_name(kind: Kind) -> Meets:
    """Tell whether two names mean the same thing: Shiraz and Syrah, USA and United States."""
    return lambda asked, found: folded(found) in names(kind, asked)


def lies_in(asked: str, found: str) -> bool:
    """Tell whether a place is in a region, as a search has it: Rhône holds the Southern Rhône."""
    return any(has_words(found, name) for name in names("regions", asked))


def is_said(asked: str, notes: str) -> bool:
    """Tell whether notes say a word, or several in a row, undenied: not "no oak", "unoaked"."""
    wanted = words(asked)
    return bool(wanted) and any(_says(words(each), wanted) for each in CLAUSE.split(notes))


def _says(clause: list[str], wanted: list[str]) -> bool:
    return any(
        clause[at : at + len(wanted)] == wanted
        and DENIALS.isdisjoint(clause[max(0, at - DENIED_WITHIN) : at])
        for at in range(len(clause) - len(wanted) + 1)
    )


@dataclass(frozen=True, slots=True)
class _Property:
    """What a wine has of a property, and when that meets what is asked."""

    values: Callable[[Wine], Sequence[str | None]]
    meets: Meets = same


_PROPERTIES: Final[Mapping[str, _Property]] = {
    "styles": _Property(lambda wine: [wine.style]),
    "colours": _Property(lambda wine: [wine.colour]),
    "sweetness": _Property(lambda wine: [wine.sweetness]),
    "bodies": _Property(lambda wine: [wine.body]),
    "foods": _Property(lambda wine: wine.foods),
    "countries": _Property(lambda wine: [wine.country], same_name("countries")),
    "regions": _Property(lambda wine: [wine.region, wine.appellation], lies_in),
    "grapes": _Property(lambda wine: wine.grapes, same_name("grapes")),
    "allergens": _Property(lambda wine: wine.allergens),
    "notes": _Property(lambda wine: [wine.notes], is_said),
}
_WITHOUT: Final = "without_"
_FIELDS: Final = [
    name for name in Expectation.model_fields if name.removeprefix(_WITHOUT) in _PROPERTIES
]


def has_filters(expect: Expectation) -> bool:
    """Tell whether anything but the price is asked of the wines."""
    return expect.max_abv is not None or any(getattr(expect, name) for name in _FIELDS)


def broken_filters(wine: Wine, expect: Expectation) -> Iterator[str]:
    """Yield what a wine does not keep to, the price left aside.

    Values that are wanted must meet the wine's, those it is to be without must not. A wine that
    does not say how much alcohol it has has too much.
    """
    for name in _FIELDS:
        if asked := [str(value) for value in getattr(expect, name)]:
            yield from _broken(wine, name, asked)
    if expect.max_abv is not None and (wine.abv is None or wine.abv > expect.max_abv):
        yield f"{wine.abv}% vol."


def _broken(wine: Wine, name: str, asked: Sequence[str]) -> Iterator[str]:
    checked = _PROPERTIES[name.removeprefix(_WITHOUT)]
    found = [str(value) for value in checked.values(wine) if value]
    met = [each for each in asked if any(checked.meets(each, other) for other in found)]
    if name.startswith(_WITHOUT):
        yield from [f"{fold(met[0])} ({name})"] if met else []
    elif not met:
        yield f"{'/'.join(map(fold, found)) or 'nothing known'} for {name}"

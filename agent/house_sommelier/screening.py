"""Which of the wines that a search returned may be offered. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from agent.house_sommelier.exclusions import Exclusions
from agent.house_sommelier.followups import Request
from agent.house_sommelier.lexicon import fold, scan, tokens
from agent.house_sommelier.negations import NOTE_WORDS
from agent.house_sommelier.results import ListedWine
from agent.sommelier.wine import Style

_NOT_AGAIN: Final = frozenset({"other", "cheaper", "dearer"})
_MOST_ALCOHOL: Final = 0.5


def offered(wines: Sequence[ListedWine], request: Request) -> Sequence[ListedWine]:
    """The wines that keep to every exclusion, and are new where something else is asked for.

    Alcohol-free ones only for those who ask or should not drink, or when there is nothing else.
    """
    fresh = [wine for wine in allowed(wines, request) if not _was_shown(wine, request)]
    if Style.ALCOHOL_FREE in request.query.styles:
        return fresh
    return [wine for wine in fresh if wine.style != Style.ALCOHOL_FREE] or fresh


def allowed(wines: Sequence[ListedWine], request: Request) -> Sequence[ListedWine]:
    """The wines that nothing speaks against: no exclusion, no allergen, no reason for care."""
    denied = frozenset(map(str, request.query.without_allergens))
    return [
        wine
        for wine in wines
        if not denied & set(wine.allergens)
        and not (request.care and has_alcohol(wine))
        and not is_excluded(wine, request.without)
    ]


def has_alcohol(wine: ListedWine) -> bool:
    """Whether a wine is no alcohol-free one."""
    return wine.style != Style.ALCOHOL_FREE or (wine.abv or 0) > _MOST_ALCOHOL


def is_excluded(wine: ListedWine, without: Exclusions) -> bool:
    """Whether a wine has something that was ruled out."""
    if not without:
        return False
    names = without.of("name")
    return bool(
        {wine.style, wine.colour} & without.of("hue")
        or wine.style in without.of("styles")
        or without.pairs & set(_facts(wine))
        or (names and names <= _stems(wine.name))
        or any(_tastes_of(wine, taste) for taste in without.of("text"))
    )


def _was_shown(wine: ListedWine, request: Request) -> bool:
    return bool(_NOT_AGAIN & request.said.cues) and wine.wine_id in request.seen


def _facts(wine: ListedWine) -> Iterator[tuple[str, str]]:
    """The grapes and places of a wine as the tables name them, and as they stand."""
    for text in (wine.country, wine.region, wine.appellation, *wine.grapes, wine.name):
        for match in scan(tokens(text)):
            yield from ((each.field, value) for each in match.meanings for value in each.values)
    yield from (("grapes", grape) for grape in wine.grapes)


def _tastes_of(wine: ListedWine, taste: str) -> bool:
    known = NOTE_WORDS.get(taste, frozenset({fold(taste)}))
    return bool(known & (_words(wine.notes) | _words(wine.name)))


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(token.written) for token in tokens(text))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text))

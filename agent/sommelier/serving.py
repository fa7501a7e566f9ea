"""Say how warm to serve a wine, and in which years it is at its best."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from agent.sommelier.wine import Body, Colour, Style, Wine, normalize
from agent.tables import StrictModel, read_toml

Range = tuple[int, int]
STILL_STYLES: Final = frozenset({Style.RED, Style.WHITE, Style.ROSE, Style.ORANGE})


def _split_keys(by_styles: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table whose keys were several styles, separated by spaces, by each style."""
    return {style: value for styles, value in by_styles.items() for style in styles.split()}


ByStyle = Annotated[dict[Style, Range], BeforeValidator(_split_keys)]


class _Term(StrictModel):
    """Words on a label that say something of age in these places only."""

    words: list[str]
    places: list[str]
    years: ByStyle


class _Cheap(StrictModel):
    """The longest wait, and the most years, of a still wine below a price."""

    euros_below: float
    wait: int
    years: int


class _Dear(StrictModel):
    """The years that a still wine lasts at least, from a price on."""

    euros_from: float
    years: int


class _Serving(StrictModel):
    """The content of `serving.toml`: years after the vintage, and degrees Celsius."""

    sources: list[str]
    wines: dict[str, ByStyle]
    terms: list[_Term]
    words: dict[str, ByStyle]
    places: dict[str, ByStyle]
    grapes: dict[str, ByStyle]
    styles: dict[Style, Range]
    cheap: list[_Cheap]
    dear: list[_Dear]
    degrees: dict[Style, Range]
    degrees_by_word: dict[str, ByStyle]
    degrees_by_colour: dict[Style, dict[Colour, Range]]
    degrees_by_body: dict[Style, dict[Body, Range]]


@cache
def _serving() -> _Serving:
    return read_toml(_Serving, Path(__file__).with_name("serving.toml"))


def drinking_years(wine: Wine) -> Range | None:
    """Return the first and last year in which a wine is at its best.

    Return None if the vintage is unknown, or the style of a wine that was read from a picture.
    """
    if not (wine.vintage and wine.style):
        return None
    first, last = _adjust_to_price(_find_ageing(wine), wine)
    return wine.vintage + first, wine.vintage + last


def _find_ageing(wine: Wine) -> Range:
    """Return the years after the vintage by what says most: wine, term, word, place, grape, style.

    A producer's name is no place: Lucy Margaux does not make Margaux.
    """
    tables, style = _serving(), wine.style
    title, appellation, region = map(normalize, (wine.name, wine.appellation, wine.region))
    places = f"{appellation} {title} {region}"
    grape = normalize(" ".join(wine.grapes[:1]))
    return (
        _find_longest(tables.wines, normalize(wine.label), style)
        or _find_term(tables.terms, places, style)
        or _find_longest(tables.words, f"{appellation} {title}", style)
        or _find_longest(tables.places, appellation, style)
        or _find_longest(tables.places, title, style)  # in a cellar, all that a user wrote
        or _find_longest(tables.places, region, style)
        or _find_longest(tables.grapes, grape, style)
        or tables.styles[style]
    )


def _find_longest(table: Mapping[str, ByStyle], text: str, style: Style) -> Range | None:
    """Return the range of the longest name that a text has and that has a range for the style."""
    matching = [name for name in table if style in table[name] and _has(text, name)]
    return table[max(matching, key=len)][style] if matching else None


def _find_term(terms: Iterable[_Term], text: str, style: Style) -> Range | None:
    """Return the range of the longest term in a text that also names a place of the term."""
    longest, found = "", None
    for term in terms:
        if style not in term.years or not any(_has(text, place) for place in term.places):
            continue
        for words in term.words:
            if _has(text, words) and len(words) > len(longest):
                longest, found = words, term.years[style]
    return found


def _has(text: str, words: str) -> bool:
    """Return whether a normalized text has whole words, in this order."""
    return f" {words} " in f" {text} "


def _adjust_to_price(years: Range, wine: Wine) -> Range:
    """Return the years of a still wine as its price lets expect.

    What costs little is made to be drunk soon, what costs much to be kept. Rosé is drunk young at
    any price.
    """
    euros = wine.price_in_euros
    if euros is None or wine.style not in STILL_STYLES:
        return years
    first, last = years
    for limit in _serving().cheap:
        if euros < limit.euros_below:
            return min(first, limit.wait), min(last, limit.years)
    for bound in _serving().dear:
        if euros >= bound.euros_from and wine.style is not Style.ROSE:
            return first, max(last, bound.years)
    return years


def serving_degrees(wine: Wine) -> Range:
    """Return the lowest and highest temperature at which to serve a wine, in degrees Celsius."""
    tables, style = _serving(), wine.style
    # "Fino" in the name says more than the region, Jerez.
    for text in (wine.name, wine.appellation, wine.region, *wine.grapes):
        by_word = _find_longest(tables.degrees_by_word, normalize(text), style)
        if by_word:
            return by_word
    by_colour = tables.degrees_by_colour.get(style, {})
    if wine.colour in by_colour:
        return by_colour[wine.colour]
    by_body = tables.degrees_by_body.get(style, {})
    if wine.body in by_body:
        return by_body[wine.body]
    return tables.degrees[style]


def serving_advice(wine: Wine) -> dict[str, str]:
    """Return how warm to serve a wine and when to drink it, as guests often ask that next."""
    low, high = serving_degrees(wine)
    years = drinking_years(wine)
    best = {"usually_best": f"{years[0]}-{years[1]}"} if years else {}
    return {"serve": f"{low}-{high} °C"} | best

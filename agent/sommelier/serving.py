"""Say how warm to serve a wine, and in which years it is at its best."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator

from agent.sommelier.vocabulary import Body, Colour, OfferKind, Style, normalize
from agent.sommelier.wine import Wine
from agent.tables import StrictModel, read_toml

Range = tuple[int, int]
"""The first and last year, or the lowest and highest temperature."""
USUAL_BOTTLE_ML: Final = range(700, 801)
"""The sizes of a bottle of usual size: 70 to 80 cl."""
MAX_PHRASE_WORDS: Final = 5
"""The number of words of the longest name in the tables: "Vinho Verde Monção e Melgaço"."""


def _split_keys(by_styles: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each style. A key may name several styles, separated by spaces."""
    by_style: dict[str, Any] = {}
    for styles, value in by_styles.items():
        for style in styles.split():
            by_style[style] = value
    return by_style


ByStyle = Annotated[dict[Style, Range], BeforeValidator(_split_keys)]
"""A range for each style. In the file a key may name several: `"red white" = [1, 5]`."""


class _Term(StrictModel):
    """Words on a label that say how long a wine keeps, in some places: "reserva" in Rioja."""

    words: list[str]
    places: list[str]
    years: ByStyle


class _Cheap(StrictModel):
    """The limits for wines up to a price: the latest years in which one is ready, and is old.

    The years count from the vintage.
    """

    euros_up_to: float
    years: ByStyle


class _Dear(StrictModel):
    """The limits for wines from a price on: the earliest years in which one is ready, and is old.

    The years count from the vintage.
    """

    euros_from: float
    years: ByStyle


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

    Return None if the vintage or the style is unknown. A picture may not show the style of a wine.
    """
    if wine.vintage is None or wine.style is None:
        return None
    first, last = _find_years(wine, wine.style)
    return (wine.vintage + first, wine.vintage + last)


def _find_years(wine: Wine, style: Style) -> Range:
    """Return the years after the vintage: the wine's own, or what is usual at its price."""
    label = _list_phrases(wine.label)
    own_years = _find_in_table(_serving().wines, label, style)
    if own_years:
        return own_years
    usual_years = _find_usual_years(wine, style)
    return _adjust_to_price(usual_years, style, _find_bottle_price(wine))


def _find_usual_years(wine: Wine, style: Style) -> Range:
    """Return the years after the vintage by what says most: term, word, place, grape, style.

    The name of a producer is not read as a place, because Lucy Margaux does not make Margaux.
    """
    tables = _serving()
    appellation = _list_phrases(wine.appellation)
    name = _list_phrases(wine.name)
    region = _list_phrases(wine.region)
    years = _find_term(tables.terms, [*appellation, *name, *region], style)
    if years:
        return years
    years = _find_in_table(tables.words, [*appellation, *name], style)
    if years:
        return years
    # The name may have a place, too: that of a wine in a user's cellar is all that the user typed.
    for phrases in (appellation, name, region):
        years = _find_in_table(tables.places, phrases, style)
        if years:
            return years
    if wine.grapes:
        main_grape = _list_phrases(wine.grapes[0])
        years = _find_in_table(tables.grapes, main_grape, style)
        if years:
            return years
    return tables.styles[style]


def _list_phrases(text: str) -> Sequence[str]:
    """Return all phrases of a text of up to `MAX_PHRASE_WORDS` words, normalized, longest first.

    Example: "Gran Reserva" has the phrases "gran reserva", "gran" and "reserva".
    """
    words = normalize(text).split()
    longest = min(MAX_PHRASE_WORDS, len(words))
    phrases: list[str] = []
    for length in range(longest, 0, -1):
        last_start = len(words) - length
        for start in range(last_start + 1):
            end = start + length
            phrases.append(" ".join(words[start:end]))
    return phrases


def _find_in_table(
    table: Mapping[str, ByStyle],
    phrases: Iterable[str],
    style: Style,
) -> Range | None:
    """Return the range of the first phrase that a table has for a style, or None."""
    for phrase in phrases:
        by_style = table.get(phrase, {})
        if style in by_style:
            return by_style[style]
    return None


def _find_term(
    terms: Iterable[_Term],
    phrases: Collection[str],
    style: Style,
) -> Range | None:
    """Return the range of the longest term among the phrases, or None.

    The phrases must also name one of the places of the term: "Gran Reserva" counts in Rioja, but
    not in Maipo. In Rioja it is preferred to "Reserva", because it is longer.
    """
    phrase_set = frozenset(phrases)
    longest_words = ""
    years: Range | None = None
    for term in terms:
        names_a_place = not phrase_set.isdisjoint(term.places)
        if style not in term.years or not names_a_place:
            continue
        for words in phrase_set.intersection(term.words):
            if len(words) > len(longest_words):
                longest_words = words
                years = term.years[style]
    return years


def _adjust_to_price(
    years: Range,
    style: Style,
    euros: float | None,
) -> Range:
    """Return the years of a wine, fewer if it is cheap and more if it is dear.

    A cheap wine is made to be drunk soon, and a dear wine is made to be kept.
    """
    if euros is None:
        return years
    years = _shorten_if_cheap(years, style, euros)
    return _lengthen_if_dear(years, style, euros)


def _shorten_if_cheap(years: Range, style: Style, euros: float) -> Range:
    """Return the years within the limits of the lowest price that is not exceeded."""
    first, last = years
    for cheap in _serving().cheap:
        if euros <= cheap.euros_up_to and style in cheap.years:
            longest_wait, most_years = cheap.years[style]
            return (min(first, longest_wait), min(last, most_years))
    return years


def _lengthen_if_dear(years: Range, style: Style, euros: float) -> Range:
    """Return the years within the limits of the highest price that is reached."""
    first, last = years
    for dear in _serving().dear:
        if euros >= dear.euros_from and style in dear.years:
            shortest_wait, fewest_years = dear.years[style]
            return (max(first, shortest_wait), max(last, fewest_years))
    return years


def _find_bottle_price(wine: Wine) -> float | None:
    """Return the price in euros of a bottle of usual size, or None if there is none."""
    for offer in wine.offers:
        is_usual = offer.size_ml is None or offer.size_ml in USUAL_BOTTLE_ML
        if offer.kind is OfferKind.BOTTLE and is_usual:
            return offer.price_in_euros
    return None


def serving_degrees(wine: Wine) -> Range | None:
    """Return the lowest and highest temperature at which to serve a wine, in degrees Celsius.

    Return None if its style is unknown.
    """
    style = wine.style
    if style is None:
        return None
    tables = _serving()
    # The name comes first, because "Fino" there says more than the region, Jerez.
    for text in (wine.name, wine.appellation, wine.region, *wine.grapes):
        phrases = _list_phrases(text)
        degrees = _find_in_table(tables.degrees_by_word, phrases, style)
        if degrees:
            return degrees
    by_colour = tables.degrees_by_colour.get(style, {})
    if wine.colour in by_colour:
        return by_colour[wine.colour]
    by_body = tables.degrees_by_body.get(style, {})
    if wine.body in by_body:
        return by_body[wine.body]
    return tables.degrees[style]


class WineKind(NamedTuple):
    """A place or grape of which the tables know how long its wines keep, and their style."""

    name: str
    """The name as the table has it: "chianti classico"."""
    style: Style


def find_kind(names: Sequence[str], style: Style | None) -> WineKind | None:
    """Return the place, or else the grape, that is in one of the names, or None.

    Without a style, it is the style for which the place or grape is best known.
    """
    tables = _serving()
    for table in (tables.places, tables.grapes):
        for name in names:
            for phrase in _list_phrases(name):
                for known_style in table.get(phrase, {}):
                    if style in (None, known_style):
                        return WineKind(phrase, known_style)
    return None


def find_usual_years(wine: Wine) -> Range | None:
    """Return how many years after the vintage wines of this kind are usually at their best.

    Return None if its style is unknown.
    """
    if wine.style is None:
        return None
    return _find_usual_years(wine, wine.style)


def serving_advice(wine: Wine) -> dict[str, str]:
    """Return how warm to serve a wine and when to drink it. Guests often ask for this next."""
    advice: dict[str, str] = {}
    degrees = serving_degrees(wine)
    if degrees:
        lowest, highest = degrees
        advice["serve"] = f"{lowest}-{highest} °C"
    years = drinking_years(wine)
    if years:
        first, last = years
        advice["usually_best"] = f"{first}-{last}"
    return advice

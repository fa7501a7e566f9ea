"""The filters of a wine search, as predicates."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import (
    Style,
    canonical_name,
    mentions,
    speaks_of_oak,
    synonyms,
    to_euros,
)
from agent.sommelier.wine import NON_VEGAN_ALLERGENS
from db.wines.entries import Entry

Predicate = Callable[[Entry], bool]
Filters = dict[str, Predicate]
"""Predicates by the name of the filter in `WineQuery`; `price` stands for all of its limits."""

PRICE_TOLERANCE: Final = 0.25
"""The share by which prices may differ from the price `query.around`."""
BUBBLES: Final = (
    "sparkling",
    "bubbles",
    "fizz",
    "fizzy",
    "spumante",
    "sekt",
    "mousseux",
)
"""Words in the notes of sparkling alcohol-free wines, whose style is just alcohol-free."""
MAX_ALCOHOL_FREE: Final = 0.5
"""The strongest drink that may be sold as alcohol-free, in % vol."""
FIELDS_BY_FILTER: Final[Mapping[str, str]] = {
    "colours": "colour",
    "sweetness": "sweetness",
    "bodies": "body",
    "tannins": "tannin",
    "acidities": "acidity",
}
"""The field of a wine whose value must be one of those of the filter."""


def build_filters(query: WineQuery) -> Filters:
    """Return the predicate of every filter that is set, by the filter's name."""
    filters: Filters = {}
    for name, field in FIELDS_BY_FILTER.items():
        if values := getattr(query, name):
            filters[name] = _has_value(field, values)
    if query.styles:
        filters["styles"] = _has_style(query)
    if query.foods:
        foods = frozenset(query.foods)
        filters["foods"] = lambda entry: not foods.isdisjoint(entry.wine.foods)
    if query.grapes:
        filters["grapes"] = _is_made_of(query.grapes)
    if query.countries:
        filters["countries"] = _is_from(query.countries)
    if query.regions:
        filters["regions"] = _is_in_region(query.regions)
    return filters | _yes_or_no_filters(query) | _limits(query) | _exclusions(query)


def _yes_or_no_filters(query: WineQuery) -> Filters:
    """Return the filters that a wine meets or not, whatever its values."""
    filters: Filters = {}
    if query.alcohol_free is not None:
        filters["alcohol_free"] = lambda entry: (
            _is_alcohol_free(entry) == query.alcohol_free
        )
    if query.oak is not None:
        filters["oak"] = lambda entry: speaks_of_oak(entry.text) == query.oak
    if query.vegan:
        filters["vegan"] = lambda entry: NON_VEGAN_ALLERGENS.isdisjoint(
            entry.wine.allergens
        )
    if query.in_stock_only and not query.name:
        filters["in_stock_only"] = lambda entry: entry.in_stock
    return filters


def _limits(query: WineQuery) -> Filters:
    """Return the filters of strength and price."""
    filters: Filters = {}
    minimum, maximum = query.min_abv, query.max_abv
    if minimum is not None:
        filters["min_abv"] = lambda entry: (
            entry.wine.abv is not None and entry.wine.abv >= minimum
        )
    if maximum is not None:
        filters["max_abv"] = lambda entry: _is_at_most(entry, maximum)
    if any(limit is not None for limit in query.price_limits):
        filters["price"] = _is_within_price(query)
    return filters


def _exclusions(query: WineQuery) -> Filters:
    """Return the filters that leave wines out."""
    filters: Filters = {}
    if query.not_ids:
        ids = frozenset(query.not_ids)
        filters["not_ids"] = lambda entry: entry.wine.id not in ids
    if query.without_allergens:
        allergens = frozenset(query.without_allergens)
        filters["without_allergens"] = lambda entry: allergens.isdisjoint(
            entry.wine.allergens
        )
    if query.without_styles:
        # "red" and "white" are styles and colours. A wine of unknown colour passes.
        styles: frozenset[str | None] = frozenset(query.without_styles)
        filters["without_styles"] = lambda entry: styles.isdisjoint(
            (entry.wine.style, entry.wine.colour)
        )
    if query.without_grapes:
        is_made_of, is_suggested = (
            _is_made_of(query.without_grapes),
            _suggests(query.without_grapes),
        )
        filters["without_grapes"] = lambda entry: (
            not (is_made_of(entry) or is_suggested(entry))
        )
    for name in ("without_countries", "without_regions"):
        if places := getattr(query, name):
            filters[name] = _is_not_from(places)
    return filters


def _has_value(field: str, values: Collection[str]) -> Predicate:
    """Return whether a field of a wine has one of the values."""
    allowed = frozenset(values)
    return lambda entry: getattr(entry.wine, field) in allowed


def _has_style(query: WineQuery) -> Predicate:
    """Return whether a wine has one of the styles; an alcohol-free one, whether it looks so."""
    styles: frozenset[str | None] = frozenset(query.styles)
    if not query.alcohol_free or Style.ALCOHOL_FREE in styles:
        return lambda entry: entry.wine.style in styles
    if Style.SPARKLING not in styles:
        return lambda entry: entry.wine.colour in styles
    return lambda entry: entry.wine.colour in styles or mentions(entry.text, BUBBLES)


def _is_made_of(names: Sequence[str]) -> Predicate:
    """Return whether one of the grapes is in a wine; of unknown grapes, whether it is named so."""
    grapes = frozenset(canonical_name("grapes", name) for name in names)
    phrases = [phrase for name in names for phrase in synonyms("grapes", name)]

    def is_made_of(entry: Entry) -> bool:
        if entry.grapes:
            return not grapes.isdisjoint(entry.grapes)
        return mentions(entry.name, phrases)

    return is_made_of


def _suggests(names: Sequence[str]) -> Predicate:
    """Return whether the text of a wine of unknown grapes mentions one of these."""
    phrases = [phrase for name in names for phrase in synonyms("grapes", name)]
    return lambda entry: not entry.grapes and mentions(entry.text, phrases)


def _is_from(names: Sequence[str]) -> Predicate:
    countries = frozenset(canonical_name("countries", name) for name in names)
    return lambda entry: entry.country in countries


def _is_in_region(names: Sequence[str]) -> Predicate:
    """Return whether a wine is from one of the regions; many lists tell it by the name only."""
    regions = [region for name in names for region in synonyms("regions", name)]
    return lambda entry: (
        mentions(entry.origin, regions) or mentions(entry.name, regions)
    )


def _is_not_from(names: Sequence[str]) -> Predicate:
    """Return whether a wine is from none of these places: requests mix up countries and regions."""
    is_from, is_in_region = _is_from(names), _is_in_region(names)
    return lambda entry: not (is_from(entry) or is_in_region(entry))


def _is_alcohol_free(entry: Entry) -> bool:
    return entry.wine.style is Style.ALCOHOL_FREE


def _is_at_most(entry: Entry, strength: float) -> bool:
    """Return whether a wine is not stronger; an alcohol-free one of unknown strength has 0.5 %."""
    if entry.wine.abv is None:
        return _is_alcohol_free(entry) and strength >= MAX_ALCOHOL_FREE
    return entry.wine.abv <= strength


def _is_within_price(query: WineQuery) -> Predicate:
    """Return whether the price of a wine is known and within all limits of a query."""

    def limit(amount: float | None) -> float | None:
        return None if amount is None else to_euros(amount, query.currency)

    low, high, below = (
        limit(query.min_price),
        limit(query.max_price),
        limit(query.below),
    )
    around = limit(query.around)

    def is_within(entry: Entry) -> bool:
        price = entry.price
        if price is None or (low is not None and price < low):
            return False
        if (high is not None and price > high) or (
            below is not None and price >= below
        ):
            return False
        if around is None:
            return True
        return around * (1 - PRICE_TOLERANCE) <= price <= around * (1 + PRICE_TOLERANCE)

    return is_within

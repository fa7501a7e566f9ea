"""The filters of a wine search: for each filter of a query, a predicate over the entries."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Final

from agent.sommelier.conversion import convert_roughly
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import (
    NameKind,
    Style,
    find_canonical_name,
    has_phrase,
    list_synonyms,
    speaks_of_oak,
    to_euros,
)
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from db.wines.entries import Entry

Predicate = Callable[[Entry], bool]
Filters = dict[str, Predicate]
"""The predicates by the names of the filters in `WineQuery`.

The predicate `price` stands for all limits of the price.
"""

PRICE_TOLERANCE: Final = 0.25
"""The share by which a price may differ from the price `query.around`."""
BUBBLES: Final = (
    "sparkling",
    "bubbles",
    "fizz",
    "fizzy",
    "spumante",
    "sekt",
    "mousseux",
)
"""Words that say that an alcohol-free wine is sparkling: its style is only "alcohol-free"."""
MAX_ALCOHOL_FREE: Final = 0.5
"""The strongest drink that may be sold as alcohol-free, in % vol."""
FIELDS_BY_FILTER: Final[Mapping[str, str]] = {
    "colours": "colour",
    "sweetness": "sweetness",
    "bodies": "body",
    "tannins": "tannin",
    "acidities": "acidity",
}
"""For a filter with values, the field of a wine that must have one of these values."""


def build_filters(query: WineQuery) -> Filters:
    """Return the predicate of every filter that is set, by the filter's name."""
    filters: Filters = {}
    for name, field in FIELDS_BY_FILTER.items():
        values = getattr(query, name)
        if values:
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
    filters |= _yes_or_no_filters(query)
    filters |= _limit_filters(query)
    filters |= _exclusion_filters(query)
    return filters


def _yes_or_no_filters(query: WineQuery) -> Filters:
    """Return the filters for which the query has yes or no instead of values."""
    filters: Filters = {}
    if query.alcohol_free is not None:
        filters["alcohol_free"] = lambda entry: (
            _is_alcohol_free(entry) == query.alcohol_free
        )
    if query.oak is not None:
        filters["oak"] = lambda entry: speaks_of_oak(entry.text) == query.oak
    if query.vegan:
        filters["vegan"] = _has_none_of(NON_VEGAN_ALLERGENS)
    if query.in_stock_only and not query.name:
        # A guest who asks for a wine by its name is told about it in any case.
        filters["in_stock_only"] = lambda entry: entry.in_stock
    return filters


def _limit_filters(query: WineQuery) -> Filters:
    """Return the filters of strength and price."""
    filters: Filters = {}
    weakest = query.min_abv
    if weakest is not None:
        filters["min_abv"] = lambda entry: (
            entry.wine.abv is not None and entry.wine.abv >= weakest
        )
    strongest = query.max_abv
    if strongest is not None:
        filters["max_abv"] = lambda entry: _is_no_stronger(entry, strongest)
    if any(limit is not None for limit in query.price_limits):
        filters["price"] = _is_within_price(query)
    return filters


def _exclusion_filters(query: WineQuery) -> Filters:
    """Return the filters that leave wines out."""
    filters: Filters = {}
    if query.not_ids:
        ids = frozenset(query.not_ids)
        filters["not_ids"] = lambda entry: entry.wine.id not in ids
    if query.without_allergens:
        filters["without_allergens"] = _has_none_of(query.without_allergens)
    if query.without_styles:
        # "red" and "white" are styles and colours. A wine of unknown colour passes.
        styles: frozenset[str | None] = frozenset(query.without_styles)
        filters["without_styles"] = lambda entry: (
            entry.wine.style not in styles and entry.wine.colour not in styles
        )
    if query.without_grapes:
        filters["without_grapes"] = _is_not_made_of(query.without_grapes)
    for name in ("without_countries", "without_regions"):
        places = getattr(query, name)
        if places:
            filters[name] = _is_not_from(places)
    return filters


def _has_value(field: str, values: Collection[str]) -> Predicate:
    """Return the predicate that a field of a wine has one of the values."""
    allowed = frozenset(values)
    return lambda entry: getattr(entry.wine, field) in allowed


def _has_none_of(allergens: Collection[str]) -> Predicate:
    """Return the predicate that a wine is not said to contain one of the allergens."""
    avoided = frozenset(allergens)
    return lambda entry: avoided.isdisjoint(entry.wine.allergens)


def _has_style(query: WineQuery) -> Predicate:
    """Return the predicate that a wine has one of the styles of a query.

    If an alcohol-free wine is wanted, its style is "alcohol-free". Then its colour, or a word such
    as "fizz", must name the wanted style.
    """
    styles: frozenset[str | None] = frozenset(query.styles)
    if not query.alcohol_free or Style.ALCOHOL_FREE in styles:
        return lambda entry: entry.wine.style in styles
    if Style.SPARKLING not in styles:
        return lambda entry: entry.wine.colour in styles
    return lambda entry: entry.wine.colour in styles or has_phrase(entry.text, BUBBLES)


def _is_made_of(names: Sequence[str]) -> Predicate:
    """Return the predicate that a wine has one of the grapes.

    If the grapes of a wine are unknown, its name must mention one of them.
    """
    grapes = frozenset(find_canonical_name("grapes", name) for name in names)
    phrases = _all_synonyms("grapes", names)

    def is_made_of(entry: Entry) -> bool:
        if entry.grapes:
            return not grapes.isdisjoint(entry.grapes)
        return has_phrase(entry.name, phrases)

    return is_made_of


def _is_not_made_of(names: Sequence[str]) -> Predicate:
    """Return the predicate that a wine has none of the grapes.

    If the grapes of a wine are unknown, neither its name nor its text may mention one of them.
    """
    is_made_of = _is_made_of(names)
    phrases = _all_synonyms("grapes", names)

    def is_not_made_of(entry: Entry) -> bool:
        if is_made_of(entry):
            return False
        if entry.grapes:
            return True
        return not has_phrase(entry.text, phrases)

    return is_not_made_of


def _is_from(names: Sequence[str]) -> Predicate:
    """Return the predicate that a wine is from one of the countries."""
    countries = frozenset(find_canonical_name("countries", name) for name in names)
    return lambda entry: entry.country in countries


def _is_in_region(names: Sequence[str]) -> Predicate:
    """Return the predicate that a wine is from one of the regions.

    The name of the wine is read, too: in many lists only the name has the region.
    """
    regions = _all_synonyms("regions", names)

    def is_in_region(entry: Entry) -> bool:
        return has_phrase(entry.origin, regions) or has_phrase(entry.name, regions)

    return is_in_region


def _all_synonyms(kind: NameKind, names: Sequence[str]) -> list[str]:
    """Return the names with all their synonyms."""
    found: list[str] = []
    for name in names:
        found += list_synonyms(kind, name)
    return found


def _is_not_from(names: Sequence[str]) -> Predicate:
    """Return the predicate that a wine is from none of these places.

    Each place is tried as a country and as a region, because requests mix these up.
    """
    is_from = _is_from(names)
    is_in_region = _is_in_region(names)
    return lambda entry: not (is_from(entry) or is_in_region(entry))


def _is_alcohol_free(entry: Entry) -> bool:
    return entry.wine.style is Style.ALCOHOL_FREE


def _is_no_stronger(entry: Entry, strongest: float) -> bool:
    """Return whether a wine has at most this strength, in % vol.

    An alcohol-free wine of unknown strength is taken as one of `MAX_ALCOHOL_FREE`.
    """
    strength = entry.wine.abv
    if strength is None and _is_alcohol_free(entry):
        strength = MAX_ALCOHOL_FREE
    return strength is not None and strength <= strongest


def _is_within_price(query: WineQuery) -> Predicate:
    """Return the predicate that the price of a wine is known and within all limits of a query."""

    def in_euros(amount: float | None, otherwise: float) -> float:
        if amount is None:
            return otherwise
        return to_euros(amount, query.currency)

    lowest = in_euros(query.min_price, otherwise=0)
    highest = in_euros(query.max_price, otherwise=inf)
    if query.around is not None:
        around = to_euros(query.around, query.currency)
        lowest = max(lowest, around * (1 - PRICE_TOLERANCE))
        highest = min(highest, around * (1 + PRICE_TOLERANCE))

    def is_within(entry: Entry) -> bool:
        price = entry.price
        if price is None:
            return False
        return lowest <= price <= highest and _is_below(entry.wine, query)

    return is_within


def _is_below(wine: Wine, query: WineQuery) -> bool:
    """Return whether the price of a wine does not reach `query.below`.

    In another currency than its own, the price is the one that users are shown: no list for "under
    20 francs" has a wine of "≈ CHF 20".
    """
    if query.below is None:
        return True
    price = wine.price or 0
    if wine.currency is not query.currency:
        price = convert_roughly(price, wine.currency, query.currency)
    return price < query.below

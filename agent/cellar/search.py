"""Search a user's cellar: find the items that fit a wish, and put the readiest to drink first.

Texts are compared as whole words. Therefore the texts of an item, and the words and phrases that
are looked for in them, are normalized and have a space before and after: " pinot noir ".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from agent.cellar.index import SIZES_ML, IndexedItem, Size, index_cellar
from agent.query_reading.tables import load_dishes, load_pairings
from agent.query_reading.tokens import strip_plural
from agent.sommelier.queries import Canonical, ListOf, NameList, ShortText
from agent.sommelier.vocabulary import (
    NameKind,
    find_canonical_name,
    list_synonyms,
    normalize,
)
from agent.tables import StrictModel
from agent.turn import CellarItem, Drink

Readiness = Literal["now", "soon", "past", "wait"]
"""A wish for wines that are ready, that should be drunk soon, that are late, or still too young."""
CanonicalNames = Annotated[ListOf[Canonical[ShortText]], Field(max_length=12)]
ItemFilter = Callable[[IndexedItem], bool]
"""Returns whether an item meets a condition of a query."""
Pairing = Mapping[str, Sequence[str]]
"""What suits a food: the good values of `styles`, `bodies`, `tannins` and so on."""

FIELDS_BY_TASTE: Final = {
    "bodies": "body",
    "sweetness": "sweetness",
    "tannins": "tannin",
    "acidities": "acidity",
}
"""The tastes of a pairing, each with the field of a wine that is compared with its values."""
FOOD_POINTS: Final = 2
"""The points of a wine that is known to go with the dish. A taste of the pairing is one point."""


class CellarQuery(StrictModel):
    """A search of the guest's own cellar; prices are per bottle, in euros.

    Styles and foods are those of `search_wines`, whose schema lists them; other words find nothing.
    """

    text: ShortText = ""
    styles: CanonicalNames = ()
    grapes: NameList = ()
    regions: NameList = ()
    foods: CanonicalNames = ()
    """Not a filter: foods set the styles and the order, by their pairing."""
    readiness: Readiness | None = None
    min_price: float | None = None
    max_price: float | None = None
    below: SkipJsonSchema[float | None] = None
    """A limit that the price must not reach."""
    size: Size | None = None
    place: ShortText = ""
    drunk: bool = False
    """Asks for opened bottles instead, which `find_drinks` finds. `search_cellar` ignores this."""


def search_cellar(
    items: Sequence[IndexedItem],
    query: CellarQuery,
    pairing: Pairing | None = None,
) -> list[IndexedItem]:
    """Return the items that meet all filters of a query.

    `pairing` is what suits the dish. If it is None, it is found by the foods of the query. If the
    query has no styles, the wine must be of a style of the pairing.

    The items stay in their order, the readiest first. Among items of the same state, those that
    suit the pairing best come first.
    """
    if pairing is None:
        pairing = find_pairing(query.foods)
    found = list(items)
    for meets_filter in _build_filters(query, pairing):
        found = list(filter(meets_filter, found))
    if query.text:
        words = normalize(query.text).split()
        found = select_named(found, words)
    if pairing:
        _sort_by_pairing(found, pairing, query.foods)
    return found


def _sort_by_pairing(
    items: list[IndexedItem],
    pairing: Pairing,
    foods: Sequence[str],
) -> None:
    """Put the items of each state that suit a pairing best before the others of that state."""

    def rank(indexed: IndexedItem) -> tuple[int, int]:
        points = _count_points(indexed.item, pairing, foods)
        return indexed.state_order, -points

    items.sort(key=rank)


def find_pairing(foods: Sequence[str]) -> Pairing:
    """Return the pairing of the first of some foods that has one, or an empty pairing."""
    names = _load_pairing_names()
    for food in foods:
        if food in names:
            return load_pairings()[names[food]]
    return {}


@lru_cache(1)
def _load_pairing_names() -> Mapping[str, str]:
    """Return the name of the pairing of each food.

    A food without a pairing of its own has that of the first dish in which it is the main food.
    """
    names = {name: name for name in load_pairings()}
    for dish in load_dishes():
        if dish.pairing in load_pairings():
            # The first food of a dish is its main food.
            main_food = dish.foods[0]
            names.setdefault(main_food, dish.pairing)
    return names


def select_named(
    items: Sequence[IndexedItem], words: Iterable[str]
) -> list[IndexedItem]:
    """Return the items that have the most of some normalized words, or none if no item has any."""
    padded_words = [f" {strip_plural(word)} " for word in words]
    highest_count = 1
    selected: list[IndexedItem] = []
    for indexed in items:
        count = sum(word in indexed.words for word in padded_words)
        if count > highest_count:
            highest_count = count
            selected = []
        if count == highest_count:
            selected.append(indexed)
    return selected


def find_drinks(drinks: Sequence[Drink], text: str) -> list[Drink]:
    """Return the opened bottles whose wines a text names, or all if the text is empty."""
    if not text:
        return list(drinks)
    # Names are looked for in indexed items. The index leaves out items without bottles, so each
    # item has one. The year does not matter, because it only decides on readiness.
    by_key = {}
    for drink in drinks:
        by_key[drink.key] = CellarItem(
            key=drink.key,
            wine=drink.wine,
            count=1,
        )
    items = list(by_key.values())
    indexed_items = index_cellar(items, year=0)
    words = normalize(text).split()
    named = select_named(indexed_items, words)
    named_keys = {indexed.item.key for indexed in named}
    return [drink for drink in drinks if drink.key in named_keys]


def list_urgent(items: Sequence[IndexedItem]) -> list[IndexedItem]:
    """Return the items that are ready or late, those whose best years end first on top."""
    urgent = []
    for indexed in items:
        if indexed.state in ("ready", "late"):
            urgent.append(indexed)
    urgent.sort(key=_get_last_year)
    return urgent


def _get_last_year(indexed: IndexedItem) -> int:
    _, last = indexed.window or (0, 0)
    return last


def _build_filters(query: CellarQuery, pairing: Pairing) -> list[ItemFilter]:
    """Return the filters for the fields that are set in a query, the cheapest first."""
    filters: list[ItemFilter] = []
    styles = query.styles or pairing.get("styles", ())
    if query.readiness:
        filters.append(_READINESS_FILTERS[query.readiness])
    if styles:
        filters.append(lambda indexed: indexed.style in styles)
    if query.size:
        sizes = SIZES_ML[query.size]
        filters.append(lambda indexed: indexed.size_ml in sizes)
    limits = (query.min_price, query.max_price, query.below)
    if any(limit is not None for limit in limits):
        filters.append(_filter_by_price(query))
    if query.place:
        place = f" {normalize(query.place)} "
        filters.append(lambda indexed: place in indexed.place)
    if query.grapes:
        filters.append(_filter_by_grapes(query.grapes))
    if query.regions:
        filters.append(_filter_by_regions(query.regions))
    return filters


_READINESS_FILTERS: Final[Mapping[Readiness, ItemFilter]] = {
    "now": lambda indexed: indexed.state == "ready",
    "soon": lambda indexed: indexed.is_due_soon,
    "past": lambda indexed: indexed.state == "late",
    "wait": lambda indexed: indexed.state == "young",
}
"""The filter for each readiness. An item with unknown best years meets none of them."""


def _filter_by_price(query: CellarQuery) -> ItemFilter:
    """Return a filter for wines with a known price within the limits of a query."""
    lowest = query.min_price or 0
    highest = inf
    if query.max_price is not None:
        highest = query.max_price
    below = inf
    if query.below is not None:
        below = query.below

    def is_within_limits(indexed: IndexedItem) -> bool:
        price = indexed.euros
        if price is None:
            return False
        return lowest <= price <= highest and price < below

    return is_within_limits


def _filter_by_grapes(names: Sequence[str]) -> ItemFilter:
    """Return a filter for wines of one of these grapes.

    If the grapes of a wine are unknown, its name must have the name of one of the grapes.
    """
    grapes = {find_canonical_name("grapes", name) for name in names}
    phrases = _list_synonyms("grapes", names)

    def has_grape(indexed: IndexedItem) -> bool:
        if indexed.grapes:
            return not indexed.grapes.isdisjoint(grapes)
        return _has_phrase(indexed.key, phrases)

    return has_grape


def _filter_by_regions(names: Sequence[str]) -> ItemFilter:
    """Return a filter for wines from one of these regions or countries.

    It is enough that the name of a wine has the name of one of the regions.
    """
    countries = {find_canonical_name("countries", name) for name in names}
    phrases = _list_synonyms("regions", names)

    def is_from_region(indexed: IndexedItem) -> bool:
        if indexed.country in countries:
            return True
        return any(_has_phrase(text, phrases) for text in indexed.origin)

    return is_from_region


def _list_synonyms(kind: NameKind, names: Sequence[str]) -> list[str]:
    """Return all names of some grapes or regions, each with a space before and after."""
    phrases: list[str] = []
    for name in names:
        for synonym in list_synonyms(kind, name):
            phrases.append(f" {synonym} ")
    return phrases


def _has_phrase(text: str, phrases: Sequence[str]) -> bool:
    return any(phrase in text for phrase in phrases)


def _count_points(
    item: CellarItem,
    pairing: Pairing,
    foods: Sequence[str],
) -> int:
    """Return how well a wine suits a pairing and the foods for which it was chosen."""
    wine: Mapping[str, Any] = item.wine
    points = 0
    foods_of_wine = wine.get("foods", ())
    if not set(foods).isdisjoint(foods_of_wine):
        points += FOOD_POINTS
    for taste, field in FIELDS_BY_TASTE.items():
        good_values = pairing.get(taste, ())
        if wine.get(field) in good_values:
            points += 1
    return points

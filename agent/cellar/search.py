"""Search a user's cellar: which of their bottles fit a wish, the readiest first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent.cellar.index import SIZES_ML, IndexedItem, Size, index_cellar
from agent.query_reading.tables import load_dishes, load_pairings
from agent.query_reading.tokens import strip_plural
from agent.sommelier.queries import Canonical, ListOf, NameList, ShortText
from agent.sommelier.vocabulary import NameKind, canonical_name, normalize, synonyms
from agent.tables import StrictModel
from agent.turn import CellarItem, Drink

Readiness = Literal["now", "soon", "past", "wait"]
CanonicalNames = Annotated[ListOf[Canonical[ShortText]], Field(max_length=12)]
Predicate = Callable[[IndexedItem], bool]
Pairing = Mapping[str, Sequence[str]]

FIELDS_BY_TASTE: Final = {
    "bodies": "body",
    "sweetness": "sweetness",
    "tannins": "tannin",
    "acidities": "acidity",
}
"""The field of a wine for each taste of a pairing."""


class CellarQuery(StrictModel):
    """A search of the guest's own cellar; prices are per bottle, in euros.

    Styles and foods are those of `search_wines`, whose schema lists them; other words find nothing.
    """

    text: ShortText = ""
    styles: CanonicalNames = ()
    grapes: NameList = ()
    regions: NameList = ()
    foods: CanonicalNames = ()
    readiness: Readiness | None = None
    min_price: float | None = None
    max_price: float | None = None
    size: Size | None = None
    place: ShortText = ""
    drunk: bool = False


def search_cellar(
    indexed: Sequence[IndexedItem], query: CellarQuery, pairing: Pairing | None = None
) -> list[IndexedItem]:
    """Return the items that meet all filters of a query, in their order: the readiest first.

    `pairing` is what suits the dish; by default it is found by the query's foods. Its style must
    be met unless the query has one. Of wines in the same state, those come first that meet most of
    its other tastes.
    """
    if pairing is None:
        pairing = find_pairing(query.foods)
    found = [*indexed]
    for is_met in _predicates(query, pairing):
        found = [*filter(is_met, found)]
    if query.text:
        found = select_named(found, normalize(query.text).split())
    if pairing:

        def count_met(entry: IndexedItem) -> int:
            return _count_met(entry.item, pairing, query.foods)

        found.sort(key=count_met, reverse=True)
        found.sort(key=lambda entry: entry.state_order)
    return found


def find_pairing(foods: Sequence[str]) -> Pairing:
    """Return what suits the first of some foods that has a pairing; empty if none has."""
    names = _pairing_names()
    for food in foods:
        if food in names:
            return load_pairings()[names[food]]
    return {}


@lru_cache(1)
def _pairing_names() -> Mapping[str, str]:
    """Return the name of the pairing of each food: its own, or that of a dish made of it."""
    names = {name: name for name in load_pairings()}
    for dish in load_dishes():
        if dish.pairing in load_pairings():
            names.setdefault(dish.foods[0], dish.pairing)
    return names


def select_named(
    indexed: Sequence[IndexedItem], words: Iterable[str]
) -> list[IndexedItem]:
    """Return the items whose texts have the most of some normalized words, at least one."""
    wanted = [f" {strip_plural(word)} " for word in words]
    best_count = 1
    best: list[IndexedItem] = []
    for entry in indexed:
        count = 0
        for word in wanted:
            if word in entry.words:
                count += 1
        if count > best_count:
            best_count = count
            best = []
        if count == best_count:
            best.append(entry)
    return best


def find_drinks(drinks: Sequence[Drink], text: str) -> list[Drink]:
    """Return the opened bottles whose wines a text names; all of them without a text."""
    if not text:
        return [*drinks]
    items: dict[str, CellarItem] = {}
    for drink in drinks:
        items[drink.key] = CellarItem(key=drink.key, wine=drink.wine, count=1)
    indexed = index_cellar([*items.values()], 0)
    named = select_named(indexed, normalize(text).split())
    keys = {entry.item.key for entry in named}
    return [drink for drink in drinks if drink.key in keys]


def _predicates(query: CellarQuery, pairing: Pairing) -> list[Predicate]:
    """Return the filters that are set, the cheapest first."""
    predicates: list[Predicate] = []
    styles: frozenset[str] = frozenset(query.styles or pairing.get("styles", ()))
    if query.readiness:
        predicates.append(_READINESS[query.readiness])
    if styles:
        predicates.append(lambda entry: entry.style in styles)
    if query.size:
        sizes = SIZES_ML[query.size]
        predicates.append(lambda entry: entry.size_ml in sizes)
    if query.min_price is not None or query.max_price is not None:
        predicates.append(_is_within_price(query))
    if query.place:
        place = f" {normalize(query.place)} "
        predicates.append(lambda entry: place in entry.place)
    if query.grapes:
        predicates.append(_is_made_of(query.grapes))
    if query.regions:
        predicates.append(_is_from(query.regions))
    return predicates


_READINESS: Final[Mapping[Readiness, Predicate]] = {
    "now": lambda entry: entry.state == "ready",
    "soon": lambda entry: entry.is_due_soon,
    "past": lambda entry: entry.state == "late",
    "wait": lambda entry: entry.state == "young",
}
"""Tests of how ready an item is; one with an unknown window passes none."""


def _is_within_price(query: CellarQuery) -> Predicate:
    low = query.min_price or 0
    high = query.max_price

    def is_within(entry: IndexedItem) -> bool:
        if entry.euros is None or entry.euros < low:
            return False
        return high is None or entry.euros <= high

    return is_within


def _is_made_of(names: Sequence[str]) -> Predicate:
    """Return a test of the grapes of a wine; one of unknown grapes passes by its label."""
    grapes = {canonical_name("grapes", name) for name in names}
    phrases = _pad_synonyms("grapes", names)

    def is_made_of(entry: IndexedItem) -> bool:
        if entry.grapes:
            return not entry.grapes.isdisjoint(grapes)
        return any(phrase in entry.key for phrase in phrases)

    return is_made_of


def _is_from(names: Sequence[str]) -> Predicate:
    """Return a test of the origin of a wine, by its country or by the names of its region."""
    countries = {canonical_name("countries", name) for name in names}
    phrases = _pad_synonyms("regions", names)

    def is_from(entry: IndexedItem) -> bool:
        if entry.country in countries:
            return True
        return any(phrase in text for text in entry.origin for phrase in phrases)

    return is_from


def _pad_synonyms(kind: NameKind, names: Sequence[str]) -> list[str]:
    """Return all names of some grapes or regions, padded as the texts of the index are."""
    phrases: list[str] = []
    for name in names:
        phrases += [f" {phrase} " for phrase in synonyms(kind, name)]
    return phrases


def _count_met(item: CellarItem, pairing: Pairing, foods: Sequence[str]) -> int:
    """Return how many tastes of a pairing a wine meets; a food that the list tells counts twice."""
    wine: Mapping[str, Any] = item.wine
    met = 0
    if not set(foods).isdisjoint(wine.get("foods", ())):
        met = 2
    for name, field in FIELDS_BY_TASTE.items():
        if wine.get(field) in pairing.get(name, ()):
            met += 1
    return met

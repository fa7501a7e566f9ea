"""Search a user's cellar: which of their bottles fit a wish, the readiest first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent.cellar.index import SIZES_ML, IndexedItem, Size, index_cellar
from agent.query_reading.tables import load_dishes, load_pairings
from agent.query_reading.tokens import strip_plural
from agent.sommelier.queries import Canonical, ListOf, NameList, ShortText
from agent.sommelier.vocabulary import canonical_name, normalize, synonyms
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
        found = [each for each in found if is_met(each)]
    if query.text:
        found = select_named(found, normalize(query.text).split())
    if pairing:
        found.sort(
            key=lambda each: (
                each.state_order,
                -_count_met(each.item, pairing, query.foods),
            )
        )
    return found


def find_pairing(foods: Sequence[str]) -> Pairing:
    """Return what suits the first of some foods that has a pairing; empty if none has."""
    for food in foods:
        if name := _pairing_names().get(food):
            return load_pairings()[name]
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
    counts = [sum(map(each.words.__contains__, wanted)) for each in indexed]
    best = max(counts, default=0)
    if best == 0:
        return []
    return [each for each, count in zip(indexed, counts, strict=True) if count == best]


def find_drinks(drinks: Sequence[Drink], text: str) -> list[Drink]:
    """Return the opened bottles whose wines a text names; all of them without a text."""
    if not text:
        return [*drinks]
    items = {
        drink.key: CellarItem(key=drink.key, wine=drink.wine, count=1)
        for drink in drinks
    }
    indexed = index_cellar([*items.values()], 0)
    named = {each.item.key for each in select_named(indexed, normalize(text).split())}
    return [drink for drink in drinks if drink.key in named]


def _predicates(query: CellarQuery, pairing: Pairing) -> list[Predicate]:
    """Return the filters that are set, the cheapest first."""
    predicates: list[Predicate] = []
    styles: frozenset[str] = frozenset(query.styles or pairing.get("styles", ()))
    if query.readiness:
        predicates.append(_READINESS[query.readiness])
    if styles:
        predicates.append(lambda each: each.style in styles)
    if query.size:
        sizes = SIZES_ML[query.size]
        predicates.append(lambda each: each.size_ml in sizes)
    if query.min_price is not None or query.max_price is not None:
        predicates.append(_is_within_price(query))
    if query.place:
        place = f" {normalize(query.place)} "
        predicates.append(lambda each: place in each.place)
    if query.grapes:
        predicates.append(_is_made_of(query.grapes))
    if query.regions:
        predicates.append(_is_from(query.regions))
    return predicates


_READINESS: Final[Mapping[Readiness, Predicate]] = {
    "now": lambda each: each.state == "ready",
    "soon": lambda each: each.is_due_soon,
    "past": lambda each: each.state == "late",
    "wait": lambda each: each.state == "young",
}
"""Whether an item is so ready; one with an unknown window never is."""


def _is_within_price(query: CellarQuery) -> Predicate:
    low, high = query.min_price or 0, query.max_price

    def is_within(each: IndexedItem) -> bool:
        if each.euros is None or each.euros < low:
            return False
        return high is None or each.euros <= high

    return is_within


def _is_made_of(names: Sequence[str]) -> Predicate:
    """Return whether one of the grapes is in a wine; of unknown grapes, whether it is named so."""
    grapes = {canonical_name("grapes", name) for name in names}
    phrases = [f" {phrase} " for name in names for phrase in synonyms("grapes", name)]

    def is_made_of(each: IndexedItem) -> bool:
        if each.grapes:
            return not each.grapes.isdisjoint(grapes)
        return any(phrase in each.key for phrase in phrases)

    return is_made_of


def _is_from(names: Sequence[str]) -> Predicate:
    """Return whether a wine is from one of these regions or countries, or is called so."""
    countries = {canonical_name("countries", name) for name in names}
    phrases = [f" {phrase} " for name in names for phrase in synonyms("regions", name)]

    def is_from(each: IndexedItem) -> bool:
        if each.country in countries:
            return True
        return any(phrase in text for text in each.origin for phrase in phrases)

    return is_from


def _count_met(item: CellarItem, pairing: Pairing, foods: Sequence[str]) -> int:
    """Return how many tastes of a pairing a wine meets; a food that the list tells counts most."""
    wine: Mapping[str, Any] = item.wine
    met = 2 if not set(foods).isdisjoint(wine.get("foods", ())) else 0
    for name, field in FIELDS_BY_TASTE.items():
        if wine.get(field) in pairing.get(name, ()):
            met += 1
    return met

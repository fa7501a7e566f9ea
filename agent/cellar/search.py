"""Search a user's cellar: which of their bottles fit a wish, the readiest first.

A cellar may hold thousands of wines, and every turn reads it anew. So the predicates read the plain
fields of an item, and no `Wine` is made of it before it is chosen.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field

from agent.cellar.items import (
    USUAL_SIZE_ML,
    DrinkingState,
    Window,
    find_drinking_window,
    items_in_stock,
    state_of_window,
)
from agent.query_reading.tables import load_dishes, load_pairings
from agent.query_reading.tokens import strip_plural
from agent.sommelier.queries import Canonical, ListOf, NameList, ShortText
from agent.sommelier.vocabulary import Currency, canonical_name, normalize, synonyms, to_euros
from agent.tables import StrictModel
from agent.turn import CellarItem, Drink

Readiness = Literal["now", "soon", "past", "wait"]
Size = Literal["half", "bottle", "magnum", "large"]
Price = float
CanonicalNames = Annotated[ListOf[Canonical[ShortText]], Field(max_length=12)]
Predicate = Callable[[CellarItem], bool]
Pairing = Mapping[str, Sequence[str]]

SOON_YEARS: Final = 1
"""A wine whose best years end this year or in so many years should be drunk soon."""
STATE_ORDER: Final[Mapping[DrinkingState, int]] = {"ready": 0, "late": 1, "unknown": 2, "young": 3}
SIZES_ML: Final[Mapping[Size, range]] = {
    "half": range(1, 500),
    "bottle": range(500, 1_001),
    "magnum": range(1_001, 1_501),
    "large": range(1_501, 100_001),
}
FIELDS_BY_TASTE: Final = {
    "bodies": "body",
    "sweetness": "sweetness",
    "tannins": "tannin",
    "acidities": "acidity",
}
"""The field of a wine for each taste of a pairing."""
MAX_CACHED_TEXTS: Final = 20_000


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
    min_price: Price | None = None
    max_price: Price | None = None
    size: Size | None = None
    place: ShortText = ""
    drunk: bool = False


class FoundItem(NamedTuple):
    """An item that was found, with its drinking window."""

    item: CellarItem
    window: Window | None
    state: DrinkingState


def search_cellar(
    items: Iterable[CellarItem], query: CellarQuery, year: int, pairing: Pairing | None = None
) -> list[FoundItem]:
    """Return the items in stock that meet all filters of a query, the readiest first.

    `pairing` is what suits the dish; by default it is found by the query's foods. Its style must
    be met unless the query has one. Of wines that are as ready, those come first that meet most of
    its other tastes, then those whose best years end first.
    """
    if pairing is None:
        pairing = find_pairing(query.foods)
    fitting = items_in_stock(items)
    for is_met in _predicates(query, pairing):
        fitting = [item for item in fitting if is_met(item)]
    if query.text:
        fitting = select_named(fitting, normalize(query.text).split())
    found = [_with_window(item, year) for item in fitting]
    if query.readiness:
        found = [each for each in found if _is_as_ready(each, query.readiness, year)]
    ranked: list[tuple[int, int, int, int, FoundItem]] = []
    for each in found:
        order, years = _readiness_rank(each)
        met = _count_met(each.item, pairing, query.foods) if pairing else 0
        ranked.append((order, -met, years, each.item.number, each))
    ranked.sort(key=itemgetter(0, 1, 2, 3))
    return [each for *_, each in ranked]


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


def select_named(items: Sequence[CellarItem], words: Iterable[str]) -> list[CellarItem]:
    """Return the items whose texts have the most of some normalized words, at least one."""
    wanted = [f" {strip_plural(word)} " for word in words]
    counts = [sum(map(_text_of(item).__contains__, wanted)) for item in items]
    best = max(counts, default=0)
    if best == 0:
        return []
    return [item for item, count in zip(items, counts, strict=True) if count == best]


def find_drinks(drinks: Sequence[Drink], text: str) -> list[Drink]:
    """Return the opened bottles whose wines a text names; all of them without a text."""
    if not text:
        return [*drinks]
    items = {drink.key: CellarItem(key=drink.key, wine=drink.wine, count=1) for drink in drinks}
    named = {item.key for item in select_named([*items.values()], normalize(text).split())}
    return [drink for drink in drinks if drink.key in named]


def _predicates(query: CellarQuery, pairing: Pairing) -> list[Predicate]:
    """Return the filters that are set, the cheapest first."""
    predicates: list[Predicate] = []
    styles: frozenset[str] = frozenset(query.styles or pairing.get("styles", ()))
    if styles:
        predicates.append(lambda item: _has_style(item, styles))
    if query.size:
        sizes = SIZES_ML[query.size]
        predicates.append(lambda item: (item.size_ml or USUAL_SIZE_ML) in sizes)
    if query.min_price is not None or query.max_price is not None:
        predicates.append(_is_within_price(query))
    if query.place:
        place = f" {normalize(query.place)} "
        predicates.append(lambda item: place in _padded(item.place))
    if query.grapes:
        predicates.append(_is_made_of(query.grapes))
    if query.regions:
        predicates.append(_is_from(query.regions))
    return predicates


def _has_style(item: CellarItem, styles: frozenset[str]) -> bool:
    """Return whether a wine has one of some styles, or that colour if its style is unknown."""
    return (item.wine.get("style") or item.wine.get("colour")) in styles


def _is_within_price(query: CellarQuery) -> Predicate:
    low, high = query.min_price or 0, query.max_price

    def is_within(item: CellarItem) -> bool:
        price = item.wine.get("price")
        if price is None:
            return False
        euros = to_euros(price, Currency(item.wine.get("currency", Currency.EUR)))
        return low <= euros and (high is None or euros <= high)

    return is_within


def _is_made_of(names: Sequence[str]) -> Predicate:
    """Return whether one of the grapes is in a wine; of unknown grapes, whether it is named so."""
    grapes = {canonical_name("grapes", name) for name in names}
    phrases = [f" {phrase} " for name in names for phrase in synonyms("grapes", name)]

    def is_made_of(item: CellarItem) -> bool:
        known = item.wine.get("grapes", ())
        if known:
            return any(_canonical_grape(grape) in grapes for grape in known)
        return any(phrase in _padded(item.key) for phrase in phrases)

    return is_made_of


def _is_from(names: Sequence[str]) -> Predicate:
    """Return whether a wine is from one of these regions or countries, or is called so."""
    countries = {canonical_name("countries", name) for name in names}
    phrases = [f" {phrase} " for name in names for phrase in synonyms("regions", name)]

    def is_from(item: CellarItem) -> bool:
        wine = item.wine
        if _canonical_country(wine.get("country", "")) in countries:
            return True
        texts = (wine.get("region", ""), wine.get("appellation", ""), item.key)
        return any(phrase in _padded(text) for text in texts for phrase in phrases)

    return is_from


def _text_of(item: CellarItem) -> str:
    """Return the words by which a user may call an item, normalized, singular and padded."""
    wine = item.wine
    places = (wine.get("region", ""), wine.get("appellation", ""), wine.get("country", ""))
    texts = (item.key, *places, *wine.get("grapes", ()), wine.get("style", ""), size_word(item))
    return "".join(map(_singular, texts))


def size_word(item: CellarItem) -> Size | Literal[""]:
    """Return the kind of a size that is not the usual one, or an empty string."""
    if item.size_ml is None or item.size_ml in SIZES_ML["bottle"]:
        return ""
    return next((name for name, sizes in SIZES_ML.items() if item.size_ml in sizes), "")


@lru_cache(MAX_CACHED_TEXTS)
def _padded(text: str) -> str:
    return f" {normalize(text)} "


@lru_cache(MAX_CACHED_TEXTS)
def _singular(text: str) -> str:
    return f" {' '.join(map(strip_plural, normalize(text).split()))} "


@lru_cache(MAX_CACHED_TEXTS)
def _canonical_grape(name: str) -> str:
    return canonical_name("grapes", name)


@lru_cache(MAX_CACHED_TEXTS)
def _canonical_country(name: str) -> str:
    return canonical_name("countries", name)


def _with_window(item: CellarItem, year: int) -> FoundItem:
    window = find_drinking_window(item)
    return FoundItem(item, window, state_of_window(window, year))


def _is_as_ready(found: FoundItem, readiness: Readiness, year: int) -> bool:
    """Return whether an item is so ready; one with an unknown window never is."""
    match readiness:
        case "now":
            return found.state == "ready"
        case "past":
            return found.state == "late"
        case "wait":
            return found.state == "young"
        case "soon":
            return should_be_drunk_soon(found, year)


def should_be_drunk_soon(found: FoundItem, year: int) -> bool:
    """Return whether the best years of a ready wine end this year or in `SOON_YEARS`."""
    is_ready = found.state == "ready" and found.window is not None
    return is_ready and found.window is not None and found.window[1] <= year + SOON_YEARS


def _readiness_rank(found: FoundItem) -> tuple[int, int]:
    """Return the rank of a state, and within it the year by which items are sorted."""
    window, state = found.window, found.state
    if window is None:
        return STATE_ORDER[state], 0
    if state == "young":
        return STATE_ORDER[state], window[0]
    return STATE_ORDER[state], -window[1] if state == "late" else window[1]


def _count_met(item: CellarItem, pairing: Pairing, foods: Sequence[str]) -> int:
    """Return how many tastes of a pairing a wine meets; a food that the list tells counts most."""
    wine: Mapping[str, Any] = item.wine
    met = 2 if not set(foods).isdisjoint(wine.get("foods", ())) else 0
    for name, field in FIELDS_BY_TASTE.items():
        if wine.get(field) in pairing.get(name, ()):
            met += 1
    return met

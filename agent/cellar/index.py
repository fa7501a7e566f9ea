"""Prepare the items of a cellar for searches, once for each version of the cellar.

A cellar may have thousands of wines, and a turn may search it several times. A cellar is read as
the same tuple until it changes, so the index of that tuple is kept in a cache.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from agent.cellar.items import (
    USUAL_SIZE_ML,
    DrinkingState,
    Window,
    find_drinking_window,
    find_state,
    select_in_stock,
)
from agent.query_reading.tokens import strip_plural
from agent.sommelier.vocabulary import (
    Currency,
    find_canonical_name,
    normalize,
    to_euros,
)
from agent.turn import CellarItem

Size = Literal["half", "bottle", "magnum", "large"]

SOON_YEARS: Final = 1
"""A wine should be drunk soon if this year or the next is the last of its best years."""
STATE_ORDER: Final[Mapping[DrinkingState, int]] = {
    "ready": 0,
    "late": 1,
    "unknown": 2,
    "young": 3,
}
SIZES_ML: Final[Mapping[Size, range]] = {
    "half": range(1, 500),
    "bottle": range(500, 1_001),
    "magnum": range(1_001, 1_501),
    "large": range(1_501, 100_001),
}
BLEND: Final = "Blend"
"""The end of a name that is no grape, such as "Red Blend"."""
MAX_CACHED_TEXTS: Final = 20_000
MAX_CACHED_CELLARS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedItem:
    """An item in stock, with its state in a year and its texts.

    The texts are normalized and have a space before and after them, so that whole words can be
    found in them.
    """

    item: CellarItem
    window: Window | None
    state: DrinkingState
    is_due_soon: bool
    """Whether the wine is ready, and its best years end within `SOON_YEARS`."""
    style: str
    """The style of the wine, or its colour if that is unknown."""
    size_ml: int
    euros: float | None
    """The price of a bottle."""
    words: str
    """The words by which a user may name the wine, without plural endings."""
    key: str
    place: str
    grapes: frozenset[str]
    country: str
    origin: tuple[str, ...]
    """The texts in which the region of the wine may be named."""

    @property
    def state_order(self) -> int:
        """Return the place of the state when items are sorted."""
        return STATE_ORDER[self.state]


class _Cellar:
    """A cellar as a key of a cache.

    Keys are equal if they have the same tuple, not an equal one.
    """

    __slots__ = ("items",)

    def __init__(self, items: tuple[CellarItem, ...]) -> None:
        self.items = items

    def __hash__(self) -> int:
        return id(self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cellar) and self.items is other.items


def index_cellar(items: Sequence[CellarItem], year: int) -> Sequence[IndexedItem]:
    """Return the items in stock, prepared for searches in a year, the readiest first."""
    if isinstance(items, tuple):
        return _index_cached(_Cellar(items), year)
    return _index(items, year)


@lru_cache(MAX_CACHED_CELLARS)
def _index_cached(cellar: _Cellar, year: int) -> Sequence[IndexedItem]:
    return _index(cellar.items, year)


def _index(items: Iterable[CellarItem], year: int) -> Sequence[IndexedItem]:
    in_stock = select_in_stock(items)
    indexed_items = [_index_item(item, year) for item in in_stock]
    indexed_items.sort(key=_rank_readiness)
    return tuple(indexed_items)


def _rank_readiness(indexed: IndexedItem) -> tuple[int, int, int]:
    """Return the state, the year that decides within a state, and the number of an item."""
    first, last = indexed.window or (0, 0)
    match indexed.state:
        case "young":
            year = first
        case "late":
            # The wine that has been past its best for the shortest time comes first.
            year = -last
        case _:
            year = last
    return indexed.state_order, year, indexed.item.number


def _index_item(item: CellarItem, year: int) -> IndexedItem:
    wine = item.wine
    window = find_drinking_window(item)
    state = find_state(window, year)
    is_due_soon = False
    if window is not None and state == "ready":
        _, last = window
        is_due_soon = last <= year + SOON_YEARS
    key = _pad(item.key)
    region = _pad(wine.get("region", ""))
    appellation = _pad(wine.get("appellation", ""))
    return IndexedItem(
        item=item,
        window=window,
        state=state,
        is_due_soon=is_due_soon,
        style=wine.get("style") or wine.get("colour") or "",
        size_ml=item.size_ml or USUAL_SIZE_ML,
        euros=_read_euros(wine),
        words=_fold_words(item),
        key=key,
        place=_pad(item.place),
        grapes=_read_grapes(wine),
        country=_find_canonical_country(wine.get("country", "")),
        origin=(region, appellation, key),
    )


def _read_grapes(wine: Mapping[str, Any]) -> frozenset[str]:
    """Return the known grapes. A name such as "Red Blend" is no grape."""
    grapes = set()
    for name in wine.get("grapes", ()):
        if not name.endswith(BLEND):
            grapes.add(_find_canonical_grape(name))
    return frozenset(grapes)


def _read_euros(wine: Mapping[str, Any]) -> float | None:
    price = wine.get("price")
    if price is None:
        return None
    currency = Currency(wine.get("currency", Currency.EUR))
    return to_euros(price, currency)


def _fold_words(item: CellarItem) -> str:
    """Return the words by which a user may name an item, without plural endings."""
    wine = item.wine
    texts = [item.key, name_size(item)]
    texts += wine.get("grapes", ())
    for field in ("region", "appellation", "country", "style"):
        texts.append(wine.get(field, ""))
    return "".join(map(_fold, texts))


def name_size(item: CellarItem) -> Size | Literal[""]:
    """Return the name of an unusual size of bottles, or "" for the usual size."""
    if item.size_ml is None:  # a range would compare each of its numbers with None
        return ""
    for name, sizes in SIZES_ML.items():
        if item.size_ml in sizes and name != "bottle":
            return name
    return ""


@lru_cache(MAX_CACHED_TEXTS)
def _pad(text: str) -> str:
    """Return a normalized text between spaces."""
    return f" {normalize(text)} "


@lru_cache(MAX_CACHED_TEXTS)
def _fold(text: str) -> str:
    """Return a normalized text without plural endings, between spaces."""
    words = normalize(text).split()
    singular_words = " ".join(map(strip_plural, words))
    return f" {singular_words} "


@lru_cache(MAX_CACHED_TEXTS)
def _find_canonical_grape(name: str) -> str:
    return find_canonical_name("grapes", name)


@lru_cache(MAX_CACHED_TEXTS)
def _find_canonical_country(name: str) -> str:
    return find_canonical_name("countries", name)

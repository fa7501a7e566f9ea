"""What ranks wines that pass a search's filters: points, nearness to another wine, variety."""

import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, Float, Row, Subquery, case, cast, func, literal, select
from sqlalchemy.orm import InstrumentedAttribute

from agent.sommelier.synonyms import folded, key
from agent.sommelier.wine import Body, Level, Style, Sweetness, Wine, WineQuery
from db.models import WineFoodRow, WineGrapeRow, WineRow
from db.wines.filters import Filters

Distance = ColumnElement[float]

POINTS: Final[Mapping[str, int]] = {
    "foods": 60,
    "styles": 60,
    "colours": 50,
    "sweetness": 40,
    "grapes": 40,
    "regions": 40,
    "countries": 30,
    "bodies": 20,
    "tannins": 20,
    "acidities": 20,
    "min_abv": 20,
    "max_abv": 20,
}
"""What it counts to meet a soft filter."""
FURTHER_FOOD: Final = 10
"""What each asked food counts that a wine suits beyond the first."""

UNKNOWN: Final = 0.5
"""The distance to what is not known: neither alike nor different."""

SCALES: Final[Mapping[str, tuple[InstrumentedAttribute[str | None], list[str]]]] = {
    "sweetness": (WineRow.sweetness, [*Sweetness]),
    "bodies": (WineRow.body, [*Body]),
    "tannins": (WineRow.tannin, [*Level]),
    "acidities": (WineRow.acidity, [*Level]),
}
"""Ordered values: the neighbour of what was asked counts half."""
PRICE_BANDS_EUR: Final = (12, 20, 35, 70, 150)
DEAR_EUR: Final = 70
"""What costs this much comes after what repeats as little; so do wines without alcohol."""
PRIME: Final = 2**31 - 1


def ranks(
    query: WineQuery, soft: Filters, text: Subquery | None, like: Wine | None
) -> Iterator[ColumnElement[Any]]:
    """Yield what orders the wines found, smallest first; what is the same for all is left out."""
    matches = None if text is None else func.coalesce(text.c.rank, 0.0)
    if query.order != "match":
        price = WineRow.price_in_euros.expression
        yield case((price.is_(None), 1), else_=0)
        if matches is not None:
            yield case((matches > 0, 0), else_=1)
        yield price if query.order == "cheapest" else -price
    if points := [*_soft_points(query, soft), *_food_points(query), *_grape_points(query)]:
        yield -sum(points[1:], start=points[0])
    if matches is not None:
        yield -matches
    if like:
        yield distance(like)


def shuffled(query: WineQuery) -> ColumnElement[int]:
    """Return an order that looks random and is another one for other filters."""
    asked = query.model_dump_json(exclude={"text", "not_ids", "order", "limit", "soft", "wine_id"})
    return (WineRow.shuffle * (zlib.crc32(asked.encode()) >> 2 | 1)) % PRIME


def varied(rows: Sequence[Row[Any]], ranked: int, limit: int) -> list[Row[Any]]:
    """Return the first rows, at most `limit`; equals so chosen that they repeat each other least.

    `ranked` is how many columns of a row rank it.
    """
    best: list[Row[Any]] = []
    shown: Counter[tuple[str, object]] = Counter()

    def repeats(row: Row[Any]) -> tuple[int, ...]:
        producer, place, band = (shown[each] for each in _traits(row))
        seldom_meant = (row.price or 0) >= DEAR_EUR or row.style == Style.ALCOHOL_FREE
        return producer, place + band, band, seldom_meant

    for _, equals in groupby(rows, key=lambda row: tuple(row[:ranked])):
        left = list(equals)
        while left and len(best) < limit:
            best.append(min(left, key=repeats))
            left.remove(best[-1])
            shown.update(_traits(best[-1]))
    return best


def _traits(row: Row[Any]) -> list[tuple[str, object]]:
    band = -1 if row.price is None else bisect(PRICE_BANDS_EUR, row.price)
    return [("producer", row.producer), ("place", row.place), ("band", band)]


def _soft_points(query: WineQuery, soft: Filters) -> list[ColumnElement[int]]:
    """What a wine gets for each soft filter, foods and grapes apart."""
    return [
        _near(name, getattr(query, name))
        if name in SCALES
        else case((condition, POINTS[name]), else_=0)
        for name, condition in soft.items()
        if name not in ("foods", "grapes")
    ]


def _near(name: str, asked: Sequence[str]) -> ColumnElement[int]:
    """The points for a value that was asked for, half of them for the one beside it."""
    field, scale = SCALES[name]
    places = [scale.index(value) for value in asked]
    steps = {str(value): min(abs(at - place) for place in places) for at, value in enumerate(scale)}
    worth = {value: POINTS[name] // 2**apart for value, apart in steps.items() if apart < 2}
    return case(worth, value=field, else_=0)


def _food_points(query: WineQuery) -> list[ColumnElement[int]]:
    """The points of foods for the first that a wine suits, and some for each further one."""
    if not query.foods:
        return []
    suited = (
        select(func.count())
        .select_from(WineFoodRow)
        .where(WineFoodRow.wine_id == WineRow.id, WineFoodRow.food.in_(query.foods))
        .scalar_subquery()
    )
    first = POINTS["foods"] - FURTHER_FOOD
    return [case((suited > 0, first + FURTHER_FOOD * suited), else_=0)]


def _grape_points(query: WineQuery) -> list[ColumnElement[int]]:
    """The points of grapes for a wine of an asked grape, half of them where it stands second ..."""
    if not query.grapes:
        return []
    foremost = (
        select(func.min(WineGrapeRow.position))
        .where(WineGrapeRow.wine_id == WineRow.id)
        .where(WineGrapeRow.grape_key.in_([key("grapes", name) for name in query.grapes]))
        .scalar_subquery()
    )
    return [func.coalesce(POINTS["grapes"] // (foremost + 1), 0)]


def distance(wine: Wine) -> Distance:
    """Return how far each row is from `wine`; 0 is the same in everything that counts."""
    differences: list[tuple[float, Distance]] = [
        (4.0, _differs(WineRow.style, wine.style)),  # nobody calls a port like a Chablis
        (3.0, _differs(WineRow.colour, wine.colour)),
        (3.0, _other_grapes(wine)),
        (2.0, _steps("sweetness", wine.sweetness)),
        (2.0, _steps("bodies", wine.body)),
        (1.5, _other_region(wine)),
        (1.0, _steps("tannins", wine.tannin)),
        (1.0, _steps("acidities", wine.acidity)),
        (1.0, _price_ratio(wine.price_in_euros)),
        (0.5, _differs(WineRow.country_key, key("countries", wine.country))),
    ]
    return sum((weight * each for weight, each in differences), start=literal(0.0))


def _differs(field: InstrumentedAttribute[Any], value: str | None) -> Distance:
    if not value:
        return literal(UNKNOWN)
    return case((field == value, 0.0), (field.is_(None), UNKNOWN), else_=1.0)


def _steps(name: str, value: str | None) -> Distance:
    """Steps apart on an ordered scale, 1 for its two ends."""
    if value is None:
        return literal(UNKNOWN)
    field, scale = SCALES[name]
    here, longest = scale.index(value), len(scale) - 1
    apart = {str(other): abs(at - here) / longest for at, other in enumerate(scale)}
    return case(apart, value=field, else_=UNKNOWN)


def _other_grapes(wine: Wine) -> Distance:
    """1 minus shared grapes over all grapes of both."""
    keys = {key("grapes", grape) for grape in wine.grapes}
    if not keys:
        return literal(UNKNOWN)
    of_row = select(func.count()).where(WineGrapeRow.wine_id == WineRow.id)
    shared = cast(of_row.where(WineGrapeRow.grape_key.in_(keys)).scalar_subquery(), Float)
    similarity = shared / (len(keys) + of_row.scalar_subquery() - shared)
    return cast(1 - similarity, Float)


def _other_region(wine: Wine) -> Distance:
    place = folded(wine.region)
    if not place:
        return literal(UNKNOWN)
    return case((WineRow.places.contains(f" {place} "), 0.0), else_=1.0)


def _price_ratio(price: float | None) -> Distance:
    """0 for the same price, near 1 for one many times the other."""
    if not price:
        return literal(UNKNOWN)
    other = WineRow.price_in_euros
    return case(
        (other.is_(None), UNKNOWN),
        (other > price, 1.0 - price / other),
        else_=1.0 - other / price,
    )

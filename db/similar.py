"""Wines like another one: a weighted distance over what is known of both, computed in SQL."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Float, case, cast, func, literal, select
from sqlalchemy.orm import InstrumentedAttribute

from agent.sommelier.wine import Body, Level, Sweetness, Wine
from db.models import WineGrapeRow, WineRow
from db.search_text import country_key, fold, grape_key

Distance = ColumnElement[float]

WEIGHTS: Final = {
    "style": 4.0,
    "colour": 3.0,
    "grapes": 3.0,
    "sweetness": 2.0,
    "body": 2.0,
    "region": 1.5,
    "tannin": 1.0,
    "acidity": 1.0,
    "price": 1.0,
    "country": 0.5,
}
"""What a difference weighs. Style and colour come first: nobody calls a port like a Chablis."""

UNKNOWN: Final = 0.5
"""The distance to what is not known: neither alike nor different."""


def distance(wine: Wine) -> Distance:
    """How far each row is from `wine`; 0 is the same in everything that counts."""
    parts: dict[str, Distance] = {
        "style": _differs(WineRow.style, wine.style),
        "colour": _differs(WineRow.colour, wine.colour),
        "grapes": _other_grapes(wine),
        "sweetness": _steps(WineRow.sweetness, wine.sweetness, [*Sweetness]),
        "body": _steps(WineRow.body, wine.body, [*Body]),
        "acidity": _steps(WineRow.acidity, wine.acidity, [*Level]),
        "tannin": _steps(WineRow.tannin, wine.tannin, [*Level]),
        "region": _other_region(wine),
        "country": _differs(WineRow.country_key, country_key(wine.country)),
        "price": _price_ratio(wine.price_in_euros),
    }
    total: Distance = literal(0.0)
    for name, part in parts.items():
        total = total + WEIGHTS[name] * part
    return total


def _differs(field: InstrumentedAttribute[Any], value: str | None) -> Distance:
    if not value:
        return literal(UNKNOWN)
    return case((field == value, 0.0), (field.is_(None), UNKNOWN), else_=1.0)


def _steps(field: InstrumentedAttribute[Any], value: str | None, scale: list[str]) -> Distance:
    """Steps apart on an ordered scale, 1 for its two ends."""
    if value is None:
        return literal(UNKNOWN)
    here, longest = scale.index(value), len(scale) - 1
    apart = {str(other): abs(at - here) / longest for at, other in enumerate(scale)}
    return case(apart, value=field, else_=UNKNOWN)


def _other_grapes(wine: Wine) -> Distance:
    """1 minus shared grapes over all grapes of both."""
    keys = {grape_key(grape) for grape in wine.grapes}
    if not keys:
        return literal(UNKNOWN)
    of_row = select(func.count()).where(WineGrapeRow.wine_id == WineRow.id)
    shared = cast(of_row.where(WineGrapeRow.grape_key.in_(keys)).scalar_subquery(), Float)
    similarity = shared / (len(keys) + of_row.scalar_subquery() - shared)
    return cast(1 - similarity, Float)


def _other_region(wine: Wine) -> Distance:
    place = fold(wine.region)
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

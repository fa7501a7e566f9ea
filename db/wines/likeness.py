"""Measure how different wines are, for a search for wines like another one."""

from collections.abc import Callable, Mapping
from typing import Final

from agent.query_reading.request import SCALES
from agent.sommelier.vocabulary import find_canonical_name, normalize
from agent.sommelier.wine import Wine
from db.wines.entries import Entry

UNKNOWN_DISTANCE: Final = 0.5
"""The distance of an unknown value, halfway between 0 for equal and 1 for different."""


def distance_from(wine: Wine) -> Callable[[Entry], float]:
    """Return the function that says how different another wine is from `wine`.

    Its result is a weighted sum of the differences in each trait, and is 0 for an equal wine. Style
    and colour weigh most: a port is never like a Chablis.
    """
    country = find_canonical_name("countries", wine.country)
    grapes = {find_canonical_name("grapes", grape) for grape in wine.grapes}
    region = normalize(wine.region)
    # The spaces let only whole words match.
    padded_region = f" {region} "
    price = wine.price_in_euros

    sweetness = _scale_distances("sweetness", wine.sweetness)
    bodies = _scale_distances("bodies", wine.body)
    tannins = _scale_distances("tannins", wine.tannin)
    acidities = _scale_distances("acidities", wine.acidity)

    def distance(entry: Entry) -> float:
        other = entry.wine
        total = 4.0 * _value_distance(wine.style, other.style)
        total += 3.0 * _value_distance(wine.colour, other.colour)
        total += 2.0 * sweetness[other.sweetness]
        total += 2.0 * bodies[other.body]
        total += 1.0 * tannins[other.tannin]
        total += 1.0 * acidities[other.acidity]
        total += 0.5 * _value_distance(country, entry.country)
        if grapes:
            shared = grapes.intersection(entry.grapes)
            of_either = grapes.union(entry.grapes)
            shared_share = len(shared) / len(of_either)
            total += 3.0 * (1 - shared_share)
        if region and padded_region not in entry.origin:
            total += 1.5
        if price:
            total += 1.0 * _price_distance(price, entry.price)
        return total

    return distance


def _value_distance(value: str | None, other: str | None) -> float:
    """Return 0 for equal values, and 1 for different ones."""
    if not value or other is None:
        return UNKNOWN_DISTANCE
    return float(value != other)


def _scale_distances(name: str, value: str | None) -> Mapping[str | None, float]:
    """Return the distance of each value of a scale from `value`. Both ends are 1 apart."""
    scale = SCALES[name]
    values = (None, *scale)
    distances: dict[str | None, float] = dict.fromkeys(values, UNKNOWN_DISTANCE)
    if value is None:
        return distances
    value_index = scale.index(value)
    last_index = len(scale) - 1
    for index, other in enumerate(scale):
        steps = abs(value_index - index)
        distances[other] = steps / last_index
    return distances


def _price_distance(price: float, other: float | None) -> float:
    """Return 0 for equal prices, and nearly 1 for prices that are far apart."""
    if other is None:
        return UNKNOWN_DISTANCE
    difference = abs(other - price)
    return difference / (other + price)

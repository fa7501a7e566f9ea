"""Describe by which of its properties a wine meets a wish."""

from typing import Final

from agent.fallback.wording import (
    describe_request,
    describe_wine,
    find_suitable_foods,
    name_foods,
)
from agent.query_reading.prices import PRICE_FIELDS
from agent.query_reading.request import Request
from agent.query_reading.tables import load_pairings
from agent.sommelier.cards import format_prices
from agent.sommelier.filters import matches
from agent.sommelier.queries import get_pairing_name
from agent.sommelier.wine import Wine

UNREMARKABLE: Final = "medium"
"""The tannin or acidity that is no reason to choose a wine."""
STRUCTURE_FIELDS: Final = ("tannins", "acidities")


def describe_fit(wine: Wine, request: Request) -> str:
    """Return the parts of a wish that a wine meets, such as "Full-bodied · lamb · €12".

    What suits the dish of the wish counts as a part of it. If there is nothing to name, the result
    is the kind of the wine.
    """
    pairing = load_pairings().get(get_pairing_name(request), {})
    wanted = {**pairing, **request.inclusions}
    filters: dict[str, list[str]] = {}
    for field, values in wanted.items():
        met = [value for value in values if matches(wine, {field: (value,)})]
        if field in STRUCTURE_FIELDS and UNREMARKABLE in met:
            continue
        filters[field] = met
    foods = find_suitable_foods(wine, request.dishes)
    met_wish = Request(filters=filters)
    parts = [describe_request(met_wish), name_foods(foods)]
    if not request.filters.keys().isdisjoint(PRICE_FIELDS):
        parts.append(format_prices(wine))
    fit = " · ".join(filter(None, parts))
    return fit or describe_wine(wine, request.dishes)

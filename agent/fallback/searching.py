"""Search wines for a request, with fewer hard filters if nothing matches.

A hard filter excludes wines, a soft one only ranks them. Prices, allergens and exclusions are
always hard. Kind, sweetness, grape and place become soft if no wine matches. Body, tannin, acidity
and the pairing of a dish are always soft.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.fallback.merging import Context
from agent.query_reading.request import Request
from agent.safety.filters import find_wines, matches
from agent.sommelier.queries import OAKY, build_query
from agent.sommelier.wine import Catalogue, Style, Wine, WineQuery, normalize
from agent.turn import NOBODY, Person

BEST_WINES: Final = 3
"""The number of wines that decide which requested fields are unmet."""
RELAXATION_STEPS: Final = (
    ("regions", "grapes", "bodies"),
    ("countries", "sweetness", "colours"),
    ("styles",),
)
"""The filters that become soft, step by step, while no wine matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWines:
    """The wines found for a request."""

    wines: tuple[Wine, ...] = ()
    unmet_fields: tuple[str, ...] = ()
    """The requested fields that none of the best wines meets."""
    similar_to: Wine | None = None
    """The wine to which similar ones were requested."""


async def search_wines(
    catalogue: Catalogue, request: Request, context: Context, person: Person = NOBODY
) -> FoundWines:
    """Return the wines that match a request; while none does, relax the search step by step."""
    query = build_query(request, context.shown_ids)
    candidates = context.find_referenced(request) or context.last_shown
    similar_to = candidates[0] if candidates and "like" in request.cues else None
    if similar_to:
        query = query.model_copy(update={"like": similar_to.id})
    result = await find_wines(catalogue, query, person)
    wines = _select_wines(result.wines, request, query)
    for fields in () if similar_to else RELAXATION_STEPS:
        hard = [name for name in fields if getattr(query, name) and name not in query.soft]
        if hard and not wines:
            query = query.model_copy(update={"soft": (*query.soft, *hard)})
            result = await find_wines(catalogue, query, person)
            wines = _select_wines(result.wines, request, query)
    requested = [*request.inclusions, *(["foods"] if request.dishes else [])]
    best = [result.unmet_filters.get(wine.id, ()) for wine in wines[:BEST_WINES]]
    unmet = tuple(name for name in requested if best and all(name in fields for fields in best))
    return FoundWines(wines=wines, unmet_fields=unmet, similar_to=similar_to)


def _select_wines(found: Sequence[Wine], request: Request, query: WineQuery) -> tuple[Wine, ...]:
    """Return the wines without excluded tastes and with the requested name.

    Alcohol-free wines are only returned if requested, or if there are no others.
    """
    excluded = {"text": tuple(taste for taste in request.values("without_text") if taste != OAKY)}
    wines = [wine for wine in found if not matches(wine, excluded)]
    if request.name:
        wines = [wine for wine in wines if _has_name(wine, request.name)]
    if Style.ALCOHOL_FREE not in query.styles:
        wines = [wine for wine in wines if wine.style != Style.ALCOHOL_FREE] or wines
    return tuple(wines)


def _has_name(wine: Wine, name: str) -> bool:
    """Return whether most words of a name are in the label or the region of a wine."""
    words, label = normalize(name).split(), normalize(f"{wine.label} {wine.region}").split()
    return 2 * len(set(words) & set(label)) > len(words)

"""Search wines for a wish, with fewer hard filters if nothing matches.

A hard filter excludes wines, a soft one only ranks them. Highest prices, allergens and exclusions
are always hard. If no wine matches, a lowest price is dropped. If there is still none, kind,
sweetness, grape and place become soft. A body that the user asks for is hard, but if too few wines
have it, others are added after them. Tannin, acidity and the pairing of a dish are always soft.

If the highest price is to blame, the least expensive wine that meets the rest is looked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from agent.fallback.follow_ups import FollowUp
from agent.fallback.merging import Wish
from agent.query_reading.aromas import find_aromas, is_aroma
from agent.query_reading.request import Request
from agent.query_reading.tables import load_pairings
from agent.sommelier.building_queries import build_query, get_pairing_name
from agent.sommelier.filters import find_wines, matches
from agent.sommelier.queries import Catalogue, WineQuery
from agent.sommelier.vocabulary import OAKY, Style, normalize
from agent.sommelier.wine import Wine
from agent.turn import Person

MIN_CHOICE: Final = 2
"""The number of wines without alcohol that are a choice."""
BEST_WINES: Final = 3
"""The number of wines that decide which requested fields are unmet."""
RELAXATION_STEPS: Final[Sequence[Sequence[str]]] = (
    ("regions", "grapes"),
    ("countries", "sweetness", "colours"),
    ("styles",),
)
"""The filters that become soft, step by step, while no wine matches."""
FOLLOW_UP_STEPS: Final[Sequence[Sequence[str]]] = (
    ("regions", "grapes", "bodies"),
    ("countries", "sweetness", "colours"),
)
"""These steps for a follow-up. Something cheaper than a red is a red, too."""
RELAXED_FIELDS: Final = frozenset({"bodies", *chain(*RELAXATION_STEPS)})
"""The requested fields that the wines found may not meet. Tannin and acidity are left out."""
BODY_FOLLOW_UPS: Final = frozenset({FollowUp.LIGHTER, FollowUp.FULLER})
COMPARED_FOLLOW_UPS: Final = frozenset({FollowUp.CHEAPER, FollowUp.LIKE})
"""The follow-ups to which a wine above the highest price is no answer."""
UnmetFilters = Mapping[str, Sequence[str]]
"""The names of the soft filters that a wine does not meet, by the id of the wine."""
UNUSUAL_STYLES: Final = (
    Style.FORTIFIED,
    Style.SWEET,
    Style.ORANGE,
    Style.ALCOHOL_FREE,
)
"""The styles that are left out if a message asks for any wine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWines:
    """The wines found for a wish."""

    wines: tuple[Wine, ...] = ()
    unmet_fields: tuple[str, ...] = ()
    """The requested fields that none of the best wines meets."""
    partly_unmet_fields: tuple[str, ...] = ()
    """The fields in `RELAXED_FIELDS` that some of the best wines meet, and others do not."""
    similar_to: Wine | None = None
    """The wine to which similar ones were requested."""
    cheapest_above: Wine | None = None
    """The least expensive wine above the highest price that meets the rest of the wish.

    It is only set if no wine was found, or if none of the best wines meets all of the wish.
    """


def build_wish_query(wish: Wish) -> WineQuery:
    """Return the query for a wish, before any of its filters is relaxed."""
    hard_filters: tuple[str, ...] = ()
    if wish.request.values("bodies"):
        hard_filters = ("bodies",)
    query = build_query(
        wish.request,
        excluded_ids=wish.excluded_ids,
        hard_filters=hard_filters,
    )
    if wish.request.is_empty:
        query = query.model_copy(update={"without_styles": UNUSUAL_STYLES})
    if FollowUp.LIKE in wish.follow_ups:
        similar_to = wish.compared[0]
        return query.model_copy(update={"like": similar_to.id})
    return query


async def search_wines(
    catalogue: Catalogue,
    wish: Wish,
    person: Person,
) -> FoundWines:
    """Return the wines that match a wish. While there are none, relax the search step by step.

    If none of them meets all of the wish, find a wine above its highest price that does.
    """
    query = build_wish_query(wish)
    found = await _search_sizes(catalogue, query, wish, person)
    meets_all = found.wines and not found.unmet_fields
    if meets_all:
        return found
    cheapest_above = await _find_cheapest_above(catalogue, query, wish, person)
    return replace(found, cheapest_above=cheapest_above)


async def _find_cheapest_above(
    catalogue: Catalogue,
    query: WineQuery,
    wish: Wish,
    person: Person,
) -> Wine | None:
    """Return the least expensive wine that meets all of a wish but its highest price, or None."""
    has_highest_price = query.max_price is not None or query.below is not None
    if not has_highest_price or COMPARED_FOLLOW_UPS.intersection(wish.follow_ups):
        return None
    changes = {"max_price": None, "below": None, "order": "cheapest"}
    dearer_query = query.model_copy(update=changes)
    result = await find_wines(catalogue, dearer_query, person)
    wines = _select_wines(result.wines, wish.request, dearer_query, person)
    for wine in wines:
        unmet = result.unmet_filters.get(wine.id, ())
        if wine.price is not None and wish.request.inclusions.keys().isdisjoint(unmet):
            return wine
    return None


async def _search_sizes(
    catalogue: Catalogue,
    query: WineQuery,
    wish: Wish,
    person: Person,
) -> FoundWines:
    """Return the wines of a relaxed search.

    If a wish for a glass or a magnum is not met, the wines are searched for in other sizes too.
    """
    found = await _search_relaxed(catalogue, query, wish, person)
    if query.offer is None:
        return found
    meets_all = found.wines and not found.unmet_fields
    if meets_all:
        return found
    query_any_size = query.model_copy(update={"offer": None})
    in_any_size = await _search_relaxed(catalogue, query_any_size, wish, person)
    # Wines in another size are only better if they meet more of the rest.
    is_better = len(in_any_size.unmet_fields) < len(found.unmet_fields)
    if found.wines and not is_better:
        return found
    if not in_any_size.wines:
        return found
    unmet = (*in_any_size.unmet_fields, "offer")
    return replace(in_any_size, unmet_fields=unmet)


async def _search_relaxed(
    catalogue: Catalogue,
    query: WineQuery,
    wish: Wish,
    person: Person,
) -> FoundWines:
    """Return the wines of a query. While there are none, make more of its filters soft."""
    found = await _search(catalogue, query, wish, person)
    asks_for_dearer = FollowUp.DEARER in wish.follow_ups
    if not found.wines and query.min_price is not None and not asks_for_dearer:
        without_min_price = query.model_copy(update={"min_price": None})
        found = await _search(catalogue, without_min_price, wish, person)
        if found.wines:
            unmet = (*found.unmet_fields, "min_price")
            found = replace(found, unmet_fields=unmet)
    steps = RELAXATION_STEPS
    if wish.follow_ups:
        steps = FOLLOW_UP_STEPS
    for fields in steps:
        if found.wines:
            break
        used_fields = [name for name in fields if getattr(query, name)]
        hard_filters = [name for name in used_fields if name not in query.soft]
        if not hard_filters:
            continue
        soft = (*query.soft, *hard_filters)
        query = query.model_copy(update={"soft": soft})
        found = await _search(catalogue, query, wish, person)
    if query.like:
        return replace(found, similar_to=wish.compared[0])
    return found


async def _search(
    catalogue: Catalogue,
    query: WineQuery,
    wish: Wish,
    person: Person,
) -> FoundWines:
    """Return the wines of a query that a wish allows.

    If too few of them have the body that was asked for, add wines of other bodies.
    """
    wines, unmet_filters = await _find(catalogue, query, wish, person)
    has_too_few = len(wines) < BEST_WINES
    if has_too_few and _may_add_other_bodies(query, wish):
        query = query.model_copy(update={"soft": (*query.soft, "bodies")})
        further, unmet_by_further = await _find(catalogue, query, wish, person)
        known_ids = {wine.id for wine in wines}
        others = tuple(wine for wine in further if wine.id not in known_ids)
        wines += others
        unmet_filters = {**unmet_by_further, **unmet_filters}
    if not wines:
        return FoundWines()
    best_wines = wines[:BEST_WINES]
    judged_wines = best_wines
    if person.safety.prefers_alcohol_free:
        # The wines with alcohol that meet the wish come after those without.
        judged_wines = wines
    unmet = _list_unmet_fields(wish.request, judged_wines, unmet_filters)
    relaxed = _list_relaxed_fields(wish.request, best_wines, unmet_filters)
    if person.safety.offers_alcohol_free:
        relaxed += _list_unsuited(wish.request, best_wines, unmet_filters)
    partly_unmet = tuple(name for name in relaxed if name not in unmet)
    return FoundWines(
        wines=wines,
        unmet_fields=unmet,
        partly_unmet_fields=partly_unmet,
    )


async def _find(
    catalogue: Catalogue,
    query: WineQuery,
    wish: Wish,
    person: Person,
) -> tuple[tuple[Wine, ...], UnmetFilters]:
    """Return the wines of a query that a wish allows, and the soft filters that each misses."""
    result = await find_wines(catalogue, query, person)
    wines = _select_wines(result.wines, wish.request, query, person)
    return wines, result.unmet_filters


def _may_add_other_bodies(query: WineQuery, wish: Wish) -> bool:
    """Return whether wines of other bodies may follow those of the body that was asked for.

    After "lighter", they may not, because a wine that is no lighter is no answer.
    """
    if BODY_FOLLOW_UPS.intersection(wish.follow_ups):
        return False
    return bool(query.bodies) and "bodies" not in query.soft


def _list_relaxed_fields(
    request: Request,
    best_wines: Sequence[Wine],
    unmet_filters: UnmetFilters,
) -> list[str]:
    """Return the fields in `RELAXED_FIELDS` that one of the best wines does not meet."""
    unmet_by_any: set[str] = set()
    for wine in best_wines:
        unmet = unmet_filters.get(wine.id, ())
        unmet_by_any.update(unmet)
    relaxed = unmet_by_any & RELAXED_FIELDS
    return [name for name in request.inclusions if name in relaxed]


def _list_unmet_fields(
    request: Request,
    wines: Sequence[Wine],
    unmet_filters: UnmetFilters,
) -> tuple[str, ...]:
    """Return the requested fields that none of the wines meets."""
    unmet_by_all = set(request.inclusions)
    suits_dishes = not request.dishes
    for wine in wines:
        unmet = unmet_filters.get(wine.id, ())
        unmet_by_all.intersection_update(unmet)
        if _suits_dishes(request, unmet):
            suits_dishes = True
    fields = [name for name in request.inclusions if name in unmet_by_all]
    if not suits_dishes:
        fields.append("foods")
    return tuple(fields)


def _list_unsuited(
    request: Request,
    best_wines: Sequence[Wine],
    unmet_filters: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return "foods" if one of the best wines does not suit the dishes, or nothing.

    Of the few wines without alcohol, those that suit no dish are shown, too.
    """
    if not request.dishes:
        return []
    for wine in best_wines:
        unmet = unmet_filters.get(wine.id, ())
        if not _suits_dishes(request, unmet):
            return ["foods"]
    return []


def _suits_dishes(request: Request, unmet: Sequence[str]) -> bool:
    """Return whether a wine suits the dishes, if it leaves the filters in `unmet` unmet.

    It does if the wine list names a food of the dishes, or if the wine meets their pairing. A wish
    for a dry white with a chocolate cake asks for another wine than the pairing.
    """
    if "foods" not in unmet:
        return True
    pairing_name = get_pairing_name(request)
    pairing = load_pairings().get(pairing_name)
    if not pairing or _contradicts(request, pairing):
        return False
    return pairing.keys().isdisjoint(unmet)


def _contradicts(request: Request, pairing: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a request asks for a style or a sweetness that the pairing does not have."""
    for name in ("styles", "sweetness"):
        asked = request.values(name)
        paired = pairing.get(name, asked)
        if asked and set(asked).isdisjoint(paired):
            return True
    return False


def _select_wines(
    found: Sequence[Wine],
    request: Request,
    query: WineQuery,
    person: Person,
) -> tuple[Wine, ...]:
    """Return the wines without excluded tastes and with the requested name.

    Alcohol-free wines are only returned if requested, if the person is advised not to drink, or if
    there are no others. A person who must not drink is shown those of the requested kind, if there
    are any.
    """
    excluded_tastes = request.values("without_text")
    # The query has excluded oak already.
    tastes = tuple(taste for taste in excluded_tastes if taste != OAKY)
    unwanted = {"text": tastes}
    wines: list[Wine] = []
    for wine in found:
        if not _has_name(wine, request.name):
            continue
        if not matches(wine, unwanted):
            wines.append(wine)
    asks_for_alcohol_free = Style.ALCOHOL_FREE in query.styles
    if person.safety.forbids_alcohol:
        preferred = _select_kind(wines, request)
    elif asks_for_alcohol_free or person.safety.prefers_alcohol_free:
        preferred = wines
    else:
        preferred = [wine for wine in wines if wine.style != Style.ALCOHOL_FREE]
    if person.safety.prefers_alcohol_free:
        return _leave_out_alcohol(preferred, person)
    return _put_aromas_first(preferred or wines, request)


def _leave_out_alcohol(wines: Sequence[Wine], person: Person) -> tuple[Wine, ...]:
    """Return the wines for a person who should not drink now, those without alcohol first.

    If the person has said why, such as "I am driving", those with alcohol are left out while there
    is a choice without.
    """
    without_alcohol = [wine for wine in wines if wine.style == Style.ALCOHOL_FREE]
    is_certain = bool(person.safety.concerns)
    if is_certain and len(without_alcohol) >= MIN_CHOICE:
        return tuple(without_alcohol)
    return tuple(wines)


def _put_aromas_first(wines: Sequence[Wine], request: Request) -> tuple[Wine, ...]:
    """Return the wines, first those with most of the aromas that a wish asks for.

    A search looks for words, so that "black cherry" finds a "black label", too.
    """
    if "order" in request.filters:
        return tuple(wines)
    wished = {taste for taste in request.values("text") if is_aroma(taste)}

    def count_missing(wine: Wine) -> int:
        named = find_aromas(wine.notes, wine.notes_language)
        return len(wished.difference(named))

    return tuple(sorted(wines, key=count_missing))


def _select_kind(wines: Sequence[Wine], request: Request) -> list[Wine]:
    """Return the wines of a requested style or colour, such as red wines without alcohol."""
    styles = request.values("styles")
    colours = request.values("colours")
    filters = {"styles": (*styles, *colours)}
    return [wine for wine in wines if matches(wine, filters)]


def _has_name(wine: Wine, name: str) -> bool:
    """Return whether more than half of the words of a name are in a wine's label or region.

    Without a name, return True.
    """
    if not name:
        return True
    name_words = set(normalize(name).split())
    label_words = normalize(f"{wine.label} {wine.region}").split()
    shared_words = name_words.intersection(label_words)
    return len(shared_words) > len(name_words) / 2

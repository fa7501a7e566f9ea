"""From a request to the wines that fit it: the query, and what is given up where nothing fits.

Prices, allergens and what is ruled out always exclude. Kind, sweetness, grape and place exclude
unless nothing would be left; body and the like, and what suits a dish, only rank.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from agent import size_limits
from agent.fallback.merging import Context
from agent.fallback.request import UNKNOWN, Request, read_request
from agent.fallback.words import pairings, profiles
from agent.sommelier.safety import find_wines, matches
from agent.sommelier.wine import (
    Body,
    Catalogue,
    Style,
    Wine,
    WineQuery,
    WineSearchResult,
    normalize,
)
from agent.turn import NOBODY, Person

LIMIT: Final = 12
MOST_UNREAD: Final = 2
"""Words that a wish may have which no table knows, if it is certain what is wished for."""
MOST_TEXT: Final = 290
MOST_IDS: Final = 100
MOST_FOODS: Final = 6
RANKING: Final = frozenset({"bodies", "tannins", "acidities", "foods"})
"""Filters that rank from the start."""
GIVEN_UP: Final = (
    ("regions", "grapes", "bodies"),
    ("countries", "sweetness", "colours"),
    ("styles",),
)
"""The filters that are given up if no wine fits, in this order."""
SWEET: Final = frozenset({"sweet", "luscious"})
OAKY: Final = "oaky"
HEAVY: Final = (Style.SWEET, Style.FORTIFIED)
"""Styles that a dish excludes unless its pairing names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWines:
    """The wines found for a request.

    `missed` are the fields that the first search excluded by and that had to rank instead. `like`
    is the wine that the others are like.
    """

    wines: tuple[Wine, ...] = ()
    missed: tuple[str, ...] = ()
    like: Wine | None = None


async def search_wines(
    catalogue: Catalogue, request: Request, context: Context, person: Person = NOBODY
) -> FoundWines:
    """Search for what a request asks; where nothing fits, again with less that excludes."""
    query = build_query(request, context)
    liked = (context.meant(request) or context.shown)[:1] if "like" in request.cues else ()
    like = liked[0] if liked else None
    if like:
        query = query.model_copy(update={"like": like.id})
    result = await find_wines(catalogue, query, person)
    wines = _fitting(result, request, query)
    for names in () if like else GIVEN_UP:
        asked = [name for name in names if getattr(query, name) and name not in query.soft]
        if asked and not wines:
            query = query.model_copy(update={"soft": (*query.soft, *asked)})
            result = await find_wines(catalogue, query, person)
            wines = _fitting(result, request, query)
    asked = [*request.wanted, *["foods"][: len(request.dishes)]]
    missed = [result.unmet_filters.get(wine.id, ()) for wine in wines[:3]]
    by_all = [name for name in asked if missed and all(name in names for names in missed)]
    return FoundWines(wines=wines, missed=tuple(by_all), like=like)


def _fitting(result: WineSearchResult, request: Request, query: WineQuery) -> tuple[Wine, ...]:
    """Return the wines of a result that nothing speaks against, alcohol-free ones if asked for."""
    tastes = request.values("without_text")
    denied = {"text": tuple(taste for taste in tastes if taste != OAKY)}
    wines = [
        wine
        for wine in result.wines
        if not matches(wine, denied) and (not request.name or _is_called(wine, request.name))
    ]
    stronger = [wine for wine in wines if wine.style != Style.ALCOHOL_FREE]
    return tuple(wines if Style.ALCOHOL_FREE in query.styles else stronger or wines)


def _is_called(wine: Wine, name: str) -> bool:
    """Return whether most words of a name are on the label of a wine."""
    words, label = normalize(name).split(), normalize(f"{wine.label} {wine.region}").split()
    return 2 * len(set(words) & set(label)) > len(words)


def build_query(request: Request, context: Context) -> WineQuery:
    """Return the search that a request means: what must be, what ranks, what must not be."""
    filters = dict(request.filters)
    tastes, denied = filters.pop("text", ()), filters.pop("without_text", ())
    if OAKY in tastes or OAKY in denied:
        filters["oak"] = OAKY not in denied
    if filters.get("currency") == UNKNOWN:
        del filters["currency"]
    named = (request.name, *(taste for taste in tastes if taste != OAKY))
    filters |= {"text": " ".join(filter(None, named))[:MOST_TEXT], "limit": LIMIT}
    if request.cues:
        filters["not_ids"] = context.seen[:MOST_IDS]
    soft = RANKING & filters.keys()
    if request.cues & {"lighter", "fuller"}:
        soft -= {"bodies"}
    soft |= _add_pairing(filters, request)
    soft |= _add_kin(filters)
    return WineQuery.model_validate(filters | {"soft": sorted(soft)})


def _add_pairing(filters: dict[str, Any], request: Request) -> set[str]:
    """Add the foods of the dishes and what suits the first; return the fields that only rank."""
    if not request.dishes:
        return set()
    foods = dict.fromkeys(food for dish in request.dishes.values() for food in dish.foods)
    filters["foods"] = tuple(foods)[:MOST_FOODS]
    soft, is_named = {"foods"}, bool({"grapes", "regions"} & filters.keys())
    pairing = pairings().get(get_pairing(request), {})
    if pairing and not ("styles" in filters or is_named):
        heavy = [style for style in HEAVY if style not in pairing.get("styles", ())]
        denied = (*heavy, *filters.get("without_styles", ()))
        filters["without_styles"] = tuple(dict.fromkeys(denied))
    for name, values in pairing.items():
        if name not in filters and not (is_named and name == "styles"):
            filters[name] = values
            soft.add(name)
    return soft


def get_pairing(request: Request) -> str:
    """Return the name of the pairing of the first dish that has one; empty if none has."""
    names = (dish.pairing for dish in request.dishes.values())
    return next((name for name in names if name in pairings()), "")


def _add_kin(filters: dict[str, Any]) -> set[str]:
    """Let wines rank by how a named grape or region tastes, for where there is none of it."""
    names = (*filters.get("grapes", ()), *filters.get("regions", ()))
    profile = next((profiles()[name] for name in names if name in profiles()), None)
    if profile is None or not SWEET.isdisjoint(filters.get("sweetness", ())):
        return set()
    if not {"styles", "colours"} & filters.keys():
        filters["styles"] = (profile.colour,)
    if "bodies" in filters:
        return set()
    place = [*map(str, Body)].index(profile.body)
    filters["bodies"] = tuple([*Body][max(0, place - 1) : place + 2])
    return {"bodies"}


def parse_query(text: str, language: str = "en") -> WineQuery:
    """Return the query that one message states; its words are the query's text if none is clear."""
    request = read_request(text, language)
    query = build_query(replace(request, cues=frozenset()), Context())
    if request.describes_wine:
        return query
    return query.model_copy(update={"text": text[: size_limits.PICTURE_NAME_CHARS]})


def unambiguous_query(text: str, language: str) -> WineQuery | None:
    """Return the search for a request for wine if almost all of it was parsed; else None."""
    request = read_request(text, language)
    is_unclear = request.unknown or request.unread > MOST_UNREAD or request.is_question
    refers_back = request.cues or request.ordinals
    is_by_taste = "without_text" in request.filters
    is_odd = is_unclear or refers_back or is_by_taste or request.filters.get("currency") == UNKNOWN
    if is_odd or not (request.wanted or request.dishes):
        return None
    return build_query(request, Context())


def wine_from_name(name: str, id: str, style: Style | None = None, **known: Any) -> Wine | None:
    """Return a wine as far as its name tells; None if that, and `style`, tell not even its kind."""
    request, label = read_request(name), f" {normalize(name)} "
    named = [one for one in profiles() if f" {normalize(one)} " in label]
    names = (*request.values("regions"), *request.values("grapes"), *named)
    profile = next((profiles()[one] for one in names if one in profiles()), None)
    kind = style or next(iter(request.values("styles")), profile.colour if profile else None)
    if kind is None:
        return None
    if profile and profile.colour == kind:
        known = {"body": profile.body, "tannin": profile.tannin, "acidity": profile.acidity} | known
    facts = {
        "country": next(iter(request.values("countries")), ""),
        "region": next(iter(request.values("regions")), ""),
        "grapes": request.values("grapes") or (profile.of if profile else ()),
        "sweetness": next(iter(request.values("sweetness")), None),
    }
    own = {"id": id, "producer": "", "name": name, "style": Style(kind)}
    return Wine(**{**own, **facts, **known})

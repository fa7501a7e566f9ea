"""Build the query of a search from what a message asks for, with its hard and soft filters.

A dish adds the filters of its pairing, a grape or a region those of its profile.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent import size_limits
from agent.documents.shop import UNLIKE_WISHES, find_shop_topics
from agent.query_reading.aromas import is_aroma
from agent.query_reading.prices import UNKNOWN_CURRENCY
from agent.query_reading.request import Request, read_request
from agent.query_reading.tables import Profile, find_profile, load_pairings
from agent.query_reading.wished_aromas import list_search_words
from agent.sommelier.queries import MAX_QUERY_CHARS, MAX_RESULTS, WineQuery
from agent.sommelier.vocabulary import OAKY, Body, OfferKind, Style
from agent.sommelier.wine import NON_VEGAN_ALLERGENS

MAX_UNKNOWN_WORDS: Final = 3
"""The most words of an unambiguous request that the tables of words do not have."""
MAX_EXCLUDED_IDS: Final = 100
"""The most ids that a query may exclude, as `WineQuery.not_ids` allows."""
MAX_PAIRINGS_OF_DISH: Final = 2
"""The most pairings that one dish has, such as fish and barbecue of a grilled swordfish."""
MAX_FOODS: Final = 6
"""The most foods of the dishes in a request."""
USUALLY_SOFT: Final = frozenset({"bodies", "tannins", "acidities", "foods"})
"""The filters that are soft unless the caller makes them hard."""
SWEET_LEVELS: Final = frozenset({"sweet", "luscious"})
BRIDGE: Final = "bridge"
"""The pairing of dishes that have no style in common, such as meat and fish."""
DESSERT_STYLES: Final = (Style.SWEET, Style.FORTIFIED)
"""The styles that a dish excludes unless its pairing has them."""
USUAL_OFFERS: Final = frozenset({"", OfferKind.BOTTLE})
"""The offers that need no filter: none is named, or a bottle, which a search finds anyway."""


def is_for_documents(request: Request) -> bool:
    """Return whether a message asks for knowledge or about the shop, and not for a wine."""
    if request.is_question:
        return True
    shop_topics = find_shop_topics([request.text])
    if shop_topics & UNLIKE_WISHES:
        return True
    return bool(shop_topics) and not request.filters


def build_query(
    request: Request,
    *,
    excluded_ids: Sequence[str] = (),
    hard_filters: Sequence[str] = (),
) -> WineQuery:
    """Return the query for a request, with its hard and soft filters.

    The query does not find the wines with `excluded_ids`, and the `hard_filters` are not soft.
    """
    filters = _stated_filters(request)
    filters["not_ids"] = tuple(excluded_ids[:MAX_EXCLUDED_IDS])
    soft = USUALLY_SOFT & filters.keys()
    soft |= _add_pairing(filters, request)
    soft |= _add_profile(filters)
    soft -= set(hard_filters)
    if "order" in filters:
        # In an order by price, soft filters rank nothing: the cheapest wine has to suit the dish.
        soft -= {"foods"}
    return WineQuery.model_validate(filters | {"soft": sorted(soft)})


def _stated_filters(request: Request) -> dict[str, Any]:
    """Return the filters of a request by their names in a query."""
    filters = dict(request.filters)
    tastes = filters.pop("text", ())
    excluded_tastes = filters.pop("without_text", ())
    # Oak has a filter of its own. If a request both names and excludes oak, it is excluded.
    if OAKY in excluded_tastes:
        filters["oak"] = False
    elif OAKY in tastes:
        filters["oak"] = True
    if filters.get("currency") == UNKNOWN_CURRENCY:
        del filters["currency"]
    if filters.get("offer") in USUAL_OFFERS:
        del filters["offer"]
    words = _list_taste_words(tastes, request.language)
    if request.name:
        # Such a name is uncertain. As text, it ranks wines and excludes none.
        words.insert(0, request.name)
    text = " ".join(words)
    filters["text"] = text[:MAX_QUERY_CHARS]
    filters["limit"] = MAX_RESULTS
    return filters


def _list_taste_words(tastes: Sequence[str], language: str) -> list[str]:
    """Return the words by which tastes are found in notes. Oak has a filter of its own."""
    words: list[str] = []
    for taste in tastes:
        if is_aroma(taste):
            words += list_search_words(taste, language)
        elif taste != OAKY:
            words.append(taste)
    return words


def _add_pairing(filters: dict[str, Any], request: Request) -> set[str]:
    """Add the foods of the dishes and their pairing to the filters. Return the soft ones."""
    if not request.dishes:
        return set()
    foods: list[str] = []
    for dish in request.dishes.values():
        foods += dish.foods
    distinct_foods = tuple(dict.fromkeys(foods))
    filters["foods"] = distinct_foods[:MAX_FOODS]
    soft = {"foods"}
    pairing_name = get_pairing_name(request)
    pairing = dict(load_pairings().get(pairing_name, {}))
    has_grape_or_region = "grapes" in filters or "regions" in filters
    if has_grape_or_region:
        pairing.pop("styles", None)  # the grape or region decides on the style
    elif pairing and "styles" not in filters:
        filters["without_styles"] = _without_dessert(filters, pairing)
    for name, values in pairing.items():
        if name not in filters:
            filters[name] = values
            soft.add(name)
    return soft


def _without_dessert(
    filters: Mapping[str, Any], pairing: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return the styles that the request excludes, and the dessert styles not in the pairing."""
    paired = pairing.get("styles", ())
    excluded = [style for style in DESSERT_STYLES if style not in paired]
    excluded += filters.get("without_styles", ())
    return tuple(dict.fromkeys(excluded))


def get_pairing_name(request: Request) -> str:
    """Return the name of the pairing of a request's dishes, or an empty string.

    The first dish that has a pairing decides. If no style suits all dishes, as with steak and
    salmon, it is `BRIDGE`, provided that a wine of that pairing comes near to each of them.
    """
    names = _list_pairing_names(request)
    if not names:
        return ""
    has_bridge = _may_bridge(names) and not _share_style(names)
    if has_bridge:
        return BRIDGE
    return names[0]


def find_only_suited_dish(request: Request) -> str:
    """Return the dish whose pairing the request has, if it does not suit the others, or "".

    "Steak and chocolate cake" gets wines for the steak.
    """
    names = _list_pairing_names(request)
    if not names or _share_style(names) or get_pairing_name(request) == BRIDGE:
        return ""
    for dish_name, dish in request.dishes.items():
        if dish.pairing == names[0]:
            return dish_name
    return ""


def _list_pairing_names(request: Request) -> list[str]:
    """Return the names of the pairings of the dishes, in the order of the message."""
    names: list[str] = []
    for dish in request.dishes.values():
        if dish.pairing in load_pairings():
            names.append(dish.pairing)
    return names


def _may_bridge(names: Sequence[str]) -> bool:
    """Return whether `BRIDGE` has a style of each of these pairings."""
    bridge_styles = _get_paired_styles(BRIDGE)
    for name in names:
        if bridge_styles.isdisjoint(_get_paired_styles(name)):
            return False
    return True


def _share_style(names: Sequence[str]) -> bool:
    """Return whether one style suits all of these pairings."""
    common_styles = _get_paired_styles(names[0])
    for name in names:
        common_styles &= _get_paired_styles(name)
    return bool(common_styles)


def _get_paired_styles(name: str) -> set[str]:
    """Return the styles that suit a pairing."""
    return set(load_pairings()[name].get("styles", ()))


def _add_profile(filters: dict[str, Any]) -> set[str]:
    """Add the typical styles and body of the requested grapes or regions. Return the soft filters.

    The body is a soft filter. The style is a hard one: if the catalogue has no wine of that grape
    or region, the search goes on without that filter, and then finds wines of the same style.
    """
    grapes = filters.get("grapes", ())
    regions = filters.get("regions", ())
    # A grape says more than a region: a Chardonnay from Burgundy is white.
    profiles = _find_profiles(grapes) or _find_profiles(regions)
    if not profiles:
        return set()
    sweetness = filters.get("sweetness", ())
    if not SWEET_LEVELS.isdisjoint(sweetness):
        return set()  # a sweet wine has a style of its own
    styles = tuple(dict.fromkeys(profile.style for profile in profiles))
    if "styles" not in filters and "colours" not in filters:
        filters["styles"] = styles
    if "bodies" in filters or len(styles) > 1:
        return set()
    filters["bodies"] = _bodies_near(Body(profiles[0].body))
    return {"bodies"}


def _find_profiles(names: Sequence[str]) -> list[Profile]:
    """Return the profiles of those grapes or regions that have one."""
    profiles: list[Profile] = []
    for name in names:
        profile = find_profile([name])
        if profile is not None:
            profiles.append(profile)
    return profiles


def _bodies_near(body: Body) -> tuple[Body, ...]:
    """Return a body, and those one step lighter and one step fuller."""
    bodies = list(Body)
    place = bodies.index(body)
    first = max(0, place - 1)
    last = place + 1
    return tuple(bodies[first : last + 1])


def parse_query(text: str, language: str = "en") -> WineQuery:
    """Return the query for a message. If no filter was recognised, the query has its text."""
    request = read_request(text, language)
    query = build_query(request)
    if request.describes_wine:
        return query
    beginning = text[: size_limits.PICTURE_NAME_CHARS]
    return query.model_copy(update={"text": beginning})


def parse_unambiguous_query(text: str, language: str) -> WineQuery | None:
    """Return the query for a first message that was understood almost completely, or None."""
    request = read_request(text, language)
    if request.is_question:
        return None
    if request.unknown_words:
        return None  # one of them may be a dish or a name
    if request.unknown_count > MAX_UNKNOWN_WORDS:
        return None
    if not request.inclusions and not request.dishes:
        return None
    pairings = {dish.pairing for dish in request.dishes.values()}
    if len(pairings) > MAX_PAIRINGS_OF_DISH:
        return None  # each course of a menu needs a search of its own
    # A query can express neither excluded tastes nor prices in an unknown currency.
    if "without_text" in request.filters:
        return None
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        return None
    query = build_query(request)
    if not request.allergies and NON_VEGAN_ALLERGENS.issubset(query.without_allergens):
        return query.model_copy(update={"vegan": True, "without_allergens": ()})
    return query

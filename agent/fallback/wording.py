"""Descriptions of requests and wines in the current language."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agent.formatting import format_money, format_money_range, join_or
from agent.i18n import current_language, format_number, translate
from agent.query_reading.aromas import get_aroma_name, is_aroma
from agent.query_reading.names import (
    get_display_name,
    get_food_name,
    get_grape_name,
    get_region_name,
    load_display_names,
    name_in_country,
)
from agent.query_reading.prices import PRICE_FIELDS, find_approximate_price
from agent.query_reading.request import LIST_FIELDS, Request
from agent.query_reading.tables import Dish
from agent.sommelier.cards import translate_country
from agent.sommelier.vocabulary import OAKY, Allergen, Currency, Food, Style
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from agent.text import split_words

MAX_FOODS: Final = 3
"""The number of foods that the description of a wine names."""
COLOUR_VALUES: Final = frozenset({"red", "white", "rose", "orange"})
"""The colours, which are also styles. As styles they have the names of the colours."""
SHOWN_COLOURS: Final = frozenset({"red", "rose"})
"""The colours that the card of a sparkling, sweet or fortified wine names.

Most such wines are white.
"""
BODY_GROUPS: Final = (
    ("light", "medium_light"),
    ("medium",),
    ("medium_full", "full"),
)
"""The values of the body that have one name together, such as "full-bodied"."""
SPARKLING_WORDS: Final = frozenset(
    "sparkling bubbles prickelnd schaumwein effervescent bulles espumoso spumante bollicine "
    "mousserend espumante".split()
)
"""The words that say that an alcohol-free wine sparkles. Its style does not."""
DRY_STEPS: Final = frozenset({"bone_dry", "dry"})
"""The values of the sweetness that the description of a wine does not name. Most wines are dry."""
NAME_FIELDS: Final = ("grapes", "regions", "countries")
"""The fields whose values are proper names."""
NOUNS_BY_FIELD: Final = {"tannins": "tannin", "acidities": "acidity"}
"""The fields that are only called high or low, with the nouns in the names of their texts."""
ADJECTIVES: Final = "text"
"""The field whose values are adjectives of tasting notes, such as "smoky", or aromas."""


def describe_request(request: Request) -> str:
    """Return a description such as `Red wine · lamb · up to €20 · no Merlot`."""
    return capitalise(describe_filters(request))


def describe_filters(request: Request) -> str:
    """Return the parts of a request that are known, in one line, or "" if there are none."""
    filters = request.filters
    parts = [*_describe_kind(request), *_describe_tastes(request)]
    for field in NAME_FIELDS:
        values = request.values(field)
        parts.append(_describe_names(field, values))
    parts.append(", ".join(request.dishes))
    if request.is_gift:
        gift = get_display_name("role", ("gift",), current_language())
        parts.append(gift)
    parts.append(_describe_price(request))
    if "max_abv" in filters:
        strength = f"{format_number(filters['max_abv'])} % vol"
        parts.append(translate("fallback_up_to", price=strength))
    parts.append(request.name)
    if "order" in filters:
        parts.append(translate(f"fallback_{filters['order']}"))
    if "offer" in filters:
        parts.append(name_value("offer", filters["offer"]))
    if request.wants_others:
        parts.append(translate("fallback_other"))
    parts += describe_exclusions(request)
    distinct_parts = dict.fromkeys(parts)
    return _join_parts(distinct_parts)


def _describe_kind(request: Request) -> Iterator[str]:
    """Yield the styles in one text, and then each colour that is not among the styles.

    For a sparkling rosé, these are "sparkling" and "rosé".
    """
    styles = request.values("styles")
    yield _join_names("styles", styles)
    for colour in request.values("colours"):
        if colour not in styles:
            yield translate(f"colour_{colour}")


def describe_exclusions(request: Request) -> Iterator[str]:
    """Yield what is excluded ("no Merlot"), including tastes ("not smoky")."""
    for field in LIST_FIELDS:
        for value in request.values(f"without_{field}"):
            if value == OAKY:
                yield translate("memory_no_oak")
                continue
            message = "fallback_without"
            if field == ADJECTIVES and not is_aroma(value):
                message = "fallback_not"
            name = name_value(field, value)
            yield translate(message, name=name)
    allergens = request.values("without_allergens")
    means_vegan = is_vegan(allergens)
    if means_vegan:
        yield translate("vegan_yes")
    for allergen in allergens:
        if means_vegan and allergen in NON_VEGAN_ALLERGENS:
            continue  # "vegan" has said it
        name = name_value("allergens", allergen)
        if allergen in request.allergies:
            yield translate(f"allergy_{allergen}")
        elif allergen == Allergen.SULPHITES:  # every wine has some sulphites
            yield translate("fallback_no_added_sulphites")
        else:
            yield translate("fallback_avoided", what=name)


def is_vegan(excluded_allergens: Iterable[str]) -> bool:
    """Return whether the request for a vegan wine is the reason why allergens are excluded.

    Such a request excludes all allergens of animals.
    """
    return NON_VEGAN_ALLERGENS.issubset(excluded_allergens)


def _join_names(field: str, values: Sequence[str]) -> str:
    """Return the display names of values of a field in one text, such as "red or white"."""
    names = [name_value(field, value) for value in values]
    return join_or(names)


def _join_parts(parts: Iterable[str]) -> str:
    """Return the non-empty parts in one line."""
    return " · ".join(filter(None, parts))


def capitalise(line: str) -> str:
    """Return a line with a capital as its first letter, and all other letters unchanged."""
    first_letter = line[:1]
    return first_letter.upper() + line[1:]


def name_value(field: str, value: str) -> str:
    """Return the display name of a value of a field.

    If there is none, return the value itself with spaces in place of underscores.
    """
    language = current_language()
    if field == "countries":
        return translate_country(value)
    if field == "styles" and value == Style.SWEET:
        return translate("fallback_sweet_wine")
    if field == "grapes":
        return get_grape_name(value, language)
    if field == "regions":
        return get_region_name(value, language)
    if field == ADJECTIVES and is_aroma(value):
        return get_aroma_name(value, language) or value.replace("_", " ")
    # The tables of names have other names for these fields.
    if field == "allergens":
        field = "allergen"
    if value in COLOUR_VALUES:
        field = "colour"
    return _find_name(field, value, language)


def _find_name(
    field: str,
    value: str,
    language: str,
) -> str:
    """Return the name that the tables have for a value, or else the value itself.

    A name for the value alone is preferred to a name that it shares with other values.
    """
    own_name = get_display_name(field, (value,), language)
    if own_name:
        return own_name
    # Some values have a name only together with others. "Dry" is the name of two values.
    key = (field, language)
    shared_names = load_display_names().get(key, {})
    for values, name in shared_names.items():
        if value in values:
            return name_in_country(name, language)
    return value.replace("_", " ")


def _describe_tastes(request: Request) -> Iterator[str]:
    """Yield the requested sweetness, body, tannin, acidity and other tastes."""
    sweetness = request.values("sweetness")
    yield _describe_steps("sweetness", sweetness)
    bodies = request.values("bodies")
    yield _describe_bodies(bodies)
    for field, noun in NOUNS_BY_FIELD.items():
        values = request.values(field)
        if "high" in values:
            yield translate(f"fallback_{noun}_high")
        elif values:
            yield translate(f"fallback_{noun}_low")
    for adjective in request.values(ADJECTIVES):
        yield name_value(ADJECTIVES, adjective)


def _describe_bodies(bodies: Sequence[str]) -> str:
    """Return the names of the groups of bodies, such as "light or medium-bodied".

    A group of which only some bodies are given is named if no group is given whole.
    """
    partial_groups: list[str] = []
    whole_groups: list[str] = []
    for group in BODY_GROUPS:
        named_bodies = set(group).intersection(bodies)
        if not named_bodies:
            continue
        name = _describe_steps("bodies", group)
        partial_groups.append(name)
        if len(named_bodies) == len(group):
            whole_groups.append(name)
    return join_or(whole_groups or partial_groups)


def _describe_steps(field: str, values: Sequence[str]) -> str:
    """Return the common name of some values of a field.

    If they have none, return the name of each. Return "" if there are no values.
    """
    if not values:
        return ""
    common_name = get_display_name(field, values, current_language())
    return common_name or _join_names(field, values)


def _describe_names(field: str, values: Sequence[str]) -> str:
    """Return the names of grapes or places, or a common name of several, such as "New World"."""
    if len(values) > 1:
        return _describe_steps(field, values)
    return _join_names(field, values)


def get_price_currency(request: Request) -> Currency | None:
    """Return the currency of the price in a request, or None if it has none that is known."""
    return Currency.__members__.get(request.filters.get("currency", ""))


def _describe_price(request: Request) -> str:
    """Return the price limits, or "" if there are none.

    If the user has named a price for several bottles, the limits are said to be of one bottle, and
    the bottles are counted.
    """
    limits = _describe_limits(request)
    bottles = request.price_bottles
    if limits and bottles > 1:
        return translate("fallback_each_of", price=limits, count=bottles)
    return limits


def _describe_limits(request: Request) -> str:
    """Return the price limits of a request, or "" if there are none."""
    filters = request.filters
    min_price = filters.get("min_price")
    max_price = filters.get("max_price")
    below = filters.get("below")
    if min_price is None and max_price is None and below is None:
        return ""
    currency = Currency(filters.get("currency", Currency.EUR))
    if below is not None:
        return _describe_price_below(min_price, below, currency)
    if min_price is None:
        highest = format_money(max_price or 0, currency)
        return translate("fallback_up_to", price=highest)
    if max_price is None:
        lowest = format_money(min_price, currency)
        return translate("fallback_from", price=lowest)
    # "about €20" has become two limits. They are shown as the one price that the user has named.
    price = find_approximate_price(min_price, max_price)
    if price is not None and request.is_price_approximate:
        named_price = format_money(price, currency)
        return translate("fallback_about", price=named_price)
    return format_money_range(min_price, max_price, currency)


def _describe_price_below(
    min_price: float | None,
    below: float,
    currency: Currency,
) -> str:
    """Return a limit that the price must not reach, with the lowest price if there is one."""
    excluded_price = format_money(below, currency)
    if min_price is None:
        return translate("fallback_below", price=excluded_price)
    lowest = format_money(min_price, currency)
    return translate("fallback_from_to_below", low=lowest, high=excluded_price)


def describe_field(name: str, request: Request) -> str:
    """Return a description of the values of one field that a request asks for."""
    if name == "offer":
        return translate(f"offer_{request.filters[name]}")
    if name in PRICE_FIELDS:
        price = _describe_price(request)
        return translate("fallback_price_limit", price=price)
    filters = {name: request.values(name)}
    return describe_filters(Request(filters=filters))


def describe_wine(wine: Wine, dishes: Mapping[str, Dish]) -> str:
    """Return a description of a wine: its style, taste, grapes and foods that it suits.

    If it suits foods of the dishes, only these foods are named.
    """
    parts: list[str] = []
    if wine.style:
        parts.append(_name_style(wine))
    is_style = str(wine.colour) == wine.style
    shown_colours = SHOWN_COLOURS
    if wine.style == Style.ALCOHOL_FREE:
        shown_colours = COLOUR_VALUES
    if wine.colour in shown_colours and not is_style:
        parts.append(translate(f"colour_{wine.colour}"))
    if wine.body is not None:
        bodies = (wine.body,)
        parts.append(_describe_bodies(bodies))
    is_dry = wine.sweetness is None or wine.sweetness in DRY_STEPS
    if not is_dry and wine.style != Style.SWEET:
        steps = (str(wine.sweetness),)
        parts.append(_describe_steps("sweetness", steps))
    grapes = [name_value("grapes", grape) for grape in wine.grapes]
    parts.append(", ".join(grapes))
    foods = find_suitable_foods(wine, dishes) or wine.foods
    parts.append(name_foods(foods))
    line = _join_parts(parts)
    return capitalise(line)


def _name_style(wine: Wine) -> str:
    """Return the name of the style of a wine."""
    if is_alcohol_free_sparkling(wine):
        return translate("fallback_alcohol_free_sparkling")
    return name_value("styles", str(wine.style))


def is_alcohol_free_sparkling(wine: Wine) -> bool:
    """Return whether a wine is sparkling and has no alcohol. Its style is alcohol-free."""
    if wine.style != Style.ALCOHOL_FREE:
        return False
    words = split_words(wine.source_text)
    return not SPARKLING_WORDS.isdisjoint(words)


def name_foods(foods: Sequence[str]) -> str:
    """Return which foods a wine suits, such as "goes with lamb, game · good as an aperitif".

    Only the first foods are named. Return "" if there are none.
    """
    language = current_language()
    named_foods = foods[:MAX_FOODS]
    names: list[str] = []
    for food in named_foods:
        if food != Food.APERITIF:
            names.append(get_food_name(food, language))
    parts: list[str] = []
    if names:
        listed_names = ", ".join(names)
        parts.append(translate("fallback_suits", foods=listed_names))
    if Food.APERITIF in named_foods:
        parts.append(translate("fallback_aperitif"))
    return _join_parts(parts)


def find_suitable_foods(wine: Wine, dishes: Mapping[str, Dish]) -> Sequence[str]:
    """Return the foods of the dishes that a wine suits."""
    requested: set[str] = set()
    for dish in dishes.values():
        requested.update(dish.foods)
    return [food for food in wine.foods if food in requested]

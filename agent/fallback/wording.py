"""Descriptions of requests and wines in the current language."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agent.formatting import format_money, format_money_range, join_or
from agent.i18n import current_language, format_number, translate
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
from agent.sommelier.vocabulary import OAKY, Allergen, Currency, Style
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine

MAX_FOODS: Final = 3
COLOUR_VALUES: Final = frozenset({"red", "white", "rose", "orange"})
SHOWN_COLOURS: Final = frozenset({"red", "rose"})
"""The colours that the card of a sparkling, sweet or fortified wine names.

Most such wines are white.
"""
BODY_GROUPS: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
DRY_STEPS: Final = frozenset({"bone_dry", "dry"})
NAME_FIELDS: Final = ("grapes", "regions", "countries")
ADJECTIVES: Final = "text"
"""The field whose values are adjectives of tasting notes, such as "smoky"."""


def describe_request(request: Request) -> str:
    """Return a description such as `Red wine · lamb · up to €20 · no Merlot`."""
    return _capitalise(_describe_filters(request))


def _describe_filters(request: Request) -> str:
    filters = request.filters
    parts = [*_describe_kind(request), *_describe_tastes(request)]
    for field in NAME_FIELDS:
        parts.append(_describe_names(field, request.values(field)))
    parts.append(", ".join(request.dishes))
    parts.append(_describe_price(filters))
    if "max_abv" in filters:
        parts.append(f"≤ {format_number(filters['max_abv'])} % vol")
    parts.append(request.name)
    if "order" in filters:
        parts.append(translate(f"fallback_{filters['order']}"))
    if "offer" in filters:
        parts.append(name_value("offer", filters["offer"]))
    if request.wants_others:
        parts.append(translate("fallback_other"))
    parts += _describe_exclusions(request)
    return _join_parts(dict.fromkeys(parts))


def _describe_kind(request: Request) -> Iterator[str]:
    """Yield the styles, and then the colours that are not among the styles: "sparkling", "rosé"."""
    styles = request.values("styles")
    yield _names_joined("styles", styles)
    for colour in request.values("colours"):
        if colour not in styles:
            yield translate(f"colour_{colour}")


def _describe_exclusions(request: Request) -> Iterator[str]:
    """Yield what is excluded ("no Merlot"), including tastes ("not smoky")."""
    for field in LIST_FIELDS:
        sentence = "fallback_without"
        if field == ADJECTIVES:
            sentence = "fallback_not"
        for value in request.values(f"without_{field}"):
            if value == OAKY:
                yield translate("memory_no_oak")
            else:
                yield translate(sentence, name=name_value(field, value))
    allergens = request.values("without_allergens")
    means_vegan = is_vegan(allergens)
    if means_vegan:
        yield translate("vegan_yes")
    for allergen in allergens:
        if means_vegan and allergen in NON_VEGAN_ALLERGENS:
            continue
        name = name_value("allergens", allergen)
        if allergen in request.allergies:
            yield translate("fallback_allergy", what=name)
        elif allergen == Allergen.SULPHITES:  # every wine has some sulphites
            yield translate("fallback_no_added_sulphites")
        else:
            yield translate("fallback_avoided", what=name)


def is_vegan(excluded_allergens: Iterable[str]) -> bool:
    """Return whether these allergens are excluded because a vegan wine is asked for."""
    return NON_VEGAN_ALLERGENS.issubset(excluded_allergens)


def _names_joined(field: str, values: Sequence[str]) -> str:
    return join_or([name_value(field, value) for value in values])


def _join_parts(parts: Iterable[str]) -> str:
    """Return the non-empty parts in one line."""
    return " · ".join(filter(None, parts))


def _capitalise(line: str) -> str:
    """Return a line with a capital as its first letter, and all others unchanged."""
    return line[:1].upper() + line[1:]


def name_value(field: str, value: str) -> str:
    """Return the display name of a value of a field, or else the value itself."""
    language = current_language()
    if field == "countries":
        return translate_country(value)
    if field == "styles" and value == Style.SWEET:
        return translate("fallback_sweet_wine")
    if field == "grapes":
        return get_grape_name(value, language)
    if field == "regions":
        return get_region_name(value, language)
    if field == "allergens":
        field = "allergen"
    if value in COLOUR_VALUES:
        field = "colour"
    return _find_name(field, value, language)


def _find_name(field: str, value: str, language: str) -> str:
    """Return the name of a value in the tables, alone or with others, or else the value itself."""
    own_name = get_display_name(field, (value,), language)
    if own_name:
        return own_name
    # Some values only have a name together with others: "dry" stands for two steps.
    shared_names = load_display_names().get((field, language), {})
    for values, name in shared_names.items():
        if value in values:
            return name_in_country(name, language)
    return value.replace("_", " ")


def _describe_tastes(request: Request) -> Iterator[str]:
    """Yield the requested sweetness, body, tannin, acidity and other tastes."""
    yield _describe_steps("sweetness", request.values("sweetness"))
    yield _describe_bodies(request.values("bodies"))
    for field, noun in (("tannins", "tannin"), ("acidities", "acidity")):
        values = request.values(field)
        if "high" in values:
            yield translate(f"fallback_{noun}_high")
        elif values:
            yield translate(f"fallback_{noun}_low")
    for taste in request.values("text"):
        yield name_value("text", taste)


def _describe_bodies(bodies: Sequence[str]) -> str:
    """Return the names of the groups to which bodies belong: "light or medium-bodied"."""
    names: list[str] = []
    for group in BODY_GROUPS:
        if not set(group).isdisjoint(bodies):
            names.append(_describe_steps("bodies", group))
    return join_or(names)


def _describe_steps(field: str, values: Sequence[str]) -> str:
    """Return the common name of some steps of a scale, or else their names."""
    if not values:
        return ""
    common_name = get_display_name(field, values, current_language())
    return common_name or _names_joined(field, values)


def _describe_names(field: str, values: Sequence[str]) -> str:
    """Return the common name of several places, such as "New World", or else their names."""
    if len(values) > 1:
        return _describe_steps(field, values)
    return _names_joined(field, values)


def _describe_price(filters: Mapping[str, Any]) -> str:
    """Return the price limits, or "" if there are none."""
    low = filters.get("min_price")
    high = filters.get("max_price")
    if low is None and high is None:
        return ""
    currency = Currency(filters.get("currency", Currency.EUR))
    if low is None:
        return translate("fallback_up_to", price=format_money(high or 0, currency))
    if high is None:
        return translate("fallback_from", price=format_money(low, currency))
    price = find_approximate_price(low, high)
    if price is not None:
        return translate("fallback_about", price=format_money(price, currency))
    return format_money_range(low, high, currency)


def describe_field(name: str, request: Request) -> str:
    """Return a description of the requested values of one field."""
    if name == "foods":
        return ", ".join(request.dishes)
    if name == "offer":
        return translate(f"offer_{request.filters[name]}")
    if name in PRICE_FIELDS:
        price = _describe_price(request.filters)
        return translate("fallback_price_limit", price=price)
    return _describe_filters(Request(filters={name: request.values(name)}))


def describe_wine(wine: Wine, dishes: Mapping[str, Dish]) -> str:
    """Return the kind of a wine and the foods that it suits, of the dishes if possible."""
    parts: list[str] = []
    if wine.style:
        parts.append(name_value("styles", wine.style))
    if wine.colour in SHOWN_COLOURS and str(wine.colour) != wine.style:
        parts.append(translate(f"colour_{wine.colour}"))
    if wine.body is not None:
        parts.append(_describe_bodies((wine.body,)))
    is_dry = wine.sweetness is None or wine.sweetness in DRY_STEPS
    if not is_dry and wine.style != Style.SWEET:
        parts.append(_describe_steps("sweetness", (str(wine.sweetness),)))
    grapes = [name_value("grapes", grape) for grape in wine.grapes]
    parts.append(", ".join(grapes))
    foods = find_suitable_foods(wine, dishes) or wine.foods
    parts.append(name_foods(foods))
    return _capitalise(_join_parts(parts))


def name_foods(foods: Sequence[str]) -> str:
    """Return the first of some foods: "goes with lamb, game". Return "" if there are none."""
    if not foods:
        return ""
    language = current_language()
    names = [get_food_name(food, language) for food in foods[:MAX_FOODS]]
    return translate("fallback_suits", foods=", ".join(names))


def find_suitable_foods(wine: Wine, dishes: Mapping[str, Dish]) -> Sequence[str]:
    """Return the foods of the dishes that a wine suits."""
    requested: set[str] = set()
    for dish in dishes.values():
        requested.update(dish.foods)
    return [food for food in wine.foods if food in requested]

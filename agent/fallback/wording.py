"""Descriptions of requests and wines in the current language."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agent.formatting import format_money
from agent.i18n import current_language, format_number, translate
from agent.languages import ENGLISH
from agent.query_reading.names import get_display_name, get_food_name, load_display_names
from agent.query_reading.request import LIST_FIELDS, Request
from agent.query_reading.tables import Dish
from agent.sommelier.cards import translate_country
from agent.sommelier.vocabulary import Currency, Style
from agent.sommelier.wine import Wine

MAX_FOODS: Final = 3
COLOUR_VALUES: Final = frozenset({"red", "white", "rose", "orange"})
BODY_GROUPS: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
DRY_STEPS: Final = frozenset({"bone_dry", "dry"})
NAME_FIELDS: Final = ("grapes", "regions", "countries")


def describe_request(request: Request) -> str:
    """Return a description such as `Red · lamb · up to €20 · without Merlot`."""
    return _capitalise(_describe_filters(request))


def _describe_filters(request: Request) -> str:
    filters = request.filters
    parts = [_describe_kind(request), *_describe_tastes(request)]
    parts += [_names_joined(field, request.values(field)) for field in NAME_FIELDS]
    parts += [", ".join(request.dishes), _describe_price(filters)]
    if "max_abv" in filters:
        parts.append(f"≤ {format_number(filters['max_abv'])} % vol")
    parts.append(request.name)
    if "order" in filters:
        parts.append(translate(f"fallback_{filters['order']}"))
    if "offer" in filters:
        parts.append(translate(f"offer_{filters['offer']}"))
    if request.wants_others:
        parts.append(translate("fallback_other"))
    parts.append(_describe_exclusions(request))
    return _join_parts(parts)


def _describe_kind(request: Request) -> str:
    """Return the styles and the colours that are no styles: "sparkling rosé"."""
    styles = request.values("styles")
    names = [_names_joined("styles", styles)]
    for colour in request.values("colours"):
        if colour not in styles:
            names.append(name_value("styles", colour))
    return " ".join(filter(None, names))


def _describe_exclusions(request: Request) -> str:
    excluded: list[str] = []
    for field in LIST_FIELDS:
        for value in request.values(f"without_{field}"):
            excluded.append(name_value(field, value))
    for allergen in request.values("without_allergens"):
        excluded.append(name_value("allergen", allergen))
    if not excluded:
        return ""
    return translate("fallback_without", names=_join_or(excluded))


def _names_joined(field: str, values: Sequence[str]) -> str:
    return _join_or([name_value(field, value) for value in values])


def _join_parts(parts: Iterable[str]) -> str:
    """Return the non-empty parts in one line."""
    return " · ".join(filter(None, parts))


def _capitalise(line: str) -> str:
    """Return a line with its first letter as a capital, and all others as they are."""
    return line[:1].upper() + line[1:]


def _join_or(names: Iterable[str]) -> str:
    """Return the names joined as in "red, white or rosé"; empty without names."""
    distinct = list(dict.fromkeys(filter(None, names)))
    if not distinct:
        return ""
    *others, last = distinct
    if not others:
        return last
    return f"{', '.join(others)} {translate('fallback_or')} {last}"


def name_value(field: str, value: str) -> str:
    """Return the display name of a value of a field, or else the value itself."""
    language = current_language()
    if field == "countries":
        return translate_country(value)
    if field == "styles" and value == Style.SWEET:
        return translate("fallback_sweet_wine")
    if field == "grapes" or (field == "regions" and language == ENGLISH):
        return value
    if field == "regions":
        # A region without a name in this language has one name everywhere.
        return load_display_names().get((field, language), {}).get((value,), value)
    return _find_name("colour" if value in COLOUR_VALUES else field, value, language)


def _find_name(field: str, value: str, language: str) -> str:
    """Return the name of a value in the tables, alone or with others, or else the value itself."""
    if name := get_display_name(field, (value,), language):
        return name
    # Some values only have a name together with others: "dry" stands for two steps.
    shared_names = load_display_names().get((field, language), {})
    for values, name in shared_names.items():
        if value in values:
            return name
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
    return _join_or(names)


def _describe_steps(field: str, values: Sequence[str]) -> str:
    """Return the common name of some steps of a scale, or else their names."""
    if not values:
        return ""
    common_name = get_display_name(field, values, current_language())
    return common_name or _names_joined(field, values)


def _describe_price(filters: Mapping[str, Any]) -> str:
    """Return the price limits, or an empty string without limits."""
    low, high = filters.get("min_price"), filters.get("max_price")
    if low is None and high is None:
        return ""
    currency = Currency(filters.get("currency", Currency.EUR))
    if low is None:
        return translate("fallback_up_to", price=format_money(high or 0, currency))
    if high is None:
        return translate("fallback_from", price=format_money(low, currency))
    return f"{format_money(low, currency)}–{format_money(high, currency)}"


def describe_field(name: str, request: Request) -> str:
    """Return a description of the requested values of one field."""
    if name == "foods":
        return ", ".join(request.dishes)
    return _describe_filters(Request(filters={name: request.values(name)}))


def describe_wine(wine: Wine, dishes: Mapping[str, Dish]) -> str:
    """Return the kind of a wine and the foods it suits: those of the dishes, or else all."""
    parts = [name_value("styles", wine.style)] if wine.style else []
    if wine.body is not None:
        parts.append(_describe_bodies((wine.body,)))
    is_dry = wine.sweetness is None or wine.sweetness in DRY_STEPS
    if not is_dry and wine.style != Style.SWEET:
        parts.append(_describe_steps("sweetness", (str(wine.sweetness),)))
    parts.append(", ".join(wine.grapes))
    if foods := _suitable_foods(wine, dishes):
        language = current_language()
        names = [get_food_name(food, language) for food in foods[:MAX_FOODS]]
        parts.append(translate("fallback_suits", foods=", ".join(names)))
    return _capitalise(_join_parts(parts))


def _suitable_foods(wine: Wine, dishes: Mapping[str, Dish]) -> Sequence[str]:
    requested: set[str] = set()
    for dish in dishes.values():
        requested.update(dish.foods)
    suitable = [food for food in wine.foods if food in requested]
    return suitable or wine.foods

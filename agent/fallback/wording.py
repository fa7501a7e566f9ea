"""Descriptions of requests and wines in the current language."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agent.formatting import format_money
from agent.i18n import current_language, format_number, translate
from agent.query_reading.names import get_display_name, get_food_name, load_display_names
from agent.query_reading.request import LIST_FIELDS, Request
from agent.query_reading.tables import Dish
from agent.sommelier.answer import translate_country
from agent.sommelier.wine import Currency, Style, Wine

MAX_FOODS: Final = 3
COLOUR_VALUES: Final = frozenset({"red", "white", "rose", "orange"})
BODY_GROUPS: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
DRY_STEPS: Final = frozenset({"bone_dry", "dry"})
NAME_FIELDS: Final = ("grapes", "regions", "countries")


def describe_request(request: Request) -> str:
    """Return a description such as `Red · lamb · up to €20 · without Merlot`."""
    filters = request.filters
    parts = [_describe_kind(request), *_describe_tastes(request)]
    parts += [_names_joined(field, request.values(field)) for field in NAME_FIELDS]
    parts += [", ".join(request.dishes), _describe_price(filters)]
    if "max_abv" in filters:
        parts.append(f"≤ {format_number(filters['max_abv'])} % vol")
    parts.append(request.name)
    if "order" in filters:
        parts.append(translate(f"fallback_{filters['order']}"))
    if request.wants_others:
        parts.append(translate("fallback_other"))
    parts.append(_describe_exclusions(request))
    return _join_parts(parts)


def _describe_kind(request: Request) -> str:
    """Return the styles and the colours that are no styles: "sparkling rosé"."""
    styles = request.values("styles")
    colours = [colour for colour in request.values("colours") if colour not in styles]
    names = [_names_joined("styles", styles), *(_name("styles", colour) for colour in colours)]
    return " ".join(filter(None, names))


def _describe_exclusions(request: Request) -> str:
    excluded: list[str] = []
    for field in LIST_FIELDS:
        excluded += [_name(field, value) for value in request.values(f"without_{field}")]
    allergens = request.values("without_allergens")
    excluded += [_name("allergen", allergen) for allergen in allergens]
    return translate("fallback_without", names=_join_or(excluded)) if excluded else ""


def _names_joined(field: str, values: Sequence[str]) -> str:
    return _join_or(_name(field, value) for value in values)


def _join_parts(parts: Iterable[str]) -> str:
    """Return the non-empty parts in one line that begins with a capital letter."""
    line = " · ".join(filter(None, parts))
    return line[:1].upper() + line[1:]


def _join_or(names: Iterable[str]) -> str:
    """Return the names joined as in "red, white or rosé"; empty without names."""
    *others, last = list(dict.fromkeys(filter(None, names))) or [""]
    return f"{', '.join(others)} {translate('fallback_or')} {last}" if others else last


def _name(field: str, value: str) -> str:
    """Return the display name of a value of a field, or else the value itself."""
    language = current_language()
    if field == "countries":
        return translate_country(value)
    if field == "styles" and value == Style.SWEET:
        return translate("fallback_sweet_wine")
    if field == "grapes" or (field == "regions" and language == "en"):
        return value
    field = "colour" if value in COLOUR_VALUES else field
    # Some values only have a name together with others: "dry" stands for two steps.
    names = load_display_names().get((field, language), {})
    shared_name = next((name for values, name in names.items() if value in values), "")
    return get_display_name(field, (value,), language) or shared_name or value.replace("_", " ")


def _describe_tastes(request: Request) -> Iterator[str]:
    """Yield the requested sweetness, body, tannin, acidity and other tastes."""
    bodies = request.values("bodies")
    yield _describe_steps("sweetness", request.values("sweetness"))
    groups = (group for group in BODY_GROUPS if set(group) & set(bodies))
    yield _join_or(_describe_steps("bodies", group) for group in groups)
    for field, noun in (("tannins", "tannin"), ("acidities", "acidity")):
        if values := request.values(field):
            yield translate(f"fallback_{noun}_{'high' if 'high' in values else 'low'}")
    for taste in request.values("text"):
        yield _name("text", taste)


def _describe_steps(field: str, values: Sequence[str]) -> str:
    """Return the common name of some steps of a scale, or else their names."""
    common_name = get_display_name(field, values, current_language()) if values else ""
    return common_name or _join_or(_name(field, value) for value in values)


def _describe_price(filters: Mapping[str, Any]) -> str:
    """Return the price limits, or an empty string without limits."""
    low, high = filters.get("min_price"), filters.get("max_price")
    currency = filters.get("currency", Currency.EUR)
    lowest = "" if low is None else format_money(low, Currency(currency))
    highest = "" if high is None else format_money(high, Currency(currency))
    if lowest and highest:
        return f"{lowest}–{highest}"
    if highest:
        return translate("fallback_up_to", price=highest)
    return translate("fallback_from", price=lowest) if lowest else ""


def describe_field(name: str, request: Request) -> str:
    """Return a description of the requested values of one field."""
    if name == "foods":
        return ", ".join(request.dishes)
    description = describe_request(Request(filters={name: request.values(name)}))
    return description if name in NAME_FIELDS else description.lower()


def describe_wine(wine: Wine, dishes: Mapping[str, Dish]) -> str:
    """Return the kind of a wine and the foods it suits: those of the dishes, or else all."""
    parts = [_name("styles", wine.style)]
    body = next((group for group in BODY_GROUPS if wine.body in group), ())
    parts.append(_describe_steps("bodies", body))
    is_dry = wine.sweetness is None or wine.sweetness in DRY_STEPS
    if not is_dry and wine.style != Style.SWEET:
        parts.append(_describe_steps("sweetness", (str(wine.sweetness),)))
    parts.append(", ".join(wine.grapes))
    if foods := _suitable_foods(wine, dishes):
        language = current_language()
        names = [get_food_name(food, language) for food in foods[:MAX_FOODS]]
        parts.append(translate("fallback_suits", foods=", ".join(names)))
    return _join_parts(parts)


def _suitable_foods(wine: Wine, dishes: Mapping[str, Dish]) -> Sequence[str]:
    requested = {food for dish in dishes.values() for food in dish.foods}
    return [food for food in wine.foods if food in requested] or wine.foods

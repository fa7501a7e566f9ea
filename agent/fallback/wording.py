"""Requests and wines in words, in the language that is spoken."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from agent.fallback.request import LISTS, Request
from agent.fallback.words import Dish, food_name, name_of, names
from agent.i18n import current_language, translate, use_language
from agent.sommelier.answer import country_name
from agent.sommelier.wine import Currency, Style, Wine, WineQuery, money

BETWEEN: Final = " · "
MOST_FOODS: Final = 3
COLOURS: Final = frozenset({"red", "white", "rose", "orange"})
BODIES: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
DRY: Final = frozenset({"bone_dry", "dry"})
OPINIONS: Final = {"tannins": "tannin", "acidities": "acidity"}
PLACES: Final = ("grapes", "regions", "countries")
NAMED: Final = ("styles", "colours", *PLACES)


def describe_request(request: Request) -> str:
    """Return what was understood of a request: `red · lamb · up to €20 · without Merlot`."""
    colours = [name for name in request.values("colours") if name not in request.values("styles")]
    styles = _either(map(style_name, request.values("styles")))
    return _joined(
        [
            " ".join(filter(None, (styles, *map(style_name, colours)))),
            *_tastes(request),
            *(_either(_value(name, value) for value in request.values(name)) for name in PLACES),
            ", ".join(request.dishes),
            price_in_words(request.filters),
            f"≤ {request.filters['max_abv']:g} % vol" if "max_abv" in request.filters else "",
            request.name,
            translate(f"fallback_{request.filters['order']}") if "order" in request.filters else "",
            translate("fallback_other") if "other" in request.cues else "",
            _without(request),
        ]
    )


def _joined(parts: Iterable[str]) -> str:
    """Return the parts that say something in one line, with a capital letter."""
    line = BETWEEN.join(filter(None, parts))
    return line[:1].upper() + line[1:]


def describe_search(arguments: str, language: str) -> str:
    """Describe the search of a call of `search_wines`; return "" if its arguments are invalid."""
    try:
        query = WineQuery.model_validate_json(arguments)
    except ValidationError:
        return ""
    with use_language(language):
        dishes = {food_name(food, language): Dish(foods=(food,)) for food in query.foods}
        filters = {name: getattr(query, name) for name in (*NAMED, "min_price", "currency")}
        filters["max_price"] = query.max_price or query.below
        return describe_request(Request(filters=filters, dishes=dishes))


def style_name(style: str) -> str:
    """Return what a style is called."""
    if style == Style.SWEET:
        return translate("fallback_sweet_wine")
    name = _named("colour" if style in COLOURS else "styles", style)
    return name or style.replace("_", " ")


def _named(field: str, *values: str) -> str:
    """Return what the language that is spoken calls these values; empty if it has no word."""
    return name_of(field, values, current_language())


def _value(field: str, value: str) -> str:
    """Return what a value of a field is called; its own name if nothing else is known."""
    match field:
        case "styles":
            return style_name(value)
        case "countries":
            return country_name(value)
        case "regions" if current_language() != "en":
            return _named(field, value) or value
        case "text":
            return _scale(field, (value,))
        case _:
            return value


def _tastes(request: Request) -> Iterator[str]:
    """Yield the sweetness, the body and the like that are wanted."""
    bodies = request.values("bodies")
    yield _scale("sweetness", request.values("sweetness"))
    yield _either(_scale("bodies", group) for group in BODIES if set(group) & set(bodies))
    for field, opinion in OPINIONS.items():
        if values := request.values(field):
            yield translate(f"fallback_{opinion}_{'high' if 'high' in values else 'low'}")
    for taste in request.values("text"):
        yield _scale("text", (taste,))


def _scale(field: str, values: Sequence[str]) -> str:
    """Return what these values are called together, or else one by one."""
    if not values:
        return ""
    together = _named(field, *values)
    return together or _either(_named(field, value) or _step(field, value) for value in values)


def _step(field: str, value: str) -> str:
    """Return what a value is called that a phrase only means together with others."""
    known = names().get((field, current_language()), {})
    found = (name for values, name in known.items() if value in values)
    return next(found, value.replace("_", " "))


def price_in_words(filters: Mapping[str, Any]) -> str:
    """Return the limits of a price; empty if there are none."""
    ends = (filters.get("min_price"), filters.get("max_price"))
    currency = filters.get("currency", Currency.EUR)
    low, high = (None if end is None else money(end, Currency(currency)) for end in ends)
    if low and high:
        return f"{low}–{high}"
    if high:
        return translate("fallback_up_to", price=high)
    return translate("fallback_from", price=low) if low else ""


def _without(request: Request) -> str:
    out = (_value(name, value) for name in LISTS for value in request.values(f"without_{name}"))
    allergens = (_named("allergen", name) or name for name in request.values("without_allergens"))
    names = _either((*out, *allergens))
    return translate("fallback_without", names=names) if names else ""


def field_in_words(name: str, request: Request) -> str:
    """Return what was asked of a field that no wine meets."""
    if name == "foods":
        return ", ".join(request.dishes)
    words = describe_request(Request(filters={name: request.values(name)}))
    return words if name in PLACES else words.lower()


def _either(names: Iterable[str]) -> str:
    *first, last = list(dict.fromkeys(filter(None, names))) or [""]
    return f"{', '.join(first)} {translate('fallback_or')} {last}" if first else last


def describe_wine(wine: Wine, request: Request) -> str:
    """Return what kind of wine it is and what it goes with: the foods asked for, if it does."""
    asked = {food for dish in request.dishes.values() for food in dish.foods}
    foods = [food for food in wine.foods if food in asked] or wine.foods
    named = ", ".join(food_name(food, current_language()) for food in foods[:MOST_FOODS])
    body = next((group for group in BODIES if wine.body in group), ())
    is_told = wine.sweetness and wine.sweetness not in DRY and wine.style != Style.SWEET
    return _joined(
        [
            style_name(wine.style),
            _scale("bodies", body),
            _scale("sweetness", (str(wine.sweetness),)) if is_told else "",
            ", ".join(wine.grapes),
            translate("fallback_suits", foods=named) if named else "",
        ]
    )

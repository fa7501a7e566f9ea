"""Requests and wines in words, in the language that is spoken."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agent.fallback.request import LISTS, Request
from agent.fallback.words import get_display_name, get_food_name, names
from agent.i18n import current_language, translate
from agent.sommelier.answer import translate_country
from agent.sommelier.wine import Currency, Style, Wine, format_money

MOST_FOODS: Final = 3
COLOURS: Final = frozenset({"red", "white", "rose", "orange"})
BODIES: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
DRY: Final = frozenset({"bone_dry", "dry"})
PLACES: Final = ("grapes", "regions", "countries")


def describe_request(request: Request) -> str:
    """Return what was understood of a request: `red · lamb · up to €20 · without Merlot`."""
    filters, values = request.filters, request.values
    styles = _either(_name("styles", style) for style in values("styles"))
    colours = (_name("styles", name) for name in values("colours") if name not in values("styles"))
    out = [_name(name, value) for name in LISTS for value in values(f"without_{name}")]
    out += [_name("allergen", allergen) for allergen in values("without_allergens")]
    return _joined(
        [
            " ".join(filter(None, (styles, *colours))),
            *_tastes(request),
            *(_either(_name(name, value) for value in values(name)) for name in PLACES),
            ", ".join(request.dishes),
            _price(filters),
            f"≤ {filters['max_abv']:g} % vol" if "max_abv" in filters else "",
            request.name,
            translate(f"fallback_{filters['order']}") if "order" in filters else "",
            translate("fallback_other") if "other" in request.cues else "",
            translate("fallback_without", names=_either(out)) if out else "",
        ]
    )


def _joined(parts: Iterable[str]) -> str:
    """Return the parts that say something in one line, with a capital letter."""
    line = " · ".join(filter(None, parts))
    return line[:1].upper() + line[1:]


def _either(names: Iterable[str]) -> str:
    *first, last = list(dict.fromkeys(filter(None, names))) or [""]
    return f"{', '.join(first)} {translate('fallback_or')} {last}" if first else last


def _name(field: str, value: str) -> str:
    """Return what a value of a field is called; its own name if nothing else is known."""
    language = current_language()
    if field == "countries":
        return translate_country(value)
    if field == "styles" and value == Style.SWEET:
        return translate("fallback_sweet_wine")
    if field == "grapes" or (field == "regions" and language == "en"):
        return value
    field = "colour" if value in COLOURS else field
    # A phrase may mean the value only together with others.
    known = names().get((field, language), {})
    partly = next((name for meant, name in known.items() if value in meant), "")
    return get_display_name(field, (value,), language) or partly or value.replace("_", " ")


def _tastes(request: Request) -> Iterator[str]:
    """Yield the sweetness, the body and the like that are wanted."""
    bodies = request.values("bodies")
    yield _scale("sweetness", request.values("sweetness"))
    yield _either(_scale("bodies", group) for group in BODIES if set(group) & set(bodies))
    for field, opinion in (("tannins", "tannin"), ("acidities", "acidity")):
        if values := request.values(field):
            yield translate(f"fallback_{opinion}_{'high' if 'high' in values else 'low'}")
    for taste in request.values("text"):
        yield _name("text", taste)


def _scale(field: str, values: Sequence[str]) -> str:
    """Return what these values are called together, or else one by one."""
    together = get_display_name(field, values, current_language()) if values else ""
    return together or _either(_name(field, value) for value in values)


def _price(filters: Mapping[str, Any]) -> str:
    """Return the limits of a price; empty if there are none."""
    ends = (filters.get("min_price"), filters.get("max_price"))
    currency = filters.get("currency", Currency.EUR)
    low, high = (None if end is None else format_money(end, Currency(currency)) for end in ends)
    if low and high:
        return f"{low}–{high}"
    if high:
        return translate("fallback_up_to", price=high)
    return translate("fallback_from", price=low) if low else ""


def field_in_words(name: str, request: Request) -> str:
    """Return what was asked of a field that no wine meets."""
    if name == "foods":
        return ", ".join(request.dishes)
    words = describe_request(Request(filters={name: request.values(name)}))
    return words if name in PLACES else words.lower()


def describe_wine(wine: Wine, request: Request) -> str:
    """Return what kind of wine it is and what it goes with: the foods asked for, if it does."""
    asked = {food for dish in request.dishes.values() for food in dish.foods}
    foods = [food for food in wine.foods if food in asked] or wine.foods
    named = ", ".join(get_food_name(food, current_language()) for food in foods[:MOST_FOODS])
    body = next((group for group in BODIES if wine.body in group), ())
    is_told = wine.sweetness and wine.sweetness not in DRY and wine.style != Style.SWEET
    return _joined(
        [
            _name("styles", wine.style),
            _scale("bodies", body),
            _scale("sweetness", (str(wine.sweetness),)) if is_told else "",
            ", ".join(wine.grapes),
            translate("fallback_suits", foods=named) if named else "",
        ]
    )

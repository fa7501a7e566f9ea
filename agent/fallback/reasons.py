"""Describe by which of its properties a wine meets a wish, and which parts it does not meet."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from agent.fallback.wording import (
    DRY_STEPS,
    capitalise,
    describe_field,
    describe_filters,
    describe_wine,
    find_suitable_foods,
    get_price_currency,
    is_alcohol_free_sparkling,
    name_foods,
)
from agent.i18n import translate
from agent.query_reading.prices import PRICE_FIELDS
from agent.query_reading.request import SCALES, Request
from agent.query_reading.tables import load_pairings
from agent.sommelier.basket import find_offer
from agent.sommelier.building_queries import get_pairing_name
from agent.sommelier.cards import format_price
from agent.sommelier.conversion import format_converted
from agent.sommelier.filters import matches
from agent.sommelier.vocabulary import (
    Body,
    Colour,
    Currency,
    OfferKind,
    Style,
    to_euros,
)
from agent.sommelier.wine import Wine

UNREMARKABLE: Final = "medium"
"""The tannin or acidity that is no reason to choose a wine."""
STRUCTURE_FIELDS: Final = ("tannins", "acidities")
STYLES_WITH_TANNIN: Final = (
    Style.RED,
    Style.ROSE,
    Style.ORANGE,
)
COLOURS_WITH_TANNIN: Final = (
    Colour.RED,
    Colour.ROSE,
    Colour.ORANGE,
)
"""The colours of the sparkling, sweet and fortified wines of which tannin is worth a word."""


def describe_fit(wine: Wine, request: Request) -> str:
    """Return why a wine was chosen for a wish, in up to five lines.

    For example: "As you asked: red wine · €12", "Goes with lamb", "Suits the food: firm tannins"
    and "But not: full-bodied". If there is nothing to name, the result is the kind of the wine.
    """
    lines: list[str] = []
    asked_parts = _describe_met(wine, request)
    if asked_parts:
        lines.append(translate("fit_asked", parts=asked_parts))
    foods = find_suitable_foods(wine, request.dishes)
    if foods:
        lines.append(capitalise(name_foods(foods)))
    pairing_reasons = _describe_pairing_reasons(wine, request)
    if pairing_reasons:
        lines.append(translate("fit_dish", parts=pairing_reasons))
    unmet = describe_unmet(wine, request, request.inclusions)
    if unmet:
        lines.append(unmet)
    if _is_too_cheap(wine, request):
        price = format_asked_price(wine, request)
        lines.append(translate("fit_too_cheap", price=price))
    if not lines:
        return describe_wine(wine, request.dishes)
    return "\n".join(lines)


def describe_unmet(wine: Wine, request: Request, fields: Collection[str]) -> str:
    """Return the lines that say which of these fields of a wish a wine is known not to meet.

    Return "" if it is not known to miss any.
    """
    lines: list[str] = []
    unmet = _list_unmet(wine, request, fields)
    if unmet:
        lines.append(translate("fit_unmet", parts=", ".join(unmet)))
    if "foods" in fields and not suits_dishes(wine, request):
        dish = ", ".join(request.dishes)
        lines.append(translate("fit_not_for_dish", dish=dish))
    return "\n".join(lines)


def suits_dishes(wine: Wine, request: Request) -> bool:
    """Return whether a wine suits the dishes of a request.

    It does if the wine list names a food of the dishes, or if the wine is as their pairing wants.
    """
    if find_suitable_foods(wine, request.dishes):
        return True
    pairing_name = get_pairing_name(request)
    pairing = load_pairings().get(pairing_name, {})
    taste = {field: tuple(values) for field, values in pairing.items()}
    return matches(wine, taste)


def find_pairing_reason(request: Request) -> str:
    """Return why the wines suit the dish.

    Return "" if no dish is known, or if the request is for another kind of wine than the reason
    praises: a red with carbonara, or a full-bodied one where the dishes want a light one.
    """
    name = get_pairing_name(request)
    if not name:
        return ""
    pairing = load_pairings()[name]
    for field in ("styles", "bodies"):
        asked = request.values(field)
        paired = pairing.get(field, asked)
        if asked and set(asked).isdisjoint(paired):
            return ""
    return translate(f"pairing_{name}")


def _describe_met(wine: Wine, request: Request) -> str:
    """Return the parts of a wish that a wine meets, with the price of the wine if it does."""
    met: dict[str, tuple[str, ...]] = {}
    for field, values in request.inclusions.items():
        if field != "tannins" or _has_tannin(wine):
            met[field] = _list_met_values(wine, field, values)
    met_request = Request(filters=met)
    parts = [describe_filters(met_request)]
    names_price = not PRICE_FIELDS.isdisjoint(request.filters)
    if names_price and not _is_too_cheap(wine, request):
        parts.append(format_asked_price(wine, request))
    return _join_parts(parts)


def _is_too_cheap(wine: Wine, request: Request) -> bool:
    """Return whether a wine costs less than a wish asks for. None that is found costs more."""
    min_price = request.filters.get("min_price")
    price = wine.price_in_euros
    if min_price is None or price is None:
        return False
    currency = Currency(request.filters.get("currency", Currency.EUR))
    return price < to_euros(min_price, currency)


def format_asked_price(wine: Wine, request: Request) -> str:
    """Return the price of a wine in the size that a wish asks for, or else in its usual size.

    If the wish names another currency, the price is also given in that one.
    """
    kind = None
    if "offer" in request.filters:
        kind = OfferKind(request.filters["offer"])
    offer = find_offer(wine, kind) or wine.offers[0]
    if offer.price is None:
        return ""
    currency = get_price_currency(request)
    converted = format_converted(offer.price, offer.currency, currency)
    return f"{format_price(wine, offer)}{converted}"


def _describe_pairing_reasons(wine: Wine, request: Request) -> str:
    """Return what of a wine suits the dishes of a wish, or "" if nothing is known to.

    What was asked for anyway is left out.
    """
    reasons = _find_pairing_reasons(wine, request)
    return describe_filters(Request(filters=reasons))


def _find_pairing_reasons(wine: Wine, request: Request) -> dict[str, tuple[str, ...]]:
    """Return the values of the pairing that a wine meets and that are reasons for it."""
    pairing_name = get_pairing_name(request)
    pairing = load_pairings().get(pairing_name, {})
    reasons: dict[str, tuple[str, ...]] = {}
    for field, values in pairing.items():
        if field in request.inclusions:
            continue
        met = _list_met_values(wine, field, values)
        if met and _is_reason(wine, field, pairing):
            reasons[field] = met
    return reasons


def _is_reason(
    wine: Wine,
    field: str,
    pairing: Mapping[str, Sequence[str]],
) -> bool:
    """Return whether the value of a field, which suits a pairing, is a reason for a wine."""
    unremarkable = {field: (UNREMARKABLE,)}
    if field in STRUCTURE_FIELDS and matches(wine, unremarkable):
        return False
    if field == "tannins":
        return _has_tannin(wine)
    if field == "sweetness":
        # Most wines are dry, so this tells nobody why one of them was chosen.
        return wine.sweetness not in DRY_STEPS
    if field == "bodies" and wine.body == Body.MEDIUM_LIGHT:
        # Such a wine is called light, which is no reason if the dish asks for some body.
        return Body.LIGHT in pairing[field]
    return True


def _has_tannin(wine: Wine) -> bool:
    """Return whether the tannin of a wine is worth a word. Whites have next to none."""
    return wine.style in STYLES_WITH_TANNIN or wine.colour in COLOURS_WITH_TANNIN


def _list_unmet(wine: Wine, request: Request, fields: Collection[str]) -> list[str]:
    """Return the parts of a wish in these fields that a wine is known not to meet."""
    unmet: list[str] = []
    for field, values in request.inclusions.items():
        if field not in fields or field == "text":
            # The notes of a wine do not name all of its tastes.
            continue
        if _list_met_values(wine, field, values):
            continue
        if _is_known(wine, field):
            unmet.append(describe_field(field, request))
    return list(dict.fromkeys(unmet))


def _is_known(wine: Wine, field: str) -> bool:
    """Return whether a wine has a step of a scale. Fields without a scale count as known."""
    steps = SCALES.get(field)
    if steps is None:
        return True
    return matches(wine, {field: tuple(steps)})


def _list_met_values(
    wine: Wine,
    field: str,
    values: Sequence[str],
) -> tuple[str, ...]:
    """Return the values of a filter that a wine meets."""
    met: list[str] = []
    for value in values:
        if matches(wine, {field: (value,)}) or _is_met_without_alcohol(wine, value):
            met.append(value)
    return tuple(met)


def _is_met_without_alcohol(wine: Wine, value: str) -> bool:
    """Return whether sparkling wine is wished, and a wine is sparkling without alcohol."""
    return value == Style.SPARKLING and is_alcohol_free_sparkling(wine)


def _join_parts(parts: Sequence[str]) -> str:
    """Return the parts that are not empty, on one line."""
    return " · ".join(filter(None, parts))

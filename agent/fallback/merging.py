"""Merging a message with earlier ones, and resolving its references to wines shown before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.engine.messages import Message
from agent.query_reading.request import PRICE_FIELDS, SCALES, Request, drop_empty, read_request
from agent.sommelier.wine import Wine

MAX_EARLIER_MESSAGES: Final = 6
CENT: Final = 0.01
EXCLUSION_PREFIX: Final = "without_"
COMPARISONS: Final = {
    "lighter": ("bodies", "body", False),
    "fuller": ("bodies", "body", True),
    "drier": ("sweetness", "sweetness", False),
    "sweeter": ("sweetness", "sweetness", True),
}
"""For each cue: the filter, the attribute of a wine, and whether the cue asks for more of it."""
KIND_OR_PLACE_FIELDS: Final = frozenset({"styles", "colours", "grapes", "countries", "regions"})

Exchange = tuple[str, tuple[str, ...]]
"""A message of the user, and the ids of the wines that its answer showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The wines that a message can refer to.

    `last_shown` are those of the last answer with wines, `shown_ids` those of all answers.
    """

    last_shown: tuple[Wine, ...] = ()
    shown_ids: tuple[str, ...] = ()

    def find_referenced(self, request: Request) -> tuple[Wine, ...]:
        """Return the wines that the ordinals of a request refer to."""
        count = len(self.last_shown)
        indices = (number - 1 if number > 0 else count + number for number in request.ordinals)
        return tuple(self.last_shown[index] for index in indices if 0 <= index < count)


def get_exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Return the user's messages of a conversation, each with the wines shown in reply."""
    exchanges: list[Exchange] = []
    for message in messages:
        if message.get("role") == "user":
            exchanges.append((str(message.get("content") or ""), ()))
        elif exchanges and (wine_ids := message.get("wine_ids")):
            exchanges[-1] = (exchanges[-1][0], wine_ids)
    return exchanges


def merge_exchanges(
    exchanges: Sequence[Exchange], wines: Mapping[str, Wine], default_language: str
) -> tuple[Request, Context]:
    """Return the request of the last message, merged with earlier ones, and its context."""
    merged = Request(language=default_language)
    # The context of a message lacks the wines shown in reply to it, hence two variables.
    context = next_context = Context()
    for text, wine_ids in exchanges[-MAX_EARLIER_MESSAGES - 1 :]:
        new, context = read_request(text, merged.language), next_context
        if not new.is_question:
            merged = merge(merged, new, context)
        merged = replace(merged, text=text, language=new.language, is_question=new.is_question)
        if wine_ids:
            next_context = Context(
                last_shown=tuple(wines[wine_id] for wine_id in wine_ids if wine_id in wines),
                shown_ids=tuple(dict.fromkeys((*context.shown_ids, *wine_ids))),
            )
    return merged, context


def merge(before: Request, new: Request, context: Context) -> Request:
    """Return `new`, completed with the filters and dishes of `before` that still apply.

    A new dish starts a new request: only excluded allergens are kept.
    """
    is_new_meal = bool(new.dishes) and not new.ordinals
    filters = dict(new.filters)
    for name, values in before.filters.items():
        field = name.removeprefix(EXCLUSION_PREFIX)
        is_exclusion = field != name
        if is_new_meal and field != "allergens":
            continue
        if is_exclusion:
            remaining = [value for value in values if value not in new.values(field)]
            filters |= drop_empty({name: [*remaining, *new.values(name)]})
        elif not _is_replaced(name, new):
            filters[name] = values
    merged = replace(new, filters=filters, dishes=new.dishes or before.dishes)
    return resolve_comparisons(merged, context)


def _is_replaced(name: str, new: Request) -> bool:
    """Return whether a new message replaces an earlier filter.

    Another kind of wine replaces the grape and the place; another place replaces only the place.
    """
    new_fields = new.inclusions.keys() & KIND_OR_PLACE_FIELDS
    if name in ("countries", "regions"):
        return bool(new_fields - {"colours"})
    if name in ("grapes", "styles", "colours"):
        return bool(new_fields - {"countries", "regions"})
    has_new_price = bool(PRICE_FIELDS & new.filters.keys())
    return name in new.filters or (has_new_price and name in {*PRICE_FIELDS, "order"})


def resolve_comparisons(request: Request, context: Context) -> Request:
    """Return a request with filters for its comparisons ("cheaper") with the wines shown last."""
    wines = context.find_referenced(request) or context.last_shown
    priced = [wine for wine in wines if wine.price is not None]
    priced.sort(key=lambda wine: wine.price_in_euros or 0)
    if priced and "cheaper" in request.cues:
        max_price = max(round((priced[0].price or 0) - CENT, 2), 0)
        request = _with_price(request, max_price=max_price, currency=priced[0].currency)
    if priced and "dearer" in request.cues:
        min_price = round((priced[-1].price or 0) + CENT, 2)
        request = _with_price(request, min_price=min_price, currency=priced[-1].currency)
    for cue in sorted(request.cues & COMPARISONS.keys()):
        field, attribute, is_more = COMPARISONS[cue]
        scale = SCALES[field]
        known = [step for wine in wines if (step := getattr(wine, attribute)) is not None]
        indices = [scale.index(step) for step in known] or [len(scale) // 2]
        steps = scale[max(indices) + 1 :] if is_more else scale[: min(indices)]
        # At the end of the scale there are no further steps.
        last_step = scale[-1:] if is_more else scale[:1]
        filters = {**request.filters, field: tuple(steps or last_step)}
        request = replace(request, filters=filters)
    return request


def _with_price(request: Request, **price: Any) -> Request:
    """Return a request with this price instead of its earlier price and order."""
    others = request.filters.keys() - PRICE_FIELDS - {"order"}
    return replace(request, filters={name: request.filters[name] for name in others} | price)

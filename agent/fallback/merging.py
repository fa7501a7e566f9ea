"""Merge a message with those before it, and tell which of the wines shown it means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.engine.messages import Message
from agent.fallback.request import PRICE, SCALES, Request, drop_empty, read_request
from agent.sommelier.wine import Wine

LAST: Final = 6
"""Messages before this one that count."""
CENT: Final = 0.01
WITHOUT: Final = "without_"
COMPARISONS: Final = {
    "lighter": ("bodies", "body", False),
    "fuller": ("bodies", "body", True),
    "drier": ("sweetness", "sweetness", False),
    "sweeter": ("sweetness", "sweetness", True),
}
"""The field of a search and the fact of a wine that a cue is about, and if it wants more of it."""
KINDS: Final = ("styles", "colours", "grapes", "countries", "regions")

Exchange = tuple[str, tuple[str, ...]]
"""A message of the person, and the ids of the wines that the answer to it showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Hold the wines shown last, which a message may refer to, and the ids of all shown."""

    shown: tuple[Wine, ...] = ()
    seen: tuple[str, ...] = ()

    def meant(self, request: Request) -> tuple[Wine, ...]:
        """Return the wines shown that a message points at by their numbers."""
        count = len(self.shown)
        places = (number - 1 if number > 0 else count + number for number in request.ordinals)
        return tuple(self.shown[place] for place in places if 0 <= place < count)


def get_exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Return what was said in a conversation, each message with the wines shown for it."""
    found: list[Exchange] = []
    for message in messages:
        content = str(message.get("content") or "")
        if message.get("role") == "user":
            found.append((content, ()))
        elif found and (shown := message.get("wine_ids")):
            found[-1] = (found[-1][0], shown)
    return found


def merge_exchanges(
    exchanges: Sequence[Exchange], wines: Mapping[str, Wine], default: str
) -> tuple[Request, Context]:
    """Return what the last message asks for, with what still counts of those before it."""
    merged, context, current = Request(language=default), Context(), Context()
    for text, ids in exchanges[-LAST - 1 :]:
        new, current = read_request(text, merged.language), context
        if not new.is_question:
            merged = merge(merged, new, context)
        merged = replace(merged, text=text, language=new.language, is_question=new.is_question)
        if ids:
            shown = tuple(wines[wine_id] for wine_id in ids if wine_id in wines)
            context = Context(shown=shown, seen=tuple(dict.fromkeys((*context.seen, *ids))))
    return merged, current


def merge(before: Request, new: Request, context: Context) -> Request:
    """Return `new` with what it leaves open as it was `before`; a new dish starts anew."""
    starts_anew = bool(new.dishes) and not new.ordinals
    filters = dict(new.filters)
    for name, values in before.filters.items():
        field = name.removeprefix(WITHOUT)
        if starts_anew and field != "allergens":
            continue
        if field != name:
            left = [value for value in values if value not in new.values(field)]
            filters |= drop_empty({name: [*left, *new.values(name)]})
        elif not _is_replaced(name, new):
            filters[name] = values
    return compared(replace(new, filters=filters, dishes=new.dishes or before.dishes), context)


def _is_replaced(name: str, new: Request) -> bool:
    """Return whether a message leaves no room for a filter that there was before.

    Another kind of wine replaces the grape and the place, and another place the place.
    """
    named = new.wanted.keys() & set(KINDS)
    if name in ("countries", "regions"):
        return bool(named - {"colours"})
    if name in ("grapes", "styles", "colours"):
        return bool(named - {"countries", "regions"})
    is_priced = name in {*PRICE, "order"} and bool(PRICE & new.filters.keys())
    return is_priced or name in new.filters


def compared(request: Request, context: Context) -> Request:
    """Return a request with what "cheaper" or "lighter" means beside the wines that were shown."""
    wines = context.meant(request) or context.shown
    priced = [wine for wine in wines if wine.price is not None]
    priced.sort(key=lambda wine: wine.price_in_euros or 0)
    if priced and "cheaper" in request.cues:
        high = max(round((priced[0].price or 0) - CENT, 2), 0)
        request = _priced(request, max_price=high, currency=priced[0].currency)
    if priced and "dearer" in request.cues:
        low = round((priced[-1].price or 0) + CENT, 2)
        request = _priced(request, min_price=low, currency=priced[-1].currency)
    for cue in sorted(request.cues & COMPARISONS.keys()):
        field, fact, goes_up = COMPARISONS[cue]
        scale = SCALES[field]
        known = [step for wine in wines if (step := getattr(wine, fact)) is not None]
        places = [scale.index(step) for step in known] or [len(scale) // 2]
        steps = scale[max(places) + 1 :] if goes_up else scale[: min(places)]
        ends = scale[-1:] if goes_up else scale[:1]
        request = replace(request, filters={**request.filters, field: tuple(steps or ends)})
    return request


def _priced(request: Request, **price: Any) -> Request:
    """Return a request for this price alone."""
    kept = {name: request.filters[name] for name in request.filters.keys() - PRICE - {"order"}}
    return replace(request, filters=kept | price)

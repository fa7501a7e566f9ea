"""What a message can ask about the wines shown last, and how that changes the search.

Most follow-ups have a button below an answer. A button sends a sentence as if the user had written
it. A model answers this sentence. Without a model, the sentence is recognized and changes filters,
and so does a short message in the user's own words, such as "and something cheaper?". The message
is stored in the conversation like any other, so later messages build on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from math import ceil, floor
from typing import Final

from agent.fallback.wording import get_price_currency
from agent.i18n import languages, translate, translate_into
from agent.query_reading.prices import PRICE_FIELDS, UPPER_LIMITS
from agent.query_reading.request import (
    SCALES,
    STEPS_IF_NOT_SWEET,
    Request,
    read_request,
)
from agent.sommelier.conversion import convert_roughly
from agent.sommelier.vocabulary import Currency
from agent.sommelier.wine import Wine
from agent.text import pattern, split_words

MAX_PRICE_FACTOR: Final = 2
"""A wine that should be better costs at most twice the dearest wine shown."""
SWEETER_STEPS: Final = 2
"""A wine that should be sweeter is at most two steps sweeter: off-dry or medium after dry."""
SAME_AS_LIGHTER: Final = {"full": "medium_full", "medium_light": "light"}
"""The bodies that are shown by the same name as a lighter one: "full-bodied" for both.

A wine that should be lighter has another name.
"""
SAME_AS_FULLER: Final = {"medium_full": "full", "light": "medium_light"}
MAX_SENTENCE_CHARS: Final = 60
"""Only the beginning of a message is compared. All sentences of buttons are shorter than this."""
MAX_UNREAD_WORDS: Final = 2
"""A message with more words that are in no table says more than a follow-up."""
_CLAUSE_END: Final = pattern(r"[.,;:!?¡¿()\n…–—]+")


class FollowUp(StrEnum):
    """The wishes that are about the wines shown last. Each is also a value of `comparisons`."""

    CHEAPER = "cheaper"
    DEARER = "dearer"
    LIGHTER = "lighter"
    FULLER = "fuller"
    DRIER = "drier"
    SWEETER = "sweeter"
    LIKE = "like"
    WHY = "why"


BUTTONS: Final = (
    FollowUp.CHEAPER,
    FollowUp.LIGHTER,
    FollowUp.FULLER,
    FollowUp.DRIER,
    FollowUp.LIKE,
    FollowUp.WHY,
)
"""The follow-ups that have a button.

In the catalogues, `wish_…` is the sentence of a button, and `next_…` is its label.
"""


def find_button(text: str) -> FollowUp | None:
    """Return the follow-up whose button has the text as its sentence or label, or None."""
    simplified = _simplify(text)
    # First compare with the wording of the user's country, such as "Por quê?" in Brazil.
    for follow_up in BUTTONS:
        for name in (f"wish_{follow_up}", f"next_{follow_up}"):
            wording = translate(name)
            if simplified == _simplify(wording):
                return follow_up
    return _follow_ups_by_sentence().get(simplified)


@cache
def _follow_ups_by_sentence() -> Mapping[str, FollowUp]:
    by_sentence: dict[str, FollowUp] = {}
    for language in languages():
        for follow_up in BUTTONS:
            for name in (f"wish_{follow_up}", f"next_{follow_up}"):
                wording = translate_into(language, name)
                by_sentence[_simplify(wording)] = follow_up
    return by_sentence


def _simplify(text: str) -> str:
    """Return the words of a text without punctuation: "why ?" is the same as "Why?"."""
    beginning = text[:MAX_SENTENCE_CHARS]
    return " ".join(split_words(beginning))


def get_comparisons(request: Request) -> tuple[FollowUp, ...]:
    """Return how a message compares what it asks for with the wines shown last.

    A message with a dish begins a new wish: "something lighter for the fish" compares nothing. Of a
    question or a longer message, only a clause that says nothing else counts: "you stupid robot,
    this is crap, cheaper!".
    """
    if request.dishes:
        return ()
    is_short = len(request.unread_words) <= MAX_UNREAD_WORDS
    names = request.comparisons
    if request.is_question or not is_short:
        names = _list_clear_comparisons(request)
    return tuple(FollowUp(name) for name in names)


def _list_clear_comparisons(request: Request) -> tuple[str, ...]:
    """Return the comparisons in the first clause that has one and no word of unknown meaning."""
    if not request.comparisons:
        return ()
    for clause in _CLAUSE_END.split(request.text):
        part = read_request(clause, request.language)
        is_clear = not part.is_question and not part.unread_words
        if part.comparisons and is_clear:
            return part.comparisons
    return ()


def apply_follow_up(
    request: Request,
    follow_up: FollowUp,
    shown: Sequence[Wine],
) -> Request:
    """Return the request with the filter of a follow-up, compared with wines that were shown."""
    bodies = [str(wine.body) for wine in shown if wine.body]
    sweetness = [wine.sweetness for wine in shown if wine.sweetness]
    match follow_up:
        case FollowUp.CHEAPER:
            return _cheaper(request, shown)
        case FollowUp.DEARER:
            return _dearer(request, shown)
        case FollowUp.LIGHTER:
            bodies = [SAME_AS_LIGHTER.get(body, body) for body in bodies]
            lighter = _lower_steps("bodies", bodies)
            return _with_filter(request, "bodies", lighter)
        case FollowUp.FULLER:
            bodies = [SAME_AS_FULLER.get(body, body) for body in bodies]
            fuller = _higher_steps("bodies", bodies)
            return _with_filter(request, "bodies", fuller)
        case FollowUp.DRIER:
            drier = _drier_steps(sweetness)
            return _with_filter(request, "sweetness", drier)
        case FollowUp.SWEETER:
            sweeter = _higher_steps("sweetness", sweetness)
            return _with_filter(request, "sweetness", sweeter[:SWEETER_STEPS])
        case FollowUp.LIKE | FollowUp.WHY:
            return request


def find_cheapest(wines: Sequence[Wine]) -> Wine | None:
    """Return the wine with the lowest price, or None if no wine has a price."""
    priced = [wine for wine in wines if wine.price is not None]
    return min(priced, key=_price_in_euros, default=None)


def _price_in_euros(wine: Wine) -> float:
    return wine.price_in_euros or 0


def _cheaper(request: Request, shown: Sequence[Wine]) -> Request:
    """Return the request with a limit below the lowest price that was shown.

    The limit replaces the prices of the request, unless its own limit is still lower.
    """
    cheapest = find_cheapest(shown)
    if cheapest is None:
        return request
    currency = get_price_currency(request) or cheapest.currency
    lowest_shown = _get_price_in(currency, cheapest)
    limits = {"below": lowest_shown}
    filters = request.filters
    own_limits = {name: filters[name] for name in UPPER_LIMITS if name in filters}
    own_limit = min(own_limits.values(), default=lowest_shown)
    if own_limit < lowest_shown:
        limits = own_limits
    return _with_prices(request, {**limits, "currency": currency})


def _get_price_in(currency: Currency, wine: Wine) -> float:
    """Return the price of a wine in a currency, as it is shown to the user."""
    price = wine.price or 0
    if wine.currency is currency:
        return price
    return convert_roughly(price, wine.currency, currency)


def _dearer(request: Request, shown: Sequence[Wine]) -> Request:
    """Return the request with limits above the highest price that was shown, in whole amounts."""
    priced = [wine for wine in shown if wine.price is not None]
    if not priced:
        return request
    dearest = max(priced, key=_price_in_euros)
    currency = get_price_currency(request) or dearest.currency
    price = _get_price_in(currency, dearest)
    limits = {
        "min_price": floor(price) + 1,
        "max_price": ceil(price * MAX_PRICE_FACTOR),
        "currency": currency,
    }
    return _with_prices(request, limits)


def _with_prices(request: Request, limits: Mapping[str, object]) -> Request:
    """Return the request with these prices in place of its own, and without an order by price."""
    filters = dict(request.filters)
    for name in (*PRICE_FIELDS, "order"):
        filters.pop(name, None)
    filters.update(limits)
    return replace(request, filters=filters, is_price_approximate=False)


def _drier_steps(shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of the sweetness that are drier than those that were shown.

    Beside a dry wine, a sweeter one is meant: "drier" asks for dry, not for bone-dry.
    """
    not_dry = [step for step in shown if step not in STEPS_IF_NOT_SWEET]
    compared = not_dry or shown
    return _lower_steps("sweetness", compared)


def _lower_steps(scale_name: str, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a scale below all that were shown, or else the lowest step."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    shown_steps = map(scale.index, shown)
    lowest = min(shown_steps, default=middle)
    lower = scale[:lowest]
    if not lower:
        lower = scale[:1]
    return tuple(lower)


def _higher_steps(scale_name: str, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a scale above all that were shown, or else the highest step."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    shown_steps = map(scale.index, shown)
    highest = max(shown_steps, default=middle)
    higher = scale[highest + 1 :]
    if not higher:
        higher = scale[-1:]
    return tuple(higher)


def _with_filter(
    request: Request,
    name: str,
    values: Sequence[str],
) -> Request:
    filters = {**request.filters, name: values}
    return replace(request, filters=filters)

"""The buttons below an answer, and what each changes in the search that made the answer.

A button sends its sentence as if the user had written it, which is what a model answers. Without a
model the sentence stands for filters. It is found again in the stored conversation, so that later
messages build on it; beside it only the label of the button is understood.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Final

from agent.i18n import languages, translate, translate_into
from agent.query_reading.prices import PRICE_FIELDS
from agent.query_reading.request import SCALES, Request
from agent.sommelier.wine import Wine
from agent.text import split_words

CENT: Final = 0.01
MAX_SENTENCE_CHARS: Final = 60
"""More than the longest of these sentences has."""


class FollowUp(StrEnum):
    """Names what a button below an answer asks for: `wish_…` are their sentences."""

    CHEAPER = "cheaper"
    LIGHTER = "lighter"
    FULLER = "fuller"
    DRIER = "drier"
    LIKE = "like"
    WHY = "why"


def find_follow_up(text: str) -> FollowUp | None:
    """Return the follow-up whose sentence, or whose label of a button, the text is."""
    simplified = _simplify(text)
    for follow_up in FollowUp:  # as the user's country says it: "Por quê?" in Brazil
        for name in (f"wish_{follow_up}", f"next_{follow_up}"):
            if simplified == _simplify(translate(name)):
                return follow_up
    return _follow_ups_by_sentence().get(simplified)


@cache
def _follow_ups_by_sentence() -> Mapping[str, FollowUp]:
    by_sentence: dict[str, FollowUp] = {}
    for language in languages():
        for follow_up in FollowUp:
            for name in (f"wish_{follow_up}", f"next_{follow_up}"):
                by_sentence[_simplify(translate_into(language, name))] = follow_up
    return by_sentence


def _simplify(text: str) -> str:
    """Return the words of a text: who types "why ?" means the button."""
    return " ".join(split_words(text[:MAX_SENTENCE_CHARS]))


def apply_follow_up(
    request: Request, follow_up: FollowUp, shown: Sequence[Wine]
) -> Request:
    """Return the request with filters that compare with the wines shown last."""
    match follow_up:
        case FollowUp.CHEAPER:
            return _cheaper(request, shown)
        case FollowUp.LIGHTER:
            bodies = [wine.body for wine in shown if wine.body]
            return _with_filter(request, "bodies", _lower_steps("bodies", bodies))
        case FollowUp.FULLER:
            bodies = [wine.body for wine in shown if wine.body]
            return _with_filter(request, "bodies", _higher_steps("bodies", bodies))
        case FollowUp.DRIER:
            sweetness = [wine.sweetness for wine in shown if wine.sweetness]
            drier = _lower_steps("sweetness", sweetness)
            return _with_filter(request, "sweetness", drier)
        case FollowUp.LIKE | FollowUp.WHY:
            return request


def _cheaper(request: Request, shown: Sequence[Wine]) -> Request:
    """Return the request with a price below that of all wines shown, instead of its own price."""
    priced = [wine for wine in shown if wine.price is not None]
    if not priced:
        return request
    cheapest = min(priced, key=lambda wine: wine.price_in_euros or 0)
    lowest_price = cheapest.price or 0
    filters = dict(request.filters)
    for name in (*PRICE_FIELDS, "order"):
        filters.pop(name, None)
    filters["max_price"] = max(round(lowest_price - CENT, 2), 0)
    filters["currency"] = cheapest.currency
    return replace(request, filters=filters)


def _lower_steps(scale_name: str, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a scale below all shown ones, or its lowest one."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    lowest = min(map(scale.index, shown), default=middle)
    return tuple(scale[:lowest] or scale[:1])


def _higher_steps(scale_name: str, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a scale above all shown ones, or its highest one."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    highest = max(map(scale.index, shown), default=middle)
    return tuple(scale[highest + 1 :] or scale[-1:])


def _with_filter(request: Request, name: str, values: Sequence[str]) -> Request:
    return replace(request, filters={**request.filters, name: values})

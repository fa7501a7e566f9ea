"""The buttons below an answer, and what each changes in the search that made the answer.

A button sends a sentence as if the user had written it. A model answers this sentence. Without a
model, the sentence is recognized and changes filters. It is stored in the conversation like any
other message, so later messages build on it. A user may also type the label of the button, but no
other wording is recognized.
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
"""Only the beginning of a message is compared. All sentences of buttons are shorter than this."""


class FollowUp(StrEnum):
    """The wishes of the buttons below an answer.

    In the catalogues, `wish_…` is the sentence of a button, and `next_…` is its label.
    """

    CHEAPER = "cheaper"
    LIGHTER = "lighter"
    FULLER = "fuller"
    DRIER = "drier"
    LIKE = "like"
    WHY = "why"


def find_follow_up(text: str) -> FollowUp | None:
    """Return the follow-up whose sentence or label is the text, or None."""
    simplified = _simplify(text)
    # First compare with the wording of the user's country, such as "Por quê?" in Brazil.
    for follow_up in FollowUp:
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
    """Return the words of a text without punctuation: "why ?" is the same as "Why?"."""
    return " ".join(split_words(text[:MAX_SENTENCE_CHARS]))


def apply_follow_up(
    request: Request, follow_up: FollowUp, shown: Sequence[Wine]
) -> Request:
    """Return the request with the filter of a follow-up, compared with the wines shown last."""
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
    """Return the request with a limit below the lowest price that was shown.

    The limit replaces the prices of the request.
    """
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
    """Return the steps of a scale below all that were shown, or else the lowest step."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    lowest = min(map(scale.index, shown), default=middle)
    return tuple(scale[:lowest] or scale[:1])


def _higher_steps(scale_name: str, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a scale above all that were shown, or else the highest step."""
    scale = SCALES[scale_name]
    middle = len(scale) // 2
    highest = max(map(scale.index, shown), default=middle)
    return tuple(scale[highest + 1 :] or scale[-1:])


def _with_filter(request: Request, name: str, values: Sequence[str]) -> Request:
    return replace(request, filters={**request.filters, name: values})

"""Wines that were shown and are pointed at: "the second one", "der letzte". Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agent.house_sommelier.prices import amounts
from agent.sommelier.money import Currency


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


_ORDINALS: Final = tuple(
    _words(
        rf"(?:{words}|(?:#|no\.?|nr\.?|number|nummer|numero) ?{number})"
        r"(?! (?:course|date|time|of|plate|gang|plat|plato|piatto|gerecht|keer|mal|fois|vez|volta))"
    )
    for number, words in enumerate(
        (
            "first|1st|number one|erste[nrms]?|premiere?|primer[oa]?|prim[oa]|eerste|nummer een",
            "second|2nd|number two|zweite[nrms]?|deuxieme|segund[oa]|second[oae]|tweede|2e",
            "third|3rd|number three|dritte[nrms]?|troisieme|tercer[oa]?|terz[oa]|derde|3e",
            "fourth|4th|vierte[nrms]?|quatrieme|cuart[oa]|quart[oa]|vierde",
            "fifth|5th|funfte[nrms]?|cinquieme|quint[oa]|vijfde",
            "sixth|6th|sechste[nrms]?|sixieme|sext[oa]|sest[oa]|zesde",
        ),
        start=1,
    )
)
_LAST: Final = _words(
    r"the last(?: one| wine)?|(?:der|den|dem|vom|zum) letzten?|(?:le|du|au) dernier"
    r"|(?:el|del|al) ultimo|(?:l|dell|all).ultimo|de laatste"
)
_ALIKE: Final = _words(
    r"like (?:the|this|that|these|those|it)|similar|alike|ahnlich\w*|wie (?:der|den|die)"
    r"|comme (?:le|la)|semblable|parecid[oa]s?|como (?:el|la)|simil[ei]|come (?:il|la)"
    r"|zoals (?:de|die|deze)|vergelijkbaar\w*|lijkt op|soortgelijk\w*"
)
_MORE_ABOUT: Final = _words(
    r"tell me more|more about|more info\w*|more details?|details?|mehr (?:uber|zu|dazu)"
    r"|erzahl\w*|en savoir plus|plus d.info\w*|(?:parle|dis)\w*.moi"
    r"|mas (?:sobre|informacion|detalles)"
    r"|cuentame|hablame|dimmi di piu|raccontami|parlami|piu informazioni|di piu su"
    r"|vertel\w*|meer (?:over|weten|informatie|info)"
)
_SECTION: Final = re.compile(r"(?m)^\*\*[0-9]+\. ")


def pointed_at(text: str, shown: Sequence[str]) -> str | None:
    """The id of the wine that "the second one" or "the last" means; `text` is folded."""
    for wine_id, ordinal in zip(shown, _ORDINALS, strict=False):
        if ordinal.search(text):
            return wine_id
    return shown[-1] if shown and _LAST.search(text) else None


def points_beyond(text: str, shown: Sequence[str]) -> bool:
    """Whether a folded text means "the fourth one" where only three were shown."""
    return any(ordinal.search(text) for ordinal in _ORDINALS[len(shown) :])


def wants_alike(text: str) -> bool:
    """Whether a folded text asks for something like a shown wine."""
    return _ALIKE.search(text) is not None


def wants_to_know_more(text: str) -> bool:
    """Whether a folded text asks for details."""
    return _MORE_ABOUT.search(text) is not None


def prices_shown(reply: str, shown: Sequence[str]) -> Mapping[str, tuple[float, Currency]]:
    """The price of each shown wine, as far as a reply tells it.

    A wine's price is the first amount below its name; a reply without such sections counts if it
    has just one amount for each wine.
    """
    sections = _SECTION.split(reply)[1:]
    if sections:
        found = zip(shown, map(amounts, sections), strict=False)
        return {wine_id: prices[0] for wine_id, prices in found if prices}
    prices = amounts(reply)
    return dict(zip(shown, prices, strict=True)) if len(prices) == len(shown) else {}

"""Requests that refer back: "something cheaper", "and a white one?", "with fish instead". Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.house_sommelier.conversation import Conversation, Exchange
from agent.house_sommelier.lexicon import Language, fold
from agent.house_sommelier.prices import amounts
from agent.house_sommelier.understanding import Understood, understand
from agent.money import Currency
from agent.wine import WineQuery

_PRICE: Final = frozenset({"min_price", "max_price", "currency"})
_ALCOHOL: Final = frozenset({"min_abv", "max_abv"})
_KIND: Final = frozenset({"styles", "colours", "grapes"})
_PLACE: Final = frozenset({"countries", "regions"})
_GROUPS: Final = (_PRICE, _ALCOHOL, _KIND, _PLACE)
_REFINING: Final = _PRICE | _ALCOHOL | {"sweetness", "bodies", "without_allergens"}
_OF_A_REGION: Final = frozenset({"sparkling", "fortified"})
_REFINING_WORDS: Final = 8
_PLACE_WORDS: Final = 3
_REFERS_BACK: Final = re.compile(
    r"^(?:ok(?:ay)?,? |yes,? |no,? )?(?:and|but|or|also|what about|how about|und|aber|oder|et|mais"
    r"|y|pero|e|ma)\b|\b(?:instead|same|rather|make it|stattdessen|lieber|plutot|mejor"
    r"|piuttosto|invece)\b"
    r"|\bones?\b(?!\s+(?:bottle|glass|wine|of|person))"
)
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_CHEAP_EUR: Final = 12.0
_DEAR_EUR: Final = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """The current message with what it refers back to.

    `query` is what to search for now, `shown` the wines the person last saw, in order, `stated`
    the numbers the person wrote so far.
    """

    text: str
    said: Understood
    query: WineQuery
    shown: tuple[str, ...]
    language: Language
    stated: frozenset[float] = frozenset()


def read_request(conversation: Conversation) -> Request:
    """The last message of a conversation, understood in the light of the earlier ones."""
    query, shown, language = WineQuery(), tuple[str, ...](), None
    previous: Exchange | None = None
    for exchange in conversation.before:
        said = understand(exchange.request)
        query = _in_context(exchange.request, said, query, previous)
        shown = exchange.wine_ids or shown
        language = said.language or language
        previous = exchange
    said = understand(conversation.request)
    return Request(
        text=conversation.request,
        said=said,
        query=_in_context(conversation.request, said, query, previous),
        shown=shown,
        language=said.language or language or "en",
        stated=_numbers(conversation),
    )


def _numbers(conversation: Conversation) -> frozenset[float]:
    texts = (conversation.request, *(exchange.request for exchange in conversation.before))
    found = (number for text in texts for number in _NUMBER.findall(text))
    return frozenset(float(number.replace(",", ".")) for number in found)


def _in_context(
    text: str, said: Understood, query: WineQuery, previous: Exchange | None
) -> WineQuery:
    if not said.filters and not said.cues:
        return query
    if not _refers_back(text, said, previous):
        query = WineQuery()
    return _with_relative_price(_merged(query, said.query), said, previous, query)


def _refers_back(text: str, said: Understood, previous: Exchange | None) -> bool:
    if previous is None:
        return False
    words = len(text.split())
    only_refines = said.filters <= _REFINING and words <= _REFINING_WORDS
    only_moves = said.filters <= _PLACE and words <= _PLACE_WORDS
    cue = bool(said.cues) or _REFERS_BACK.search(fold(text.strip())) is not None
    return cue or only_refines or only_moves


def _merged(old: WineQuery, new: WineQuery) -> WineQuery:
    """`new`, with what `old` says about other things.

    A new colour forgets the old grape, and the region if that came with "champagne" or "port".
    """
    set_now = frozenset(new.model_fields_set)
    replaced = set_now.union(*(group for group in _GROUPS if group & set_now))
    if set_now & (_KIND | {"foods"}):
        replaced |= {"text"}
    if "styles" in set_now and _OF_A_REGION & set(old.styles) - set(new.styles):
        replaced |= {"regions"}
    kept = {name: getattr(old, name) for name in old.model_fields_set - replaced}
    return WineQuery.model_validate({**kept, **_values(new)})


def _values(query: WineQuery) -> dict[str, object]:
    return {name: getattr(query, name) for name in query.model_fields_set}


def _with_relative_price(
    query: WineQuery, said: Understood, previous: Exchange | None, old: WineQuery
) -> WineQuery:
    """A "cheaper" is below the cheapest wine shown, a "dearer" above the limit or the dearest."""
    if said.filters & _PRICE or not said.cues & {"cheaper", "dearer"}:
        return query
    shown = amounts(previous.reply) if previous else []
    currency = shown[-1][1] if shown else old.currency
    prices = [amount for amount, used in shown if used == currency]
    limits = _cheaper(prices, old) if "cheaper" in said.cues else _dearer(prices, old, currency)
    kept = {name: value for name, value in _values(query).items() if name not in _PRICE}
    return WineQuery.model_validate({**kept, **limits, **_unless_euros(currency)})


def _cheaper(prices: Sequence[float], old: WineQuery) -> dict[str, object]:
    if prices:
        return {"max_price": float(math.floor(min(prices) * 0.9))}
    limit = _CHEAP_EUR if old.max_price is None else float(math.floor(old.max_price * 0.7))
    return {"max_price": limit}


def _dearer(prices: Sequence[float], old: WineQuery, currency: Currency) -> dict[str, object]:
    if old.max_price is not None and old.currency == currency:
        return {"min_price": old.max_price}
    return {"min_price": float(math.ceil(max(prices))) if prices else _DEAR_EUR}


def _unless_euros(currency: Currency) -> dict[str, object]:
    return {} if currency is Currency.EUR else {"currency": currency}

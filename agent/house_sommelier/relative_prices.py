"""Prices that refer to wines already shown: "cheaper than the second", "something dearer". Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.house_sommelier.pointing import prices_shown
from agent.house_sommelier.prices import amounts
from agent.house_sommelier.understanding import Understood
from agent.sommelier.money import Currency
from agent.sommelier.wine import WineQuery

PRICE: Final = frozenset({"min_price", "max_price", "currency"})
RELATIVE: Final = frozenset({"cheaper", "dearer"})
_CHEAP_EUR: Final = 12.0
_DEAR_EUR: Final = 30.0
_LITTLE: Final = 10.0
_CENT: Final = 0.01
_NOTICEABLY: Final = 0.9


@dataclass(frozen=True, slots=True)
class Shown:
    """The last reply, the wines it showed, and the one that is pointed at."""

    reply: str
    wine_ids: tuple[str, ...]
    pointed: str | None = None


def with_relative_price(
    query: WineQuery, said: Understood, shown: Shown, old: WineQuery
) -> WineQuery:
    """`query` with the limit that "cheaper" or "dearer" means.

    "Cheaper" is below the wine that is pointed at, or else below the cheapest shown; "dearer" is
    above that wine, or else above the limit of the `old` query or the dearest.
    """
    if said.filters & PRICE or not said.cues & RELATIVE:
        return query
    is_cheaper = "cheaper" in said.cues
    known = prices_shown(shown.reply, shown.wine_ids)
    if shown.pointed is not None and shown.pointed in known:
        amount, currency = known[shown.pointed]
        return _limited(query, _below(amount) if is_cheaper else _above(amount), currency)
    priced = list(known.values()) or amounts(shown.reply)
    currency = priced[-1][1] if priced else old.currency
    prices = [amount for amount, used in priced if used == currency]
    limits = _cheaper(prices, old) if is_cheaper else _dearer(prices, old, currency)
    return _limited(query, limits, currency)


def _limited(query: WineQuery, limits: Mapping[str, float], currency: Currency) -> WineQuery:
    kept = {name: getattr(query, name) for name in query.model_fields_set if name not in PRICE}
    named = {} if currency is Currency.EUR else {"currency": currency}
    return WineQuery.model_validate({**kept, **limits, **named})


def _below(amount: float) -> dict[str, float]:
    """Noticeably below an amount, or a cent where little is left."""
    limit = math.floor(amount * _NOTICEABLY) if amount >= _LITTLE else amount - _CENT
    return {"max_price": max(0.0, round(float(limit), 2))}


def _above(amount: float) -> dict[str, float]:
    return {"min_price": float(math.floor(amount) + 1)}


def _cheaper(prices: Sequence[float], old: WineQuery) -> dict[str, float]:
    if prices:
        return _below(min(prices))
    limit = _CHEAP_EUR if old.max_price is None else float(math.floor(old.max_price * 0.7))
    return {"max_price": limit}


def _dearer(prices: Sequence[float], old: WineQuery, currency: Currency) -> dict[str, float]:
    if old.max_price is not None and old.currency == currency:
        return {"min_price": old.max_price}
    return {"min_price": float(math.ceil(max(prices))) if prices else _DEAR_EUR}

"""Prices in the currency that the guest named: `€8.90 (≈ 38 zł)`.

The rates are the rounded ones of `currencies.toml`, which tell a guest roughly how much a price is.
The price of the wine in its own currency is the one that holds.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from agent.formatting import format_money
from agent.query_reading.request import read_request
from agent.sommelier.vocabulary import Currency, convert

MAX_READ_CHARS: Final = 1_000
COARSE_FROM: Final = 1_000
"""A converted amount of at least this is rounded to tens: `≈ ¥2,070`."""


def find_named_currency(user_texts: Sequence[str]) -> Currency | None:
    """Return the currency of the newest text that names an amount with one, or None."""
    for text in reversed(user_texts):
        currency = _read_currency(text[:MAX_READ_CHARS])
        if currency is not None:
            return currency
    return None


def format_converted(amount: float, source: Currency, target: Currency | None) -> str:
    """Return an amount in another currency in brackets: ` (≈ 38 zł)`.

    Return "" if there is no other currency.
    """
    if target is None or target is source:
        return ""
    converted = convert(amount, source, target)
    digits = 0
    if converted >= COARSE_FROM:
        digits = -1
    rounded = round(converted, digits)
    return f" (≈ {format_money(rounded, target)})"


@lru_cache(256)  # the drafts of an answer read the same messages
def _read_currency(text: str) -> Currency | None:
    name = read_request(text).filters.get("currency")
    return Currency.__members__.get(str(name))

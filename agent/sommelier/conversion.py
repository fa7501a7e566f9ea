"""Show prices also in the currency that the guest named: `€8.90 (≈ 38 zł)`.

The rates are the rounded ones of `currencies.toml`. The converted prices tell a guest roughly how
much a wine costs. What the guest pays is the price of the wine in its own currency.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from agent.formatting import format_money
from agent.query_reading.request import read_request
from agent.sommelier.vocabulary import Currency, convert

MAX_READ_CHARS: Final = 1_000
"""The most characters of a message in which a currency is looked for."""
COARSE_FROM: Final = 1_000
"""The smallest converted amount that is rounded to tens: `≈ ¥2,070`."""


def find_named_currency(user_texts: Sequence[str]) -> Currency | None:
    """Return the currency of the newest text that names an amount with one, or None."""
    for text in reversed(user_texts):
        currency = _read_currency(text[:MAX_READ_CHARS])
        if currency is not None:
            return currency
    return None


def format_converted(
    amount: float,
    source: Currency,
    target: Currency | None,
) -> str:
    """Return an amount in another currency in brackets: ` (≈ 38 zł)`.

    Return "" if there is no other currency.
    """
    if target is None or target is source:
        return ""
    money = format_money(convert_roughly(amount, source, target), target)
    return f" (≈ {money})"


def convert_roughly(
    amount: float,
    source: Currency,
    target: Currency,
) -> float:
    """Return an amount in another currency, in the rounded numbers that users are shown."""
    converted = convert(amount, source, target)
    digits = 0
    if converted >= COARSE_FROM:
        digits = -1  # to tens
    return round(converted, digits)


@lru_cache(256)  # the drafts of an answer read the same messages
def _read_currency(text: str) -> Currency | None:
    """Return the currency that a text names, or None."""
    request = read_request(text)
    name = str(request.filters.get("currency"))
    return Currency.__members__.get(name)

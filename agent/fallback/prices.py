"""Read the price of a bottle: an amount with a currency, or with a word that limits it.

Each phrase or word of a message is one sign, and a price is a pattern of these signs.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from agent.fallback.words import Span, Token
from agent.numerals import value
from agent.text import pattern

MOST: Final = 100_000
YEARS: Final = range(1900, 2101)
AROUND: Final = 0.7, 1.3
"""The limits of an approximate price, as factors."""
BETWEEN: Final = frozenset(
    "d de di of van the a an i ai le la les l los las der die den das dem il lo is my o um uns so "
    "como tipo ist est es e c ma mein meine mi mio mijn het non mehr als que than".split()
)
"""Text that is allowed between an amount and its limit or its currency."""
LIMITS: Final = ("max", "min", "about", "between")
PRICE: Final = frozenset({"min_price", "max_price", "currency"})
UNKNOWN: Final = "?"
"""A currency that cannot be converted."""
RANGE: Final = pattern("[LBT]?_{0,2}C?N_?C?[^CN]?[JT][^CN]?C?N(?:_?C)?")
AMOUNT: Final = pattern("[LBT]?_{0,2}C?N(?:_?C)?(?:_?[AB])?K?")
"""`N` is a number, `C` a currency, `K` something else that is counted, `_` a word in between. `L`
limits the number after it, `A` the one before, `B` either; `J` joins two, `T` ("till") also limits.
"""


class _Unit(NamedTuple):
    """A phrase of the message or a word that belongs to none, and its sign."""

    sign: str
    places: range
    value: float = 0
    currency: str = ""
    limit: str = ""


def read_price(words: Sequence[Token], spans: Sequence[Span]) -> tuple[dict[str, Any], set[int]]:
    """Return the filters for the price that a message names, and the places of the words for it.

    If the currency cannot be converted, the only filter is that it is UNKNOWN.
    """
    units = list(_units(words, spans))
    signs = "".join(unit.sign for unit in units)
    for found in RANGE.finditer(signs):
        part = units[found.start() : found.end()]
        low, high = sorted(unit.value for unit in part if unit.sign == "N")
        if (code := _currency(part)) != UNKNOWN and (code or _limit(part)):
            return _filters(code, min_price=low, max_price=high), _places(part)
    price, used = dict[str, Any](), set[int]()
    for found in AMOUNT.finditer(signs):
        part = units[found.start() : found.end()]
        amount = next(unit.value for unit in part if unit.sign == "N")
        counts_other = amount in YEARS or part[-1].sign == "K"
        if (code := _currency(part)) or (_limit(part) and not counts_other):
            price |= _limited(amount, _limit(part), code)
            used |= _places(part)
    if price.get("currency") == UNKNOWN:
        return {"currency": UNKNOWN}, used
    if len(price.keys() & {"min_price", "max_price"}) == 2:
        low, high = sorted((price["min_price"], price["max_price"]))
        price |= {"min_price": low, "max_price": high}
    return price, used


def _units(words: Sequence[Token], spans: Sequence[Span]) -> Iterator[_Unit]:
    """Yield the phrases of a message and its other words, in order."""
    starts, place = {span.start: span for span in spans}, 0
    while place < len(words):
        if (span := starts.get(place)) is not None:
            yield _unit(span)
            place = span.end
            continue
        word, places = words[place], range(place, place + 1)
        worth = value(word.written) if word.written[0].isdecimal() else None
        is_number = worth is not None and worth <= MOST
        sign = "N" if is_number else "_" if word.stem in BETWEEN else "."
        yield _Unit(sign, places, worth or 0)
        place += 1


def _unit(span: Span) -> _Unit:
    if numbers := span.values("number"):
        number, _, code = numbers[0].partition(" ")
        return _Unit("N", span.places, float(number), code)
    if code := next(iter(span.values("currency")), UNKNOWN if span.has("unconverted") else ""):
        return _Unit("C", span.places, currency=code)
    if span.has("counted") or span.has("percent"):
        return _Unit("K", span.places)
    first = next((limit for limit in LIMITS if span.has(limit)), "")
    behind = next((limit for limit in LIMITS if span.has(f"{limit}_after")), "")
    sign = "B" if first and behind else "L" if first else "A" if behind else "."
    if span.has("joined"):
        sign = "T" if first else "J"
    return _Unit(sign, span.places, limit=first or behind)


def _currency(part: Sequence[_Unit]) -> str:
    return next((unit.currency for unit in part if unit.currency), "")


def _limit(part: Sequence[_Unit]) -> str:
    """Return the limit, the last if there are two: "around 120 at most"."""
    return next((unit.limit for unit in reversed(part) if unit.limit), "")


def _places(part: Sequence[_Unit]) -> set[int]:
    return {place for unit in part for place in unit.places}


def _limited(amount: float, limit: str, code: str) -> dict[str, Any]:
    """Return the filters for an amount; without a limit it is the most."""
    if limit == "min":
        return _filters(code, min_price=amount)
    if limit == "about":
        low, high = (round(amount * part, 2) for part in AROUND)
        return _filters(code, min_price=low, max_price=high)
    return _filters(code, max_price=amount)


def _filters(code: str, **limits: float) -> dict[str, Any]:
    return {**limits, "currency": code} if code else limits

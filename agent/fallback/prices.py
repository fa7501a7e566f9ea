"""Read the price of a bottle: an amount with a currency, or with a word that limits it.

Each phrase or word of a message is one sign, and a price is a pattern of these signs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from agent.fallback.words import Span, Token
from agent.sommelier.wine import Currency
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
UNKNOWN: Final = "?"
"""A currency that cannot be converted."""
RANGE: Final = pattern("[LBT]?_{0,2}C?N_?C?[^CN]?[JT][^CN]?C?N(?:_?C)?")
AMOUNT: Final = pattern("[LBT]?_{0,2}C?N(?:_?C)?(?:_?[AB])?K?")
"""`N` is a number, `C` a currency, `K` something else that is counted, `_` a word in between. `L`
limits the number after it, `A` the one before, `B` either; `J` joins two, `T` ("till") also limits.
"""


@dataclass(frozen=True, slots=True)
class Price:
    """From how much and up to how much a bottle may cost.

    `is_unknown` says that the currency is none that can be converted.
    """

    low: float | None = None
    high: float | None = None
    currency: Currency = Currency.EUR
    is_unknown: bool = False


ANY_PRICE: Final = Price()


class _Unit(NamedTuple):
    """A phrase of the message or a word that belongs to none, and its sign."""

    sign: str
    places: range
    value: float = 0
    currency: str = ""
    limit: str = ""


def read_price(words: Sequence[Token], spans: Sequence[Span]) -> tuple[Price, set[int]]:
    """Return the price that a message names, and the places of the words that say it."""
    units = list(_units(words, spans))
    signs = "".join(unit.sign for unit in units)
    for found in RANGE.finditer(signs):
        part = units[found.start() : found.end()]
        low, high = sorted(unit.value for unit in part if unit.sign == "N")
        if (code := _currency(part)) != UNKNOWN and (code or _limit(part)):
            return _in_currency(Price(low, high), code), _places(part)
    price, used = ANY_PRICE, set[int]()
    for found in AMOUNT.finditer(signs):
        part = units[found.start() : found.end()]
        value = next(unit.value for unit in part if unit.sign == "N")
        counts_other = value in YEARS or part[-1].sign == "K"
        if (code := _currency(part)) or (_limit(part) and not counts_other):
            price = _in_currency(_limited(price, value, _limit(part)), code)
            used |= _places(part)
    if price.low is not None and price.high is not None and price.low > price.high:
        price = replace(price, low=price.high, high=price.low)
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
        value = _number(word.written)
        is_number = value is not None and value <= MOST
        sign = "N" if is_number else "_" if word.stem in BETWEEN else "."
        yield _Unit(sign, places, value or 0)
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


def _limited(price: Price, value: float, limit: str) -> Price:
    """Return a price with what an amount says of it; an amount alone is the most."""
    if limit == "min":
        return replace(price, low=value)
    if limit == "about":
        low, high = (round(value * part, 2) for part in AROUND)
        return replace(price, low=low, high=high)
    return replace(price, high=value)


def _in_currency(price: Price, code: str) -> Price:
    if code == UNKNOWN or price.is_unknown:
        return Price(is_unknown=True)
    return replace(price, currency=Currency(code)) if code else price


def _number(written: str) -> float | None:
    """Return what digits are worth, None for a word; before three of them stand thousands."""
    if not written[0].isdecimal():
        return None
    first, *rest = written.replace("'", ",").replace("’", ",").replace(".", ",").split(",")
    is_whole = all(len(part) == 3 for part in rest)
    return float(first + "".join(rest) if is_whole else f"{first}.{''.join(rest)}")

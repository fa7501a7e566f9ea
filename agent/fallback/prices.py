"""Read the price of a bottle: an amount with a currency, or with a word that limits it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from agent.fallback.words import Span, Token
from agent.sommelier.wine import Currency

MOST: Final = 100_000
YEARS: Final = range(1900, 2101)
REACH: Final = 3
"""Words between an amount and what limits it."""
AROUND: Final = 0.7, 1.3
"""The limits of an approximate price, as factors."""
BETWEEN: Final = frozenset(
    "d de di of van the a an i ai le la les l los las der die den das dem il lo is my o um uns so "
    "como tipo ist est es e c ma mein meine mi mio mijn het non mehr als que than".split()
)
"""Text that is allowed between an amount and its limit or its currency."""
LIMITS: Final = ("max", "min", "about", "between")


@dataclass(frozen=True, slots=True)
class Price:
    """From how much and up to how much a bottle may cost, and whether that was told roughly.

    `is_unknown` says that the currency is none that can be converted.
    """

    low: float | None = None
    high: float | None = None
    currency: Currency = Currency.EUR
    is_rough: bool = False
    is_unknown: bool = False


ANY_PRICE: Final = Price()


class _Amount(NamedTuple):
    """A number of the message, with its currency if it has one, "?" if that is unknown."""

    value: float
    start: int
    end: int
    currency: str = ""


def read_price(words: Sequence[Token], spans: Sequence[Span]) -> tuple[Price, set[int]]:
    """Return the price that a message names, and the places of the words that say it."""
    reader = _Reader(words, spans)
    price = reader.price()
    return (price, reader.used) if reader.used else (ANY_PRICE, set())


class _Reader:
    """Reads the amounts of one message; `used` are the places of the words that it understood."""

    def __init__(self, words: Sequence[Token], spans: Sequence[Span]) -> None:
        self.words = words
        self.at = {place: span for span in spans for place in range(span.start, span.end)}
        self.used: set[int] = set()

    def price(self) -> Price:
        """Return the price: a range, or an amount for each limit."""
        amounts = [*filter(None, map(self._amount, range(len(self.words))))]
        for first, second in pairwise(amounts):
            if self._is_range(first, second):
                self._limit(first)
                self.used.update(range(first.start, second.end))
                low, high = sorted((first.value, second.value))
                return _in_currency(Price(low, high), first.currency or second.currency)
        price = ANY_PRICE
        for amount in amounts:
            if amount.currency or not self._counts_other(amount):
                price = self._limited(price, amount)
        if price.low is not None and price.high is not None and price.low > price.high:
            price = replace(price, low=price.high, high=price.low)
        return price

    def _amount(self, place: int) -> _Amount | None:
        """Return the number at a place, in digits or words, with its currency."""
        word, span = self.words[place].written, self.at.get(place)
        said = span.values("number") if span and span.start == place else ()
        if span and said:
            number, _, code = said[0].partition(" ")
            amount = _Amount(float(number), place, span.end, code)
        elif word[0].isdecimal() and (value := _number(word)) is not None:
            amount = _Amount(value, place, place + 1)
        else:
            return None
        return self._with_currency(amount) if amount.value <= MOST else None

    def _with_currency(self, amount: _Amount) -> _Amount:
        """Add the currency that is right before an amount, or behind it."""
        if amount.currency:
            return amount
        places = [amount.end, amount.start - 1]
        if self._word(amount.end) in BETWEEN:
            places.insert(1, amount.end + 1)
        for span in filter(None, map(self.at.get, places)):
            if codes := span.values("currency") or (("?",) if span.has("unconverted") else ()):
                start, end = min(amount.start, span.start), max(amount.end, span.end)
                return _Amount(amount.value, start, end, codes[0])
        return amount

    def _word(self, place: int) -> str:
        return self.words[place].stem if 0 <= place < len(self.words) else ""

    def _counts_other(self, amount: _Amount) -> bool:
        """Return whether a number is a year, or counts bottles or people."""
        behind = self.at.get(amount.end)
        is_counted = behind is not None and (behind.has("counted") or behind.has("percent"))
        return is_counted or amount.value in YEARS

    def _is_range(self, first: _Amount, second: _Amount) -> bool:
        """Return whether two amounts are joined, and money: "20-30 €", "between 20 and 30"."""
        between = range(first.end, second.start)
        is_joined = any(self.at[at].has("joined") for at in between if at in self.at)
        if len(between) > REACH or not is_joined or "?" in (first.currency, second.currency):
            return False
        return bool(first.currency or second.currency or self._limit(first) or self._limit(second))

    def _limited(self, price: Price, amount: _Amount) -> Price:
        """Return a price with what an amount says of it; unchanged if that is nothing."""
        limit = self._limit(amount)
        if not (limit or amount.currency):
            return price
        self.used.update(range(amount.start, amount.end))
        if limit == "min":
            price = replace(price, low=amount.value)
        elif limit == "about":
            low, high = (round(amount.value * part, 2) for part in AROUND)
            price = replace(price, low=low, high=high, is_rough=True)
        else:
            price = replace(price, high=amount.value)
        return _in_currency(price, amount.currency)

    def _limit(self, amount: _Amount) -> str:
        """Return how the words around an amount limit it; empty if they do not."""
        place = amount.end + (self._word(amount.end) in BETWEEN)
        if kind := self._kind(place, "_after"):
            return kind
        for place in range(amount.start - 1, amount.start - 1 - REACH, -1):
            if (kind := self._kind(place)) or self._word(place) not in BETWEEN:
                return kind
        return ""

    def _kind(self, place: int, ending: str = "") -> str:
        """Return the limit that a phrase at a place sets, and count its words as used."""
        span = self.at.get(place)
        kind = next((kind for kind in LIMITS if span and span.has(f"{kind}{ending}")), "")
        if span and kind:
            self.used.update(range(span.start, span.end))
        return kind


def _in_currency(price: Price, code: str) -> Price:
    if code == "?" or price.is_unknown:
        return Price(is_unknown=True)
    return replace(price, currency=Currency(code)) if code else price


def _number(written: str) -> float | None:
    """Return what digits are worth; before three of them stand thousands."""
    first, *rest = written.replace("'", ",").replace("’", ",").replace(".", ",").split(",")
    is_whole = all(len(part) == 3 for part in rest)
    try:
        return float(first + "".join(rest) if is_whole else f"{first}.{''.join(rest)}")
    except ValueError:
        return None

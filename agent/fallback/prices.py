"""Read the price of a bottle: an amount with a currency, or with a word that limits it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from agent.fallback.words import Span, Token
from agent.sommelier.wine import Currency

MOST: Final = 100_000
YEARS: Final = range(1900, 2101)
REACH: Final = 3
"""Words between an amount and what limits it."""
AROUND: Final = 0.7, 1.3
"""What of a price that is told roughly the limits are."""
BETWEEN: Final = frozenset(
    "d de di of van the a an i ai le la les l los las der die den das dem il lo is my o um uns so "
    "como tipo ist est es e c ma mein meine mi mio mijn het non mehr als que than".split()
)
"""What may stand between an amount and its limit or its currency."""
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
    value: float
    start: int
    end: int
    currency: str = ""


def read_price(words: Sequence[Token], spans: Sequence[Span]) -> tuple[Price, set[int]]:
    """Return the price that a message names, and the places of the words that say it."""
    reader = _Prices(words, spans)
    amounts = [amount for amount in reader.amounts if reader.is_price(amount)]
    if not amounts:
        return ANY_PRICE, set()
    return reader.price(amounts)


class _Prices:
    """Reads the amounts of one message."""

    def __init__(self, words: Sequence[Token], spans: Sequence[Span]) -> None:
        self.words, self.spans = words, spans
        self.at = {place: span for span in spans for place in range(span.start, span.end)}
        self.used: set[int] = set()

    @cached_property
    def amounts(self) -> list[_Amount]:
        """Return the numbers of the message, in digits or words, with their currencies."""
        found: list[_Amount] = []
        for place, word in enumerate(self.words):
            span = self.at.get(place)
            number = span.values("number") if span and span.start == place else ()
            value = _number(word.written) if word.written[0].isdecimal() else None
            if number:
                said, _, code = number[0].partition(" ")
                found.append(_Amount(float(said), place, span.end if span else place, code))
            elif value is not None:
                found.append(_Amount(value, place, place + 1))
        return [self._with_currency(amount) for amount in found if amount.value <= MOST]

    @cached_property
    def _starting(self) -> dict[int, _Amount]:
        return {amount.start: amount for amount in self.amounts}

    def _with_currency(self, amount: _Amount) -> _Amount:
        if amount.currency:
            return amount
        behind = [place for place in (amount.end, amount.end + 1) if place < len(self.words)]
        if len(behind) == 2 and self.words[behind[0]].stem not in BETWEEN:
            behind = behind[:1]
        places = [*behind, amount.start - 1]
        for place in places:
            span = self.at.get(place)
            if span and (codes := span.values("currency") or (span.has("unconverted") and ("?",))):
                start, end = min(amount.start, span.start), max(amount.end, span.end)
                return amount._replace(currency=codes[0], start=start, end=end)
        return amount

    def is_price(self, amount: _Amount) -> bool:
        """Return whether an amount is money, and counts nothing else."""
        if amount.currency:
            return True
        behind = self.at.get(amount.end)
        if behind and (behind.has("counted") or behind.has("percent")):
            return False
        is_year = amount.value in YEARS
        joined = self._is_joined(amount.end)
        return not is_year and bool(self._limit(amount) or self._limit_behind(amount) or joined)

    def _is_joined(self, place: int) -> bool:
        """Return whether a range goes on from here to an amount of money: "20-30 €"."""
        span = self.at.get(place)
        if not (span and span.has("joined")):
            return False
        behind = self._starting.get(span.end)
        return behind is not None and bool(behind.currency or self._limit_behind(behind))

    def _limit(self, amount: _Amount) -> str:
        """Return how the words before an amount limit it; empty if they do not."""
        place, steps = amount.start - 1, 0
        while place >= 0 and steps < REACH:
            span = self.at.get(place)
            if span and (kind := next((kind for kind in LIMITS if span.has(kind)), "")):
                self._use(span)
                return kind
            if self.words[place].stem not in BETWEEN:
                return ""
            place, steps = place - 1, steps + 1
        return ""

    def _limit_behind(self, amount: _Amount) -> str:
        place = amount.end
        if place < len(self.words) and self.words[place].stem in BETWEEN:
            place += 1
        span = self.at.get(place)
        kinds = ("max_after", "min_after", "about_after")
        kind = next((kind for kind in kinds if span and span.has(kind)), "")
        if span and kind:
            self._use(span)
        return kind.removesuffix("_after")

    def price(self, amounts: Sequence[_Amount]) -> tuple[Price, set[int]]:
        """Return the price that these amounts name, and the places of their words."""
        for amount in amounts:
            self.used |= set(range(amount.start, amount.end))
        codes = [amount.currency for amount in amounts if amount.currency]
        if "?" in codes:
            return Price(is_unknown=True), self.used
        found = Price(currency=Currency(codes[0])) if codes else ANY_PRICE
        first = amounts[0]
        if len(amounts) > 1 and self._is_range(first, amounts[1]):
            low, high = sorted((first.value, amounts[1].value))
            return replace(found, low=low, high=high), self.used
        for amount in amounts:
            found = self._limited(found, amount)
        if found.low is not None and found.high is not None and found.low > found.high:
            found = replace(found, low=found.high, high=found.low)
        return found, self.used

    def _limited(self, price: Price, amount: _Amount) -> Price:
        behind = self._limit_behind(amount)
        match behind or self._limit(amount):
            case "min":
                return replace(price, low=amount.value)
            case "about":
                low, high = (round(amount.value * part, 2) for part in AROUND)
                return replace(price, low=low, high=high, is_rough=True)
            case _:
                return replace(price, high=amount.value)

    def _is_range(self, first: _Amount, second: _Amount) -> bool:
        between = range(first.end, second.start)
        joins = [self.at[place] for place in between if place in self.at]
        is_range = len(between) <= REACH and any(span.has("joined") for span in joins)
        if is_range:
            self._limit(first)
            self.used |= set(between)
        return is_range

    def _use(self, span: Span) -> None:
        self.used |= set(range(span.start, span.end))


def _number(written: str) -> float | None:
    """Return what digits are worth; before three of them stand thousands."""
    parts = written.replace("'", ",").replace("’", ",").replace(".", ",").split(",")
    try:
        if len(parts) > 1 and all(len(part) == 3 for part in parts[1:]):
            return float("".join(parts))
        return float(".".join([parts[0], "".join(parts[1:])]) if len(parts) > 1 else parts[0])
    except ValueError:
        return None

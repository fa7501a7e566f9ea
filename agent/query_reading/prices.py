"""Read the price that a message names: "up to £15", "20-30 €", "um die zwanzig Euro"."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, Final, NamedTuple

from agent.numerals import YEARS, find_number_words, parse_number
from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import Phrase
from agent.query_reading.tokens import Token
from agent.text import fold, pattern

UPPER_LIMITS: Final = ("max_price", "below")
"""The filters that limit a price from above. The price must not reach `below`."""
PRICE_FIELDS: Final = frozenset({"min_price", *UPPER_LIMITS, "currency"})
"""The filters of a price."""
UNKNOWN_CURRENCY: Final = "?"
"""The value that stands for any currency that cannot be converted."""
MAX_AMOUNT: Final = 100_000
APPROXIMATE_FACTORS: Final = 0.8, 1.2
"""A price of "about 20" ranges from 0.8 * 20 to 1.2 * 20."""
MIN_GIFT_PRICE: Final = 15
MIN_GIFT_CURRENCY: Final = "EUR"
"""The currency of `MIN_GIFT_PRICE`, the lowest price of a gift for which no price is named."""
BOTTLES_FOR_EACH: Final = 0.5
"""The bottles that a guest is reckoned to drink, if a price is for all bottles together."""
MODERATE_PRICE: Final = 12
"""The limit of "cheaper" if no wine was shown that it could be compared with."""
LIMIT_ROLES: Final = ("max", "below", "min", "about", "between")
RANGE: Final = pattern(
    "(?:G_?)?[LBT]?_{0,2}C?N_?C?[^CNV]?[JT][^CN]?C?N(?:_?C)?(?:_?G)?"
)
AMOUNT: Final = pattern("(?:G_?)?[LBT]?_{0,2}C?N(?:_?C)?(?:_?[AB])?K?(?:_?G)?")
"""Patterns of prices like "from 20 to 30 euros" (`LNJNC`), after one symbol replaces each part:

- `N` a number, `C` a currency, `K` a unit other than money (so the number is not a price)
- `L` a limit of the number after it, `A` of the number before it, `B` of either
- `J` joins two numbers to a range, `T` ("till") also limits the number after it
- `G` says that the price is for all bottles together: "in all"
- `V` "bought", which in German ends what was said of a price
- `_` a filler word, `.` anything else
"""


class ReadPrice(NamedTuple):
    """The price filters of a message, and the indices of the tokens that express them.

    If the currency cannot be converted, the only filter is `currency: UNKNOWN_CURRENCY`.
    """

    filters: dict[str, Any]
    indices: frozenset[int]
    bottles: int = 0
    """The number of bottles if the filters are the share of one in a price for several, or 0."""
    is_approximate: bool = False
    """Whether the filters are the limits of one amount that was said with "about"."""


class PricePart(NamedTuple):
    """A phrase, or a token outside of phrases, with its symbol in a price pattern."""

    symbol: str
    indices: range
    number: float = 0
    currency: str = ""
    limit: str = ""
    bottles_for_each: float = 0
    """How many bottles the number before this part stands for: 0.5 for each of the guests."""


def read_price(tokens: Sequence[Token], phrases: Sequence[Phrase]) -> ReadPrice:
    """Return the price of a message. If it has several prices, the last one counts.

    Single amounts are only considered if there is no range.
    """
    parts = list(_split_parts(tokens, phrases))
    symbols = "".join(part.symbol for part in parts)
    for price_pattern in (RANGE, AMOUNT):
        filters: dict[str, Any] = {}
        used: set[int] = set()
        bottles = 0
        is_approximate = False
        for match in price_pattern.finditer(symbols):
            matched = parts[match.start() : match.end()]
            price = _price_filters(matched)
            if not price:
                continue
            is_for_all = any(part.symbol == "G" for part in matched)
            if is_for_all:
                bottles = _count_bottles(parts)
                price = _share_total(price, bottles)
            is_approximate = _is_approximate(matched)
            filters = _add_price(filters, price)
            for part in matched:
                used.update(part.indices)
        if filters:
            ordered = _order_limits(filters)
            return ReadPrice(ordered, frozenset(used), bottles, is_approximate)
    return ReadPrice({}, frozenset())


def _is_approximate(parts: Sequence[PricePart]) -> bool:
    """Return whether a price is one amount with a word such as "about"."""
    if len(_list_amounts(parts)) > 1:
        return False
    return any(part.limit == "about" for part in parts)


def _add_price(
    filters: Mapping[str, Any],
    price: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the filters with those of a further price, whose upper limit replaces theirs."""
    added = dict(filters)
    if find_upper_limit(price) is not None:
        for name in UPPER_LIMITS:
            added.pop(name, None)
    added.update(price)
    return added


def find_upper_limit(filters: Mapping[str, Any]) -> float | None:
    """Return the amount that limits a price from above, or None if there is no such limit."""
    for name in UPPER_LIMITS:
        if name in filters:
            amount: float = filters[name]
            return amount
    return None


def _count_bottles(parts: Sequence[PricePart]) -> int:
    """Return how many bottles a message is about, by their number or the guests', or 0."""
    counts: list[float] = []
    for number, unit in pairwise(parts):
        if number.symbol == "N":
            counts.append(number.number * unit.bottles_for_each)
    return ceil(max(counts, default=0))


def _share_total(price: dict[str, Any], bottles: int) -> dict[str, Any]:
    """Return the limits of one bottle, from those of all bottles together.

    If nobody knows how many bottles there are, one of them may cost as much as all, or less.
    """
    shared: dict[str, Any] = {}
    for name, value in price.items():
        if name == "currency":
            shared[name] = value
        elif bottles:
            shared[name] = round(value / bottles, 2)
        elif name in UPPER_LIMITS:
            shared[name] = value
    return shared


def _order_limits(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters with the lower limit below the upper one.

    An unknown currency has no limits.
    """
    if filters.get("currency") == UNKNOWN_CURRENCY:
        return {"currency": UNKNOWN_CURRENCY}
    lowest = filters.get("min_price")
    highest = find_upper_limit(filters)
    if lowest is None or highest is None or lowest <= highest:
        return filters
    ordered = dict(filters)
    ordered.pop("below", None)
    ordered["min_price"] = highest
    ordered["max_price"] = lowest
    return ordered


def _split_parts(
    tokens: Sequence[Token], phrases: Sequence[Phrase]
) -> Iterator[PricePart]:
    """Yield the phrases of a message and the tokens outside of them, in order."""
    parts: dict[int, PricePart] = {}
    words = [fold(token.written) for token in tokens]
    for number in find_number_words(words):
        if number.value > 1:  # "a bottle" is "une bouteille", and no price of one euro
            indices = range(number.start, number.end)
            parts[number.start] = PricePart("N", indices, number.value)
    for phrase in phrases:
        parts[phrase.start] = _read_phrase(phrase)
    index = 0
    while index < len(tokens):
        part = parts.get(index)
        if part is None:
            part = _read_token(tokens[index], index)
        yield part
        index = part.indices.stop


def _read_token(token: Token, index: int) -> PricePart:
    indices = range(index, index + 1)
    if token.written[0].isdecimal():
        number = parse_number(token.written)
        if number <= MAX_AMOUNT:
            return PricePart("N", indices, number)
    if token.stem in load_grammar().price_fillers:
        return PricePart("_", indices)
    return PricePart(".", indices)


def _read_phrase(phrase: Phrase) -> PricePart:
    numbers = phrase.values("number")
    indices = phrase.indices
    if numbers:  # "20", or "20 EUR" for "Zwanziger"
        number, _, currency = numbers[0].partition(" ")
        return PricePart("N", indices, float(number), currency)
    currencies = phrase.values("currency")
    if currencies:
        return PricePart("C", indices, currency=currencies[0])
    if phrase.has_role("unknown_currency"):
        return PricePart("C", indices, currency=UNKNOWN_CURRENCY)
    if phrase.has_role("bottles"):
        return PricePart("K", indices, bottles_for_each=1)
    if phrase.has_role("people"):
        return PricePart("K", indices, bottles_for_each=BOTTLES_FOR_EACH)
    if phrase.has_role("other_unit", "percent"):
        return PricePart("K", indices)
    if phrase.has_role("in_all"):
        return PricePart("G", indices)
    if phrase.has_role("bought"):
        return PricePart("V", indices)
    return _read_limit(phrase)


def _read_limit(phrase: Phrase) -> PricePart:
    """Return a phrase as a limit of the number beside it, or as a part that is no limit."""
    of_next = _find_limit(phrase, "")
    of_previous = _find_limit(phrase, "_after")
    symbol = "."
    joins_range = phrase.has_role("range_joint")
    if joins_range and of_next:
        symbol = "T"
    elif joins_range:
        symbol = "J"
    elif of_next and of_previous:
        symbol = "B"
    elif of_next:
        symbol = "L"
    elif of_previous:
        symbol = "A"
    limit = of_next or of_previous
    return PricePart(symbol, phrase.indices, limit=limit)


def _find_limit(phrase: Phrase, ending: str) -> str:
    """Return the limit whose role, with this ending, a phrase has, or an empty string."""
    for role in LIMIT_ROLES:
        if phrase.has_role(role + ending):
            return role
    return ""


def _price_filters(parts: Sequence[PricePart]) -> dict[str, Any]:
    """Return the filters of one or two amounts, or no filters if they do not seem to be prices."""
    low, *higher = sorted(_list_amounts(parts))
    currency = ""
    limit = ""
    for part in parts:
        currency = currency or part.currency
        # Of several limits, the last one counts: "around 120 at most".
        limit = part.limit or limit
    if not currency:
        if not limit or not _may_be_price(parts):
            return {}
        if limit == "between" and not higher:
            return {}  # "un plateau de quatre fromages"
    if higher and currency == UNKNOWN_CURRENCY:
        return {}  # the pattern AMOUNT finds this price
    if higher and _begins_with_vintage(parts):
        return {}  # the pattern AMOUNT finds this price
    filters = _limits(low, higher, limit)
    if higher and _excludes_last_amount(parts):
        filters["below"] = filters.pop("max_price")
    if currency:
        filters["currency"] = currency
    return filters


def _excludes_last_amount(parts: Sequence[PricePart]) -> bool:
    """Return whether a range ends below its last amount: "over 10 and under 20"."""
    has_amount = False
    for part in parts:
        if part.symbol == "N":
            has_amount = True
        elif has_amount and part.limit == "below":
            return True
    return False


def _begins_with_vintage(parts: Sequence[PricePart]) -> bool:
    """Return whether a range is a vintage and a price: "Chianti 2021 à 18 euros"."""
    first, *others = _list_amounts(parts)
    return first in YEARS and max(others) < first


def _may_be_price(parts: Sequence[PricePart]) -> bool:
    """Return whether amounts without a currency may be a price and no year or number of guests."""
    amounts = _list_amounts(parts)
    if len(amounts) > 1:
        return True
    last_part = parts[-1]
    return amounts[0] not in YEARS and last_part.symbol != "K"


def _list_amounts(parts: Sequence[PricePart]) -> list[float]:
    """Return the numbers of a price, in their order in the message."""
    return [part.number for part in parts if part.symbol == "N"]


def _limits(
    low: float,
    higher: Sequence[float],
    limit: str,
) -> dict[str, Any]:
    """Return the limits of a price. An amount without a limit is a maximum."""
    if higher:
        highest = higher[-1]
        return {"min_price": low, "max_price": highest}
    if limit == "about":
        lower, upper = APPROXIMATE_FACTORS
        return {
            "min_price": round(low * lower, 2),
            "max_price": round(low * upper, 2),
        }
    if limit == "min":
        return {"min_price": low}
    if limit == "below":
        return {"below": low}
    return {"max_price": low}


def with_gift_price(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters with a lower limit of the price, as for a gift.

    The lower limit follows from the upper one: nobody who names 40 euros wants a gift for 8.
    """
    if "min_price" in filters:
        return dict(filters)
    highest = find_upper_limit(filters)
    if highest is None:
        return {
            **filters,
            "min_price": MIN_GIFT_PRICE,
            "currency": MIN_GIFT_CURRENCY,
        }
    lower, _ = APPROXIMATE_FACTORS
    min_price = round(highest * lower)
    return {**filters, "min_price": min_price}


def find_approximate_price(low: float, high: float) -> float | None:
    """Return the price that has these limits after "about", or None if no price has them.

    A range such as "10 to 15 euros" may have the same limits.
    """
    lower, upper = APPROXIMATE_FACTORS
    price = round(high / upper, 2)
    if round(price * lower, 2) != low:
        return None
    return price

"""Read the price that a message names for bottles: "45 euros each", "270 euros in all"."""

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Any, Final, NamedTuple

from agent.numerals import is_year, parse_number
from agent.query_reading.language_words import load_language_words
from agent.query_reading.phrases import Phrase
from agent.query_reading.prices import MAX_AMOUNT, read_price
from agent.query_reading.tokens import Token, tokenize

EXACT_PRICE_FIELDS: Final = frozenset({"max_price", "currency"})
"""The filters of a price that is no range: "45 euros"."""
CURRENCY_IF_UNSAID: Final = "EUR"
"""The currency that `/cellar add` reads if none is said."""


class StatedPrice(NamedTuple):
    """The price that a message names, and the indices of the tokens that express it.

    `amount` is None if the message names none, or no exact one.
    """

    amount: float | None
    currency: str
    is_of_bottle: bool
    """Whether the message says that it is the price of one bottle, and not of all."""
    indices: frozenset[int]
    sharing_bottles: int = 0
    """The number of bottles if the amount is the share of one in a price for all, or 0."""


def read_stated_price(
    tokens: Sequence[Token], phrases: Sequence[Phrase], language: str
) -> StatedPrice:
    """Return the price of a message, and whether it is that of one bottle."""
    price = read_price(tokens, phrases)
    each_phrases = list(_find_each_phrases(tokens, language))
    if not price.filters:
        return _read_bare_price(tokens, each_phrases)
    indices = set(price.indices)
    is_of_bottle = False
    for each in each_phrases:
        if _is_beside(each, price.indices):
            indices.update(each)
            is_of_bottle = True
    amount = _find_exact_amount(price.filters)
    currency = price.filters.get("currency", CURRENCY_IF_UNSAID)
    return StatedPrice(
        amount,
        currency,
        is_of_bottle,
        frozenset(indices),
        sharing_bottles=price.bottles,
    )


def _find_exact_amount(filters: Mapping[str, Any]) -> float | None:
    """Return the amount of a price, or None for a range, a minimum or an unknown currency."""
    if filters.keys() != EXACT_PRICE_FIELDS:
        return None
    amount: float = filters["max_price"]
    return amount


def _read_bare_price(
    tokens: Sequence[Token], each_phrases: Sequence[range]
) -> StatedPrice:
    """Return the price of a message that names no currency: "at 45 each"."""
    for each in each_phrases:
        index = each.start - 1
        if index < 0:
            continue
        written = tokens[index].written
        if not written[0].isdecimal() or is_year(written):
            continue
        amount = parse_number(written)
        if amount <= MAX_AMOUNT:
            indices = frozenset([index, *each])
            return StatedPrice(amount, CURRENCY_IF_UNSAID, True, indices)
    return StatedPrice(None, CURRENCY_IF_UNSAID, False, frozenset())


def _is_beside(each: range, price_indices: Set[int]) -> bool:
    """Return whether a phrase stands directly beside a price or overlaps with it.

    Before the price, a word may stand between: "each at 45 euros".
    """
    comes_too_early = each.stop < min(price_indices) - 1
    comes_too_late = each.start > max(price_indices) + 1
    return not comes_too_early and not comes_too_late


def _find_each_phrases(tokens: Sequence[Token], language: str) -> Iterator[range]:
    """Yield the indices of each phrase that makes a price beside it that of one bottle."""
    stems = tuple(token.stem for token in tokens)
    for start in range(len(stems)):
        for key in _load_each_keys(language):
            end = start + len(key)
            if stems[start:end] == key:
                yield range(start, end)


@cache
def _load_each_keys(language: str) -> Sequence[tuple[str, ...]]:
    """Return the stems of the phrases of a language that say "each"."""
    words = load_language_words().get(language)
    if words is None:
        return ()
    keys: list[tuple[str, ...]] = []
    for phrase in words.each.split(","):
        stems = [token.stem for token in tokenize(phrase)]
        if stems:
            keys.append(tuple(stems))
    return keys

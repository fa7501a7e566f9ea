"""Tell whether an amount of money is the sum, product, difference or share of known prices.

`Sums` allows each price as often as any count says. As this allows very many amounts, `BasketSums`
takes its place where the bottles of each wine are counted.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

ROUNDING_MARGIN: Final = 0.5001
"""The error that is allowed in a whole amount, because models round: a half, and a little more."""
CENT_MARGIN: Final = 0.0051
"""The error that is allowed in other amounts: half a cent, and a little for arithmetic."""
CONVERTED_MARGIN: Final = 0.02
"""The share by which a converted amount may be wrong, because rates are rounded."""
MAX_ITEMS: Final = 6
"""The most prices that are added up, each with a count."""
MAX_HALF_SUMS: Final = 1_000
"""The most sums that are computed for each half of the items, so that a check stays short."""
PACK_SIZES: Final = (6, 12)
"""The counts of bottles in a case, by which a price may be multiplied though nobody names them."""
MAX_COMPARED_PRICES: Final = 40
"""The most prices that are compared with each other, so that a check stays short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAmounts:
    """The amounts of money and the counts from which other amounts may follow."""

    prices: Sequence[float] = ()
    """Prices and other amounts in a source."""
    items: Sequence[float] = ()
    """The prices that may be added up, each taken as often as one of the `counts` says."""
    counts: Collection[float] = ()
    lines: Sequence[float] = ()
    """The amounts of the wines whose bottles are counted."""
    line_prices: Sequence[float] = ()
    """The price of one bottle of each of the `lines`."""
    stated_counts: Collection[float] = ()
    """The counts in the sentence that states the amount."""
    named: Collection[float] = ()
    """Amounts that the guest named, from which a sum may be subtracted."""
    fees: Collection[float] = ()
    """Amounts that may be added to a sum, such as for delivery."""
    people: Collection[float] = ()
    """Numbers of people who may share a sum."""
    are_converted: bool = False
    """Whether the amounts are converted, so that everything that follows from them is rounded."""


class Sums:
    """The amounts that follow from known ones."""

    def __init__(self, amounts: KnownAmounts) -> None:
        self._amounts = amounts
        items = amounts.items
        lines = amounts.lines
        self._totals = [sum(prices) for prices in (items, lines) if prices]
        prices = amounts.prices[:MAX_COMPARED_PRICES]
        counts = {*amounts.counts, *amounts.people, *PACK_SIZES}
        # The guest may have named a price for each bottle: "six bottles at 20 euros".
        counted = _multiply([*amounts.named, *self._totals, *prices], counts)
        self._known = {*amounts.prices, *lines, *self._totals, *counted}
        self._differences = _subtract(prices, {*amounts.named, *prices})
        self._parts_of_lines = _add_up(lines[:MAX_ITEMS], (0, 1))
        self._halves = _add_up_halves(items, amounts.counts)

    def allow(self, value: float) -> bool:
        """Return whether an amount follows from the prices."""
        margin = _margin_of(value, self._amounts)
        return (
            _is_near(value, self._known, margin)
            or _is_near(value, self._differences, CENT_MARGIN)
            or self._is_sum(value, margin)
            or self._is_what_remains(value, margin)
            or self._has_fee(value, margin)
            or self._is_share(value, margin)
        )

    def _is_sum(self, value: float, margin: float) -> bool:
        """Return whether some items, each as often as a count says, come to about `value`."""
        if value <= 0:
            return False
        if _is_near(value, self._parts_of_lines, margin):
            return True
        lower, upper = self._halves
        high = len(upper) - 1
        # Both halves are ascending, so they are walked from opposite ends.
        for low_sum in lower:
            while high >= 0 and low_sum + upper[high] > value + margin:
                high -= 1
            if high >= 0 and low_sum + upper[high] >= value - margin:
                return True
        return False

    def _is_what_remains(self, value: float, margin: float) -> bool:
        """Return whether `value` remains of an amount that the guest named, or is lacking."""
        for named in self._amounts.named:
            if _is_near(value, _subtract([named], self._totals), margin):
                return True
            remains = self._is_sum(named - value, CENT_MARGIN)
            is_missing = self._is_sum(named + value, CENT_MARGIN)
            if remains or is_missing:
                return True
        return False

    def _has_fee(self, value: float, margin: float) -> bool:
        """Return whether `value` is a sum with a fee in a source, such as for delivery."""
        for fee in self._amounts.fees:
            without_fee = value - fee
            if _is_near(without_fee, self._totals, margin):
                return True
            if self._is_sum(without_fee, CENT_MARGIN):
                return True
        return False

    def _is_share(self, value: float, margin: float) -> bool:
        """Return whether `value` is what each of the people pays."""
        for count in self._amounts.people:
            if count <= 1:
                continue
            shared = value * count
            if _is_near(shared, self._totals, margin * count):
                return True
            if not value.is_integer() and self._is_sum(shared, CENT_MARGIN * count):
                return True
        return False


class BasketSums:
    """The amounts that follow from prices and from the bottles that are counted.

    These amounts are the prices and their multiples, the sums of some lines or of one bottle of
    some wines, and the total with another count of one wine that the sentence states.
    """

    def __init__(self, amounts: KnownAmounts) -> None:
        self._amounts = amounts
        total = sum(amounts.lines)
        self._total = total
        parts = _add_up(amounts.lines[:MAX_ITEMS], (0, 1))
        self._whole = {total, *self._list_changed_totals()}
        """The total, and those with another count of one wine."""
        self._totals = {*parts, *self._whole} - {0.0}
        stated = _multiply(amounts.items, amounts.stated_counts)
        self._payable = self._totals | stated
        """The amounts that the guest may pay, from which what remains follows."""
        one_of_each = _add_up(amounts.items[:MAX_ITEMS], (0, 1))
        multiples = _multiply([*amounts.items, *amounts.named], amounts.counts)
        known = {*amounts.prices, *self._payable, *one_of_each, *multiples}
        self._known = known - {0.0}
        self._price_differences = _subtract(amounts.items, amounts.items)

    def _list_changed_totals(self) -> set[float]:
        """Return the total with each stated count in place of that of one wine."""
        amounts = self._amounts
        totals: set[float] = set()
        for line, price in zip(amounts.lines, amounts.line_prices, strict=True):
            other_lines = self._total - line
            for count in amounts.stated_counts:
                totals.add(other_lines + count * price)
        return totals

    def allow(self, value: float) -> bool:
        """Return whether an amount follows from the prices and the bottles."""
        margin = _margin_of(value, self._amounts)
        return (
            _is_near(value, self._known, margin)
            or _is_near(value, self._price_differences, CENT_MARGIN)
            or self._is_what_remains(value, margin)
            or self._is_distance_to_limit(value)
            or self._has_fee(value, margin)
            or self._is_share(value, margin)
        )

    def _is_what_remains(self, value: float, margin: float) -> bool:
        """Return whether `value` remains of an amount that the guest named, or is lacking.

        The value is lacking for the whole basket. What remains after some of its wines is not
        rounded.
        """
        for named in self._amounts.named:
            if _is_near(value, _subtract([named], self._whole), margin):
                return True
            if _is_near(named - value, self._payable, CENT_MARGIN):
                return True
        return False

    def _is_distance_to_limit(self, value: float) -> bool:
        """Return whether a price is so far from one that the guest named.

        An amount that is several times the price is no limit of a bottle, but a budget for all.
        """
        for price in self._amounts.items:
            distances = _subtract([price], self._amounts.named)
            if value <= price and _is_near(value, distances, CENT_MARGIN):
                return True
        return False

    def _has_fee(self, value: float, margin: float) -> bool:
        """Return whether `value` is a sum with a fee in a source, such as for delivery.

        The guest may have named the fee of the whole basket.
        """
        if _is_near(value - self._total, self._amounts.named, margin):
            return True
        for fee in self._amounts.fees:
            if _is_near(value - fee, self._payable, margin):
                return True
        return False

    def _is_share(self, value: float, margin: float) -> bool:
        """Return whether `value` is what each of the people pays."""
        for count in self._amounts.people:
            shared = value * count
            if count > 1 and _is_near(shared, self._totals, margin * count):
                return True
        return False


def _margin_of(value: float, amounts: KnownAmounts) -> float:
    """Return how far an amount in prose may be from a known one."""
    margin = CENT_MARGIN
    if value.is_integer():
        margin = ROUNDING_MARGIN
    if amounts.are_converted:
        margin = max(margin, CONVERTED_MARGIN * value)
    return margin


def _is_near(value: float, amounts: Iterable[float], margin: float) -> bool:
    """Return whether a value is within a margin of one of the amounts."""
    return any(abs(value - amount) <= margin for amount in amounts)


def _multiply(amounts: Iterable[float], counts: Iterable[float]) -> set[float]:
    """Return each amount multiplied by each count."""
    pairs = product(amounts, counts)
    return {amount * count for amount, count in pairs}


def _subtract(amounts: Iterable[float], others: Iterable[float]) -> set[float]:
    """Return the differences between each amount and each other one, whichever is more."""
    pairs = product(amounts, others)
    return {abs(amount - other) for amount, other in pairs}


def _add_up_halves(
    items: Sequence[float], counts: Collection[float]
) -> tuple[list[float], list[float]]:
    """Return all sums of the first and of the second half of the items, each ascending.

    Every sum of items is a sum of the first half plus a sum of the second. If there are very many
    counts, the largest counts are left out.
    """
    chosen = items[:MAX_ITEMS]
    middle = (len(chosen) + 1) // 2
    factors = sorted({0.0, 1.0, *counts})
    while len(factors) ** middle > MAX_HALF_SUMS:
        factors.pop()
    return _add_up(chosen[:middle], factors), _add_up(chosen[middle:], factors)


def _add_up(items: Sequence[float], factors: Sequence[float]) -> list[float]:
    """Return the sums of the items, each multiplied by any of the factors, in ascending order."""
    sums = {0.0}
    for item in items:
        multiples = [factor * item for factor in factors]
        sums = {total + multiple for total, multiple in product(sums, multiples)}
    return sorted(sums)

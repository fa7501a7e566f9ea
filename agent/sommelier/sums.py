"""Tell whether an amount of money follows from prices: as a sum, product, difference or share."""

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Final

ROUNDING_MARGIN: Final = 0.5
"""A whole amount may be off by this much, because models round."""
CENT_MARGIN: Final = 0.0051
"""Half a cent, and a little for the arithmetic."""
CONVERTED_MARGIN: Final = 0.02
"""By what share an amount in another currency may be off, for its rate is a rounded one."""
MAX_ITEMS: Final = 6
"""The prices that are added up with a count each."""
MAX_HALF_SUMS: Final = 1_000
"""The sums that are computed of each half of the items, so that a check stays short."""
PACK_SIZES: Final = (6, 12)
MAX_COMPARED_PRICES: Final = 40


class Sums:
    """The amounts that follow from prices.

    `prices` are known amounts. `items` are the prices that may be added up, each taken as often as
    one of the `counts` says. `named` are amounts that the guest named, from which a sum may be
    subtracted; `fees` may be added to a sum, and `people` may share one. `lines` are the amounts of
    the wines whose bottles are counted. If the prices `are_converted`, all that follows is rounded.
    """

    def __init__(
        self,
        prices: Sequence[float],
        items: Sequence[float],
        counts: Collection[float],
        *,
        lines: Sequence[float] = (),
        named: Collection[float] = (),
        fees: Collection[float] = (),
        people: Collection[float] = (),
        are_converted: bool = False,
    ) -> None:
        self._named = named
        self._fees = fees
        self._people = people
        self._are_converted = are_converted
        self._totals = [sum(some) for some in (items, lines) if some]
        self._known = {*prices, *lines, *self._totals}
        several = {*counts, *people, *PACK_SIZES}
        # The guest may have named a price for each bottle: "six bottles at 20 euros".
        counted = [*named, *self._totals, *prices[:MAX_COMPARED_PRICES]]
        self._known.update(_multiply(counted, several))
        self._halves = _add_up_halves(items, counts)
        self._parts_of_lines = _add_up(lines[:MAX_ITEMS], (0, 1))
        compared = {*named, *prices[:MAX_COMPARED_PRICES]}
        self._differences = {
            abs(price - other)
            for price in prices[:MAX_COMPARED_PRICES]
            for other in compared
        }

    def allow(self, value: float) -> bool:
        """Return whether an amount follows from the prices."""
        margin = self._margin_of(value)
        if any(abs(value - known) <= margin for known in self._known):
            return True
        if any(abs(value - known) <= CENT_MARGIN for known in self._differences):
            return True
        if self._is_sum(value, margin) or self._is_what_remains(value, margin):
            return True
        return self._has_fee(value, margin) or self._is_share(value, margin)

    def _margin_of(self, value: float) -> float:
        margin = ROUNDING_MARGIN if value.is_integer() else CENT_MARGIN
        return max(margin, CONVERTED_MARGIN * value) if self._are_converted else margin

    def _is_sum(self, value: float, margin: float) -> bool:
        """Return whether some items, each as often as a count says, come to about `value`."""
        if value <= 0:
            return False
        if any(abs(value - part) <= margin for part in self._parts_of_lines):
            return True
        lower, upper = self._halves
        high = len(upper) - 1
        for low_sum in lower:  # from both ends: both halves are ascending
            while high >= 0 and low_sum + upper[high] > value + margin:
                high -= 1
            if high >= 0 and low_sum + upper[high] >= value - margin:
                return True
        return False

    def _is_what_remains(self, value: float, margin: float) -> bool:
        """Return whether `value` is left of an amount that the guest named, or exceeds it."""
        for named in self._named:
            if any(abs(abs(named - total) - value) <= margin for total in self._totals):
                return True
            if self._is_sum(named - value, CENT_MARGIN) or self._is_sum(
                named + value, CENT_MARGIN
            ):
                return True
        return False

    def _has_fee(self, value: float, margin: float) -> bool:
        """Return whether `value` is a sum and a fee that a source names, such as for delivery."""
        for fee in self._fees:
            if any(abs(total + fee - value) <= margin for total in self._totals):
                return True
            if self._is_sum(value - fee, CENT_MARGIN):
                return True
        return False

    def _is_share(self, value: float, margin: float) -> bool:
        """Return whether `value` is what each of the people pays."""
        for count in self._people:
            if count <= 1:
                continue
            if any(abs(total / count - value) <= margin for total in self._totals):
                return True
            if not value.is_integer() and self._is_sum(
                value * count, CENT_MARGIN * count
            ):
                return True
        return False


def _multiply(amounts: Iterable[float], counts: Collection[float]) -> set[float]:
    return {amount * count for amount in amounts for count in counts}


def _add_up_halves(
    items: Sequence[float], counts: Collection[float]
) -> tuple[list[float], list[float]]:
    """Return all sums of the first and of the second half of the items, each ascending.

    Every sum of the items is a sum of the one and a sum of the other. Of very many counts, the
    largest are left out.
    """
    chosen = items[:MAX_ITEMS]
    middle = (len(chosen) + 1) // 2
    factors = sorted({0.0, 1.0, *counts})
    while len(factors) ** middle > MAX_HALF_SUMS:
        factors.pop()
    return _add_up(chosen[:middle], factors), _add_up(chosen[middle:], factors)


def _add_up(items: Sequence[float], factors: Sequence[float]) -> list[float]:
    """Return the sums of the items, each multiplied by any of the factors, in ascending order."""
    sums = {
        sum(count * item for count, item in zip(counts, items, strict=True))
        for counts in product(factors, repeat=len(items))
    }
    return sorted(sums)

"""Summarise numbers."""

from collections.abc import Sequence
from math import ceil


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0

"""Several rankings made one. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

K: Final = 60
"""The constant of reciprocal rank fusion, from Cormack, Clarke and Buettcher (2009)."""
MAX_PER_DOCUMENT: Final = 3


def fuse(rankings: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """Items of all rankings with their scores, best first.

    An item scores 1 / (60 + its rank) in each ranking; equals keep the order of the smaller number.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (K + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))


def spread(
    ranked: Sequence[int],
    limit: int,
    document_of: Callable[[int], str],
    most: int = MAX_PER_DOCUMENT,
) -> list[int]:
    """The first `limit` items, at most `most` of one document unless nothing else matches."""
    taken: Counter[str] = Counter()
    chosen: list[int] = []
    spare: list[int] = []
    for item in ranked:
        document = document_of(item)
        taken[document] += 1
        (chosen if taken[document] <= most else spare).append(item)
    kept = {*chosen[:limit], *spare[: max(limit - len(chosen), 0)]}
    return [item for item in ranked if item in kept]

"""Tell a list of wines from other texts and tables, such as letters, recipes and contacts."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Final

from agent.query_reading.request import read_request
from agent.query_reading.tables import load_profiles
from agent.sommelier.vocabulary import normalize
from db.wines.lists.words import words

WINE_FIELDS: Final = frozenset(
    {
        "grapes",
        "appellation",
        "style",
        "sweetness",
        "tannin",
        "drink_from",
        "drink_until",
        "window",
    }
)
"""Fields that only lists of wines have columns for."""
MAX_READ_NAMES: Final = 200
MIN_KNOWN_SHARE: Final = 0.2
"""The share of names that tell a wine; of 1,000 real ones, 850 did."""


def lists_wines(
    names: Sequence[str], fields: Iterable[str] = (), titles: Iterable[str] = ()
) -> bool:
    """Return whether a list of these names is of wines; so may its fields and titles tell."""
    if not WINE_FIELDS.isdisjoint(fields):
        return True
    for title in titles:
        if not _words("titles").isdisjoint(normalize(title).split()):
            return True
    known, read = 0, 0
    for name in islice(names, MAX_READ_NAMES):
        read += 1
        known += _tells_wine(name)
    return known > 0 and known >= MIN_KNOWN_SHARE * read


def _tells_wine(name: str) -> bool:
    """Return whether a name has a grape or a region, or a word of labels such as "Domaine"."""
    label = normalize(name)
    if not _words("labels").isdisjoint(label.split()):
        return True
    request = read_request(name)
    if request.values("grapes") or request.values("regions"):
        return True
    return any(f" {normalize(known)} " in f" {label} " for known in load_profiles())


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(words()["of_wine"][name])

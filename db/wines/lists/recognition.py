"""Tell a list of wines from other texts and tables, such as letters, recipes and contacts."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Final

from agent.query_reading.request import read_request
from agent.query_reading.tables import load_profiles
from agent.sommelier.vocabulary import normalize
from db.wines.lists.words import load_words

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
"""Fields for which only a list of wines has columns."""
MAX_READ_NAMES: Final = 200
"""How many names of a list are looked at."""
MIN_KNOWN_SHARE: Final = 0.2
"""The share of a list's names that must be recognised as names of wines.

Of 1,000 real names of wines, 850 are recognised.
"""


def is_list_of_wines(
    names: Sequence[str],
    fields: Iterable[str] = (),
    titles: Iterable[str] = (),
) -> bool:
    """Return whether a list is one of wines.

    One field or title of a column that only wines have is enough. Otherwise the names decide.
    """
    if not WINE_FIELDS.isdisjoint(fields):
        return True
    words_of_titles = _list_words_of_wine("titles")
    for title in titles:
        words = normalize(title).split()
        if not words_of_titles.isdisjoint(words):
            return True
    known_count = 0
    read_count = 0
    for name in islice(names, MAX_READ_NAMES):
        read_count += 1
        if _is_known_as_wine(name):
            known_count += 1
    return known_count > 0 and known_count >= MIN_KNOWN_SHARE * read_count


def _is_known_as_wine(name: str) -> bool:
    """Return whether a name has a word of labels such as "Domaine", a grape, or a region."""
    label = normalize(name)
    if not _list_words_of_wine("labels").isdisjoint(label.split()):
        return True
    request = read_request(name)
    if request.values("grapes") or request.values("regions"):
        return True
    # The spaces let only whole words match.
    return any(f" {normalize(wine)} " in f" {label} " for wine in load_profiles())


@cache
def _list_words_of_wine(found_in: str) -> frozenset[str]:
    """Return the words that are found only with wines: in "titles" of columns or on "labels"."""
    return frozenset(load_words()["of_wine"][found_in])

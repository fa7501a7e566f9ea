"""Find what the columns of a list hold, by their names and cells."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

from agent.sommelier.vocabulary import normalize
from agent.sommelier.wine import wine_fields
from db.wines.lists.packing import read_packing
from db.wines.lists.words import words

Rows = Sequence[Sequence[str]]
"""The cells of the rows of a table."""

MAX_SAMPLED_ROWS: Final = 200
"""The number of rows that are read to choose between columns for a field."""
CACHED_TITLES: Final = 4096
MAX_OFFER_CHARS: Final = 40
"""A longer cell is no column name for what is sold."""
MIN_READABLE_SHARE: Final = 0.5
IsReadable = Callable[[str, str], bool]
"""Tells whether a cell can be read as a field."""


@cache
def _names() -> dict[str, frozenset[str]]:
    """Return the normalised names of columns by the field that they may stand for."""
    names = {name: field.column_names for name, field in wine_fields().items()}
    names |= words()["headers"]
    return {field: known | {normalize(field)} for field, known in names.items()}


@lru_cache(CACHED_TITLES)
def possible_fields(title: str) -> tuple[str, ...]:
    """Return the fields that a column name may stand for."""
    name = normalize(title)
    ignored = words()["ignored"]["words"]
    bare = " ".join(word for word in name.split() if word not in ignored)
    return tuple(field for field, known in _names().items() if known & {name, bare})


def count_known_titles(titles: Iterable[str]) -> int:
    """Return how many fields the column names of a header stand for, or what is sold."""
    known: set[str] = set()
    for title in titles:
        fields = possible_fields(title)
        if fields:
            known.add(fields[0])
        elif _names_offer(title):
            known.add(title)
    return len(known)


def count_offers(titles: Iterable[str]) -> int:
    """Return how many column names of a header stand for something that is sold."""
    return sum(map(_names_offer, titles))


def _names_offer(title: str) -> bool:
    return (
        len(title) <= MAX_OFFER_CHARS
        and read_packing(title, is_served=True) is not None
    )


def match_columns(
    titles: Sequence[str], rows: Rows, fields: Collection[str], is_readable: IsReadable
) -> list[str]:
    """Return the field of each column, "" for an unused column.

    Of several columns for a field, choose the one named like the field, or else the one with the
    largest share of readable cells, if at least half.
    """
    column_fields = [""] * len(titles)
    for field in fields:
        shares: dict[int, float] = {}
        for index, title in enumerate(titles):
            if field not in possible_fields(title) or column_fields[index]:
                continue
            if normalize(title) == normalize(field):
                shares[index] = 2.0  # comes before all others
            else:
                shares[index] = _share(rows, index, field, is_readable)
        best = max(shares, key=lambda index: shares[index], default=-1)
        if shares.get(best, 0.0) >= MIN_READABLE_SHARE:
            column_fields[best] = field
    return column_fields


def _share(rows: Rows, column: int, field: str, is_readable: IsReadable) -> float:
    """Return the share of readable cells, if the column is read as `field`."""
    cells = sample_column(rows, column)
    return sum(is_readable(field, cell) for cell in cells) / max(len(cells), 1)


def sample_column(rows: Rows, column: int) -> list[str]:
    """Return the first filled cells of a column."""
    sampled = rows[:MAX_SAMPLED_ROWS]
    cells = (row[column] for row in sampled if column < len(row))
    return [cell for cell in cells if cell]


def filled_cells(columns: Iterable[str], cells: Iterable[str]) -> dict[str, str]:
    """Return the non-empty cells of a row by field."""
    return {
        field: cell
        for field, cell in zip(columns, cells, strict=False)
        if field and cell
    }

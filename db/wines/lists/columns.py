"""Find the field that each column of a list holds, by its title and its cells."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

from agent.sommelier.vocabulary import normalize
from agent.sommelier.wine import wine_fields
from db.wines.lists.listed import Cells
from db.wines.lists.packing import read_packing
from db.wines.lists.words import load_words

Rows = Sequence[Sequence[str]]
"""The cells of the rows of a table."""

MAX_SAMPLED_ROWS: Final = 200
"""How many rows are read to choose between columns for a field."""
CACHED_TITLES: Final = 4096
MAX_OFFER_CHARS: Final = 40
"""A longer title does not name an offer, such as "Magnum" or "Glas 0,1"."""
MIN_READABLE_SHARE: Final = 0.5
"""The share of a column's cells that must be readable as its field."""
SCORE_OF_FIELD_NAME: Final = 2.0
"""The score of a column with the field's own name as its title.

It is higher than any share of readable cells, which is 1 at most.
"""
IsReadable = Callable[[str, str], bool]
"""Tells whether a cell can be read as a field. It is given the field and the cell."""


@cache
def _known_titles() -> dict[str, frozenset[str]]:
    """Return the normalised titles that a column of each field may have."""
    titles_by_field: dict[str, frozenset[str]] = {}
    for field, wine_field in wine_fields().items():
        titles_by_field[field] = wine_field.column_titles
    # `words.toml` has the titles of fields that only a bottle in a cellar has.
    titles_by_field |= load_words()["headers"]
    for field, titles in titles_by_field.items():
        titles_by_field[field] = titles | {normalize(field)}
    return titles_by_field


@lru_cache(CACHED_TITLES)
def list_possible_fields(title: str) -> tuple[str, ...]:
    """Return the fields that a column with this title may hold."""
    normalized = normalize(title)
    ignored = load_words()["ignored"]["words"]
    telling_words = [word for word in normalized.split() if word not in ignored]
    shortened = " ".join(telling_words)
    fields: list[str] = []
    for field, known_titles in _known_titles().items():
        if normalized in known_titles or shortened in known_titles:
            fields.append(field)
    return tuple(fields)


def count_known_titles(titles: Iterable[str]) -> int:
    """Return how many different fields and offers the titles of columns stand for."""
    known: set[str] = set()
    for title in titles:
        fields = list_possible_fields(title)
        if fields:
            # A column holds one field, even if its title may mean several.
            first_field = fields[0]
            known.add(first_field)
        elif _is_offer(title):
            known.add(title)
    return len(known)


def count_offers(titles: Iterable[str]) -> int:
    """Return how many titles stand for an offer, such as a bottle or a glass."""
    offers = [title for title in titles if _is_offer(title)]
    return len(offers)


def _is_offer(title: str) -> bool:
    """Return whether a title says how a wine is offered, such as "Glass 0.1l"."""
    if len(title) > MAX_OFFER_CHARS:
        return False
    # The list may be that of a restaurant, where wine is served by the glass too.
    return read_packing(title, is_served=True) is not None


def match_columns(
    titles: Sequence[str],
    rows: Rows,
    fields: Collection[str],
    is_readable: IsReadable,
) -> list[str]:
    """Return the field of each column, "" for an unused column.

    Several columns may be possible for a field. The one with the field's own name as its title is
    chosen, or else the one with the largest share of readable cells, if that is at least half.
    """
    column_fields = [""] * len(titles)
    for field in fields:
        best = 0
        best_score = 0.0
        for index, title in enumerate(titles):
            is_taken = bool(column_fields[index])
            if is_taken or field not in list_possible_fields(title):
                continue
            score = SCORE_OF_FIELD_NAME
            if normalize(title) != normalize(field):
                score = _share_of_readable(rows, index, field, is_readable)
            if score > best_score:
                best = index
                best_score = score
        if best_score >= MIN_READABLE_SHARE:
            column_fields[best] = field
    return column_fields


def _share_of_readable(
    rows: Rows,
    column: int,
    field: str,
    is_readable: IsReadable,
) -> float:
    """Return the share of a column's cells that can be read as a field."""
    cells = sample_column(rows, column)
    if not cells:
        return 0.0
    readable = [cell for cell in cells if is_readable(field, cell)]
    return len(readable) / len(cells)


def sample_column(rows: Rows, column: int) -> list[str]:
    """Return the filled cells of a column in the first rows."""
    filled: list[str] = []
    for row in rows[:MAX_SAMPLED_ROWS]:
        # A row may have fewer cells than the header.
        if column < len(row) and row[column]:
            filled.append(row[column])
    return filled


def select_filled(columns: Iterable[str], cells: Iterable[str]) -> dict[str, str]:
    """Return the filled cells of a row by field. `columns` has the field of each column."""
    filled: dict[str, str] = {}
    # A row may have more or fewer cells than the header.
    for field, cell in zip(columns, cells, strict=False):
        if field and cell:
            filled[field] = cell
    return filled


def drop_empty(cells: Cells) -> dict[str, str]:
    """Return the cells that are not empty."""
    return {field: cell for field, cell in cells.items() if cell}

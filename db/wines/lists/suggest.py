"""Suggest which fields the unused columns of a list may hold, by what their cells look like."""

from collections.abc import Callable, Sequence
from typing import Final

from db.wines.lists.cells import find_currency, is_number
from db.wines.lists.columns import sample_column
from db.wines.lists.derive import find_facts
from db.wines.lists.listed import NamedColumn
from db.wines.lists.packing import read_packing
from db.wines.lists.tables import Table
from db.wines.lists.titles import OLDEST_IN_TITLE
from db.wines.years import is_year

MIN_SHARE: Final = 0.6
"""The share of a column's cells that must look like a field."""
MIN_CELLS: Final = 3
"""Nothing is suggested for a column with fewer filled cells."""


def _is_vintage(cell: str) -> bool:
    return is_year(cell, OLDEST_IN_TITLE)


def _is_price(cell: str) -> bool:
    """Return whether a cell is a number with a currency. A number alone may be anything."""
    return is_number(cell) and find_currency(cell) is not None


def _is_size(cell: str) -> bool:
    return read_packing(cell) is not None


def _names_grape(cell: str) -> bool:
    return any(fact.grape for fact in find_facts(cell))


def _names_country(cell: str) -> bool:
    return any(fact.country for fact in find_facts(cell))


def _names_place(cell: str) -> bool:
    return any(fact.place for fact in find_facts(cell))


def _names_style(cell: str) -> bool:
    return any(fact.style for fact in find_facts(cell))


FIELD_TESTS: Final[dict[str, Callable[[str], bool]]] = {
    "vintage": _is_vintage,
    "price": _is_price,
    "size": _is_size,
    "grapes": _names_grape,
    "country": _names_country,
    "region": _names_place,
    "style": _names_style,
}
"""For each field, the test whether a cell looks like it. The surest tests come first."""


def suggest_fields(
    tables: Sequence[Table], columns: Sequence[NamedColumn]
) -> dict[str, str]:
    """Return the fields that unused columns look like, by the names of the columns."""
    used_fields: set[str] = set()
    unused_titles: set[str] = set()
    for title, field in columns:
        if field:
            used_fields.add(field)
        else:
            unused_titles.add(title)
    suggestions: dict[str, str] = {}
    for table in tables:
        rows = [row.cells for row in table.rows]
        for index, title in enumerate(table.titles):
            if title not in unused_titles:
                continue
            cells = sample_column(rows, index)
            field = _find_likely_field(cells)
            if field and field not in used_fields:
                suggestions[title] = field
    return suggestions


def _find_likely_field(cells: Sequence[str]) -> str:
    """Return the field that most cells of a column look like, or ""."""
    if len(cells) < MIN_CELLS:
        return ""
    for field, looks_like_field in FIELD_TESTS.items():
        similar = [cell for cell in cells if looks_like_field(cell)]
        if len(similar) >= MIN_SHARE * len(cells):
            return field
    return ""

"""Write a cellar as a file: CSV or a workbook, which can be imported again."""

import csv
import io
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from agent.cellar.items import find_drinking_window, select_in_stock
from agent.sommelier.wine import wine_fields
from agent.turn import CellarItem

FIRST_COLUMNS: Final = ("number", "quantity")
LAST_COLUMNS: Final = (
    "drink_from",
    "drink_until",
    "usually from",
    "usually until",
    "size",
    "price",
    "currency",
    "place",
    "bought",
    "note",
)
LEFT_OUT_FIELDS: Final = frozenset({"price", "currency", "notes"})
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t")
"""A spreadsheet computes a cell that begins with one of these signs."""


def to_csv(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as CSV in UTF-8, with a byte order mark for spreadsheets."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(_list_titles())
    writer.writerows(_list_rows(items))
    return file.getvalue().encode("utf-8-sig")


def to_workbook(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as a workbook."""
    from openpyxl import Workbook  # noqa: PLC0415 - slow

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Cellar")
    sheet.append(_list_titles())
    for row in _list_rows(items):
        sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@cache
def _list_wine_columns() -> tuple[str, ...]:
    """Return the exported fields of a wine, which are those kept in a cellar.

    The price is in `LAST_COLUMNS`. The note there is that of the user, so the wine's own notes are
    left out.
    """
    columns = []
    for name, field in wine_fields().items():
        if field.in_cellar and name not in LEFT_OUT_FIELDS:
            columns.append(name)
    return tuple(columns)


def _list_titles() -> tuple[str, ...]:
    return *FIRST_COLUMNS, *_list_wine_columns(), *LAST_COLUMNS


def _list_rows(items: Sequence[CellarItem]) -> Iterator[list[str | int | float]]:
    for item in select_in_stock(items):
        values: list[Any] = [item.number, item.count]
        for name in _list_wine_columns():
            values.append(item.wine.get(name, ""))
        window = find_drinking_window(item)
        usual_first, usual_last = window or ("", "")
        size = ""
        if item.size_ml:
            size = f"{item.size_ml} ml"
        values += [
            item.drink_from or "",
            item.drink_until or "",
            usual_first,
            usual_last,
            size,
            item.wine.get("price", ""),
            item.wine.get("currency", ""),
            item.place,
            item.bought,
            item.note,
        ]
        yield [_to_cell(value) for value in values]


def _to_cell(value: Any) -> str | int | float:
    """Return a value as a cell. A list becomes one text, separated as imports read it."""
    if isinstance(value, list | tuple):
        value = "; ".join(value)
    return make_harmless_cell(value)


def make_harmless_cell(cell: str | int | float) -> str | int | float:
    """Return a cell that a spreadsheet does not compute as a formula."""
    if isinstance(cell, str) and cell.startswith(FORMULA_SIGNS):
        return f"'{cell}"
    return cell

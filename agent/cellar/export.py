"""Write a cellar as a file: CSV or a workbook, which can be imported again."""

import csv
import io
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from agent.cellar.items import find_drinking_window, items_in_stock
from agent.sommelier.wine import wine_fields
from agent.turn import CellarItem

FIRST_COLUMNS: Final = ("number", "quantity")
LAST_COLUMNS: Final = (
    *("drink_from", "drink_until", "usually from", "usually until"),
    *("size", "price", "currency", "place", "bought", "note"),
)
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t")
"""With these a cell begins that a spreadsheet would compute."""


def to_csv(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as CSV in UTF-8, with the mark by which spreadsheets know it."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(_titles())
    writer.writerows(_rows(items))
    return file.getvalue().encode("utf-8-sig")


def to_workbook(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as a workbook."""
    from openpyxl import Workbook  # noqa: PLC0415 - slow

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Cellar")
    sheet.append(_titles())
    for row in _rows(items):
        sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@cache
def _wine_columns() -> tuple[str, ...]:
    """Return the fields of a wine that are exported: those kept with the bottles of a user.

    The price follows in `LAST_COLUMNS`, where the note is the user's own.
    """
    fields = wine_fields().items()
    return tuple(
        name
        for name, field in fields
        if field.in_cellar and name not in {"price", "currency", "notes"}
    )


def _titles() -> tuple[str, ...]:
    return *FIRST_COLUMNS, *_wine_columns(), *LAST_COLUMNS


def _rows(items: Sequence[CellarItem]) -> Iterator[list[str | int | float]]:
    for item in items_in_stock(items):
        first, last = find_drinking_window(item) or ("", "")
        cells = [
            item.number,
            item.count,
            *(_to_cell(item.wine.get(name, "")) for name in _wine_columns()),
            item.drink_from or "",
            item.drink_until or "",
            first,
            last,
            f"{item.size_ml} ml" if item.size_ml else "",
            item.wine.get("price", ""),
            item.wine.get("currency", ""),
            item.place,
            item.bought,
            item.note,
        ]
        yield [harmless_cell(cell) for cell in cells]


def _to_cell(value: Any) -> Any:
    """Return the value of a field as a cell; a list is separated as imports read it."""
    return "; ".join(value) if isinstance(value, list | tuple) else value


def harmless_cell(cell: str | int | float) -> str | int | float:
    """Return a cell that no spreadsheet takes for a formula."""
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA_SIGNS)
    return f"'{cell}" if is_formula else cell

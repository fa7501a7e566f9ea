"""Write a cellar as a file: CSV or a workbook, which can be imported again."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Final

from agent.cellar.items import find_drinking_window, items_in_stock
from agent.turn import CellarItem

WINE_COLUMNS: Final = ("vintage", "producer", "name", "style", "country", "region", "appellation")
FURTHER_COLUMNS: Final = ("size", "price", "currency", "place", "bought", "note")
COLUMNS: Final = (
    *("number", "quantity", *WINE_COLUMNS, "grapes", "drink_from", "drink_until"),
    *("usually from", "usually until"),
    *FURTHER_COLUMNS,
)
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t")
"""With these a cell begins that a spreadsheet would compute."""


def to_csv(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as CSV in UTF-8, with the mark by which spreadsheets know it."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    writer.writerows(_rows(items))
    return file.getvalue().encode("utf-8-sig")


def to_workbook(items: Sequence[CellarItem]) -> bytes:
    """Return the bottles in stock as a workbook."""
    from openpyxl import Workbook  # noqa: PLC0415 - slow

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Cellar")
    sheet.append(COLUMNS)
    for row in _rows(items):
        sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _rows(items: Sequence[CellarItem]) -> Iterator[list[str | int | float]]:
    for item in items_in_stock(items):
        first, last = find_drinking_window(item) or ("", "")
        further = (
            f"{item.size_ml} ml" if item.size_ml else "",
            item.wine.get("price", ""),
            item.wine.get("currency", ""),
            item.place,
            item.bought,
            item.note,
        )
        cells = [
            item.number,
            item.count,
            *(item.wine.get(name, "") for name in WINE_COLUMNS),
            "; ".join(item.wine.get("grapes", ())),
            item.drink_from or "",
            item.drink_until or "",
            first,
            last,
            *further,
        ]
        yield [_harmless(cell) for cell in cells]


def _harmless(cell: str | int | float) -> str | int | float:
    """Return a cell that no spreadsheet takes for a formula."""
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA_SIGNS)
    return f"'{cell}" if is_formula else cell

"""Read the list of a user's own bottles, as cellar programs export it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agent.memory.cellar import YEARS, guess_wine, to_cellar_item
from agent.sommelier.wine_fields import wine_fields
from agent.turn import CellarItem
from db.wines.lists.columns import filled_cells, match_columns
from db.wines.lists.listed import OfferCells
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.rows import is_readable, parse_cells, read_offer
from db.wines.lists.tables import read_tables
from db.wines.lists.titles import take_vintage

COUNT_AND_YEARS: Final = ("count", "drink_from", "drink_until")
"""The fields of a user's bottles, in addition to those of a wine."""
GUESSED_FIELDS: Final = ("grapes", "body", "tannin", "acidity")
"""Fields that can be guessed from the name of a wine."""
MAX_CELLAR_ROWS: Final = 5000
MAX_NOTE_CHARS: Final = 200


def read_cellar(data: bytes) -> tuple[list[CellarItem], int]:
    """Return the bottles in a CSV file or workbook, and the number of unreadable rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    tables, _ = read_tables(data)
    kept = [name for name, field in wine_fields().items() if field.in_cellar]
    items: dict[str, CellarItem] = {}
    unread_count = row_count = 0
    has_names = False
    for table in tables:
        rows = [row.cells for row in table.rows]
        columns = match_columns(table.titles, rows, [*kept, *COUNT_AND_YEARS], is_readable)
        has_names = has_names or "name" in columns
        for cells in rows:
            row = filled_cells(columns, cells)
            row_count += 1
            if "name" not in row or row_count > MAX_CELLAR_ROWS:
                unread_count += 1
                continue
            _add(_to_bottles(row), items)
    if not has_names:
        raise CatalogueFileError(Problem("no column of the file holds names of wines"))
    return list(items.values()), unread_count


def _add(item: CellarItem, items: dict[str, CellarItem]) -> None:
    """Add bottles to those of the same wine."""
    if item.count <= 0:
        return
    previous = items.get(item.key)
    count = item.count + (previous.count if previous else 0)
    items[item.key] = replace(item, count=count)


def _to_bottles(row: Mapping[str, str]) -> CellarItem:
    """Return the bottles of a row; guess missing and unreadable cells from the wine's name."""
    title, vintage = take_vintage(row["name"])
    name = " ".join(title.split())
    own = dict(row)
    if name and "vintage" not in row:
        own |= {"name": name, "vintage": vintage}
    readable = {
        field: cell
        for field, cell in own.items()
        if field in wine_fields() and field != "notes" and cell and is_readable(field, cell)
    }
    guess = guess_wine(f"{own['name']} {row.get('region', '')} {row.get('grapes', '')}")
    placeholders = {"id": "own", "producer": own["name"], "country": "-", "style": str(guess.style)}
    offer = OfferCells(price=readable.get("price", ""), currency=readable.get("currency", ""))
    wine = parse_cells(placeholders | readable, [read_offer(offer)])
    guessed = {field: getattr(wine, field) or getattr(guess, field) for field in GUESSED_FIELDS}
    originals = {"producer": row.get("producer", ""), "country": row.get("country", "")}
    count = _read_number(row.get("count", ""))
    drink_from, drink_until = (_read_year(row.get(name, "")) for name in COUNT_AND_YEARS[1:])
    return to_cellar_item(
        wine.model_copy(update=originals | guessed),
        1 if count is None else count,
        drink_from=drink_from,
        drink_until=drink_until,
        note=row.get("notes", "")[:MAX_NOTE_CHARS],
    )


def _read_number(cell: str) -> int | None:
    """Return the whole number in a cell, or None."""
    number = cell.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= len("9999") else None


def _read_year(cell: str) -> int | None:
    """Return a year of a drinking window; CellarTracker exports an unknown one as 9999."""
    year = _read_number(cell)
    return year if year in YEARS else None

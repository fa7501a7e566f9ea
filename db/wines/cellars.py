"""Read and write the cellars of users as CellarTracker and other programs do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from agent.memory.cellar import YEARS, bottles_of, guess_wine
from agent.sommelier.wine import Wine
from agent.turn import Bottles
from db.wines.lists import CELLAR_FIELDS, columns_of, count_known, read_row
from db.wines.tables import CatalogueFileError, read_table

COLUMNS: Final = tuple(
    name for name in (*Wine.model_fields, *CELLAR_FIELDS) if name not in {"id", "in_stock"}
)
"""The fields that are read; ids and stocks of other programs mean nothing here."""
NAMING: Final = ("name", "producer", "vintage")
GUESSED: Final = ("grapes", "body", "tannin", "acidity")
"""The facts that the name of a wine may tell."""
MOST_WINES: Final = 5000
NO_LIST: Final = "no column of the file holds names of wines"


def read_bottles(content: bytes) -> tuple[list[Bottles], int]:
    """Return the bottles that a CSV file or workbook lists, and the number of unreadable rows.

    Raises:
        ValueError: it is no list of wines.
    """
    try:
        table = read_table(content, count_known)
    except CatalogueFileError:
        raise ValueError(NO_LIST) from None
    columns = columns_of(table, COLUMNS)
    if "name" not in columns:
        raise ValueError(NO_LIST)
    found, unread = dict[str, Bottles](), max(0, len(table.rows) - MOST_WINES)
    for _, cells in table.rows[:MOST_WINES]:
        row = {name: cell for name, cell in zip(columns, cells, strict=False) if name and cell}
        wine = _wine_in(row)
        if wine is None:
            unread += 1
        elif (read := _bottles_in(row, wine)).count > 0:
            before = found.get(read.key)
            found[read.key] = replace(read, count=read.count + (before.count if before else 0))
    return list(found.values()), unread


def _bottles_in(row: Mapping[str, str], wine: Wine) -> Bottles:
    cells = [row.get(name, "").partition(".")[0] for name in CELLAR_FIELDS]
    # CellarTracker writes 9999 for a year that nobody gave.
    numbers = [
        int(cell) if cell.isdecimal() and len(cell) <= len("9999") else None for cell in cells
    ]
    count, *years = numbers
    begin, end = (year if year in YEARS else None for year in years)
    count, note = 1 if count is None else count, row.get("notes", "")[:200]
    return bottles_of(wine, count, drink_from=begin, drink_until=end, note=note)


def _wine_in(row: Mapping[str, str]) -> Wine | None:
    """Return the wine of a row; its name fills in for missing cells."""
    name = row.get("name", "")
    by_name = guess_wine(f"{name} {row.get('region', '')} {row.get('grapes', '')}")
    cells = {field: cell for field, cell in row.items() if field in Wine.model_fields}
    cells.pop("notes", None)
    bare = {field: cell for field, cell in cells.items() if field in NAMING}
    for readable in (cells, bare):
        style = readable.get("style") or by_name.style
        try:
            wine = read_row({"producer": name, "country": "-", **readable, "style": style})
        except ValidationError:
            continue
        known = {field: getattr(wine, field) or getattr(by_name, field) for field in GUESSED}
        blank = {"producer": row.get("producer", ""), "country": row.get("country", "")}
        return wine.model_copy(update=blank | known)
    return None

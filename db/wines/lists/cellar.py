"""Read the list of a user's own bottles, as cellar programs export it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from agent.cellar.items import (
    USUAL_SIZE_ML,
    guess_wine,
    parse_cellar_item,
    to_cellar_item,
)
from agent.numerals import YEARS
from agent.sommelier.vocabulary import OfferKind
from agent.sommelier.wine import Wine, wine_fields
from agent.text import pattern
from agent.turn import CellarItem
from db.tables import decode
from db.wines.lists.columns import match_columns, select_filled
from db.wines.lists.listed import Cells, NamedColumn, OfferCells
from db.wines.lists.packing import USUAL_SIZES, read_packing
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.recognition import MAX_READ_NAMES, is_list_of_wines
from db.wines.lists.rows import is_readable, parse_cells, read_offer
from db.wines.lists.tables import WORKBOOK_SIGNATURE, Row, Table, read_tables
from db.wines.lists.titles import take_vintage

OWN_FIELDS: Final = (
    "count",
    "drink_from",
    "drink_until",
    "window",
    "size",
    "location",
    "bin",
    "bought",
    "barcode",
)
"""The fields of a user's bottles, in addition to those of a wine."""
GUESSED_FIELDS: Final = ("grapes", "body", "tannin", "acidity")
"""Fields that can be guessed from the name of a wine."""
MAX_CELLAR_ROWS: Final = 20_000
MAX_NOTE_CHARS: Final = 200
MAX_PLACE_CHARS: Final = 80
MAX_WINDOW_CHARS: Final = 80
MAX_DIGITS: Final = 4
"""A longer number is neither a count of bottles nor a year."""
MAX_CACHED_CELLS: Final = 20_000
MAX_LINES: Final = 5_000
LINE_EDGES: Final = " \t-*•·"
WINDOW: Final = pattern(r"\b([0-9]{4})\b[^0-9]+\b([0-9]{4})\b")
"""A drinking window in one cell: "2022 - 2035"."""
NO_PLACE: Final = frozenset({"none", "unspecified", "-", "n/a"})


@dataclass(frozen=True, slots=True)
class CellarFile:
    """The bottles in a file.

    `unread_count` is the number of rows that could not be read. `columns` pairs the names of the
    columns that were used with their fields. A plain list has none.
    """

    items: list[CellarItem] = field(default_factory=list)
    unread_count: int = 0
    columns: list[NamedColumn] = field(default_factory=list)


def read_cellar(data: bytes) -> CellarFile:
    """Return the bottles in a CSV file, a workbook, or a text with one wine on each line.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    tables = read_tables(data).tables
    items: dict[str, CellarItem] = {}
    used_columns: dict[str, str] = {}
    unread_count = 0
    for table in tables:
        columns = _find_columns(table)
        if not _is_cellar(table, columns):
            continue
        for title, column in zip(table.titles, columns, strict=True):
            if column:
                used_columns[title] = column
        unread_count += _read_rows(table, columns, items)
    if used_columns:
        return CellarFile(
            items=list(items.values()),
            unread_count=unread_count,
            columns=list(used_columns.items()),
        )
    plain_list = read_lines(data)
    if not plain_list.items:
        problem = Problem("no column of the file holds names of wines")
        raise CatalogueFileError(problem)
    return plain_list


def _read_rows(
    table: Table, columns: Sequence[str], items: dict[str, CellarItem]
) -> int:
    """Add the bottles of a table to the items. Return how many rows could not be read."""
    rows = table.rows[:MAX_CELLAR_ROWS]
    unread_count = len(table.rows) - len(rows)
    for row in _read_distinct(rows, columns):
        if "name" in row:
            _add_item(_to_bottles(row), items)
        else:
            unread_count += 1
    return unread_count


def read_lines(data: bytes) -> CellarFile:
    """Return the bottles of a text with one wine on each line, such as "6 Barolo 2016 45".

    Return no bottles for any other text, or for a table.
    """
    if data.startswith(WORKBOOK_SIGNATURE):
        return CellarFile()
    text, _ = decode(data)
    items: dict[str, CellarItem] = {}
    unread_count = 0
    for untrimmed in text.splitlines()[:MAX_LINES]:
        line = untrimmed.strip(LINE_EDGES)
        if not line:
            continue
        item = parse_cellar_item(line)
        has_bottle_count = line[0].isdecimal()
        if item and (has_bottle_count or item.wine.get("vintage")):
            _add_item(item, items)
        else:
            unread_count += 1
    names = [item.wine["name"] for item in items.values()]
    is_other_text = unread_count > len(items) or not is_list_of_wines(names)
    if is_other_text:
        return CellarFile()
    return CellarFile(list(items.values()), unread_count)


def _find_columns(table: Table) -> list[str]:
    """Return the field of each column, "" for an unused column."""
    fields: list[str] = []
    for name, field_of_wine in wine_fields().items():
        if field_of_wine.in_cellar:
            fields.append(name)
    fields += OWN_FIELDS
    rows = [row.cells for row in table.rows]
    return match_columns(table.titles, rows, fields, is_readable)


def _is_cellar(table: Table, columns: Sequence[str]) -> bool:
    """Return whether a table has a column of names, and the first names are names of wines."""
    if "name" not in columns:
        return False
    names: list[str] = []
    for row in table.rows[:MAX_READ_NAMES]:
        cells = select_filled(columns, row.cells)
        producer = cells.get("producer", "")
        name = cells.get("name", "")
        if name:
            names.append(f"{producer} {name}")
    return is_list_of_wines(names, columns, table.titles)


def _read_distinct(
    rows: Sequence[Row], columns: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Yield the cells of each row by field. Skip a row that the file has twice.

    A barcode stands for one bottle, so the same barcode again is the same bottle. If a table counts
    bottles, the same row again is a copy. Without counts, it is another bottle of the same wine.
    """
    seen_barcodes: set[str] = set()
    seen_rows: set[tuple[str, ...]] = set()
    for row in rows:
        cells = select_filled(columns, row.cells)
        barcode = cells.get("barcode")
        if barcode:
            if barcode in seen_barcodes:
                continue
            seen_barcodes.add(barcode)
        elif "count" in columns:
            if row.cells in seen_rows:
                continue
            seen_rows.add(row.cells)
        yield cells


def _add_item(item: CellarItem, items: dict[str, CellarItem]) -> None:
    """Add an item to `items`. If the wine is there already, add its bottles to those.

    Then the places are joined. Of other facts, the first one stays.
    """
    if item.count <= 0:
        return
    known = items.get(item.key)
    if known is None:
        items[item.key] = item
        return
    place = known.place
    if not place:
        place = item.place
    elif item.place and item.place not in place:
        both_places = f"{place}; {item.place}"
        place = both_places[:MAX_PLACE_CHARS]
    items[item.key] = replace(
        known,
        count=known.count + item.count,
        place=place,
        note=known.note or item.note,
        bought=known.bought or item.bought,
        drink_from=known.drink_from or item.drink_from,
        drink_until=known.drink_until or item.drink_until,
    )


def _to_bottles(row: Cells) -> CellarItem:
    """Return the bottles of a row.

    Missing and unreadable cells are guessed from the wine's name.
    """
    count = _read_number(row.get("count", ""))
    if count is None:
        count = 1
    first_year, last_year = _read_window(row)
    return to_cellar_item(
        _to_wine(row),
        count,
        drink_from=first_year,
        drink_until=last_year,
        note=row.get("notes", "")[:MAX_NOTE_CHARS],
        size_ml=_read_size(row),
        place=_read_place(row),
        bought=row.get("bought", "")[:MAX_PLACE_CHARS],
    )


def _to_wine(row: Cells) -> Wine:
    """Return the wine of a row. It has a producer and a country only if the row has them."""
    cells = dict(row)
    title, vintage = take_vintage(row["name"])
    name_without_vintage = " ".join(title.split())
    if name_without_vintage and "vintage" not in row:
        cells["name"] = name_without_vintage
        cells["vintage"] = vintage
    texts = [cells["name"], row.get("region", ""), row.get("grapes", "")]
    guess = _guess_wine(" ".join(texts))
    # A wine must have these. The readable cells of the row replace them.
    used = {
        "id": "own",
        "producer": cells["name"],
        "country": "-",
        "style": str(guess.style),
        **_select_readable(cells),
    }
    currency = used.get("currency", "")
    offer = OfferCells(price=_read_price(used), currency=currency)
    wine = parse_cells(used, [read_offer(offer)])
    changes: dict[str, object] = {
        "producer": row.get("producer", ""),
        "country": row.get("country", ""),
    }
    for name in GUESSED_FIELDS:
        changes[name] = getattr(wine, name) or getattr(guess, name)
    return wine.model_copy(update=changes)


def _select_readable(cells: Cells) -> dict[str, str]:
    """Return the cells of a wine's fields that can be read. Notes are the user's own."""
    readable: dict[str, str] = {}
    for name, cell in cells.items():
        is_of_wine = name in wine_fields() and name != "notes"
        if is_of_wine and cell and _is_readable(name, cell):
            readable[name] = cell
    return readable


# Some exports have a row for each bottle, so that the same cells come many times.
_is_readable = lru_cache(MAX_CACHED_CELLS)(is_readable)
_guess_wine = lru_cache(MAX_CACHED_CELLS)(guess_wine)


def _read_price(row: Cells) -> str:
    """Return the cell of a price, or "" for 0: CellarTracker writes that for an unknown price."""
    price = row.get("price", "")
    digits = [character for character in price if character.isdecimal()]
    if all(digit == "0" for digit in digits):
        return ""
    return price


def _read_size(row: Cells) -> int | None:
    """Return the size of a bottle in millilitres, or None if it is unknown or the usual one."""
    packing = read_packing(row.get("size", ""))
    if packing is None:
        packing = read_packing(row["name"])
    if packing is None or packing.kind is OfferKind.CASE:
        return None
    size = packing.size_ml or USUAL_SIZES.get(packing.kind)
    if size == USUAL_SIZE_ML:
        return None
    return size


def _read_place(row: Cells) -> str:
    """Return where the bottles lie, from the cells of the location and the bin."""
    parts: list[str] = []
    for column in ("location", "bin"):
        part = row.get(column, "")
        if part and part.lower() not in NO_PLACE and part not in parts:
            parts.append(part)
    return ", ".join(parts)[:MAX_PLACE_CHARS]


def _read_number(cell: str) -> int | None:
    """Return the whole number of at most four digits in a cell, or None."""
    number, _, _ = cell.partition(".")
    if number.isdecimal() and len(number) <= MAX_DIGITS:
        return int(number)
    return None


def _read_window(row: Cells) -> tuple[int | None, int | None]:
    """Return the years of a drinking window, from two columns, or from one: "2022 - 2035"."""
    first = _read_year(row.get("drink_from", ""))
    last = _read_year(row.get("drink_until", ""))
    if first or last:
        return first, last
    cell = row.get("window", "")
    window = WINDOW.search(cell[:MAX_WINDOW_CHARS])
    if window is None:
        return None, None
    return _read_year(window[1]), _read_year(window[2])


def _read_year(cell: str) -> int | None:
    """Return a year of a drinking window, or None. CellarTracker writes 9999 if it is unknown."""
    year = _read_number(cell)
    if year in YEARS:
        return year
    return None

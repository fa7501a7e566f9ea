"""Read the list of a user's own bottles, as cellar programs export it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from agent.cellar.items import (
    USUAL_SIZE_ML,
    YEARS,
    guess_wine,
    parse_cellar_item,
    to_cellar_item,
)
from agent.sommelier.vocabulary import OfferKind
from agent.sommelier.wine import Wine, wine_fields
from agent.text import pattern
from agent.turn import CellarItem
from db.tables import decode
from db.wines.lists.cells import read_number
from db.wines.lists.columns import filled_cells, match_columns
from db.wines.lists.listed import OfferCells
from db.wines.lists.packing import USUAL_SIZES, read_packing
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.recognition import MAX_READ_NAMES, lists_wines
from db.wines.lists.rows import is_readable, parse_cells, read_offer
from db.wines.lists.tables import WORKBOOK_SIGNATURE, Row, Table, read_tables
from db.wines.lists.titles import take_vintage

OWN_FIELDS: Final = (
    *("count", "drink_from", "drink_until", "window", "size"),
    *("location", "bin", "bought", "barcode"),
)
"""The fields of a user's bottles, in addition to those of a wine."""
GUESSED_FIELDS: Final = ("grapes", "body", "tannin", "acidity")
"""Fields that can be guessed from the name of a wine."""
MAX_CELLAR_ROWS: Final = 20_000
MAX_NOTE_CHARS: Final = 200
MAX_PLACE_CHARS: Final = 80
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
    columns that were used with their fields; empty for a plain list.
    """

    items: list[CellarItem] = field(default_factory=list)
    unread_count: int = 0
    columns: list[tuple[str, str]] = field(default_factory=list)


def read_cellar(data: bytes) -> CellarFile:
    """Return the bottles in a CSV file, a workbook, or a list with one wine a line.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    tables = read_tables(data).tables
    items: dict[str, CellarItem] = {}
    used_columns: dict[str, str] = {}
    unread_count = 0
    for table in tables:
        columns = _match(table)
        if "name" not in columns:
            continue
        if not lists_wines(_names_in(table, columns), columns, table.titles):
            continue
        pairs = zip(table.titles, columns, strict=True)
        used_columns |= {title: field for title, field in pairs if field}
        rows = table.rows[:MAX_CELLAR_ROWS]
        unread_count += len(table.rows) - len(rows)
        for row in _distinct(rows, columns):
            if "name" not in row:
                unread_count += 1
                continue
            _add(_to_bottles(row), items)
    if used_columns:
        return CellarFile([*items.values()], unread_count, [*used_columns.items()])
    lines = read_lines(data)
    if not lines.items:
        raise CatalogueFileError(Problem("no column of the file holds names of wines"))
    return lines


def read_lines(data: bytes) -> CellarFile:
    """Return the bottles of a list like "6 Barolo 2016 45", with one wine a line.

    A table is no such list: most of its lines have a delimiter.
    """
    if data.startswith(WORKBOOK_SIGNATURE):
        return CellarFile()
    lines = [
        line.strip(LINE_EDGES) for line in decode(data)[0].splitlines()[:MAX_LINES]
    ]
    lines = [line for line in lines if line]
    items: dict[str, CellarItem] = {}
    unread_count = 0
    for line in lines:
        item = parse_cellar_item(line)
        is_dated = item is not None and (
            item.wine.get("vintage") or line[0].isdecimal()
        )
        if item is None or not is_dated:
            unread_count += 1
        else:
            _add(item, items)
    names = [item.wine["name"] for item in items.values()]
    if unread_count > len(items) or not lists_wines(
        names
    ):  # a text about something else
        return CellarFile()
    return CellarFile([*items.values()], unread_count)


def _match(table: Table) -> list[str]:
    kept = [name for name, known in wine_fields().items() if known.in_cellar]
    rows = [row.cells for row in table.rows]
    return match_columns(table.titles, rows, [*kept, *OWN_FIELDS], is_readable)


def _names_in(table: Table, columns: Sequence[str]) -> list[str]:
    """Return the producers and names of the first rows."""
    rows = (filled_cells(columns, row.cells) for row in table.rows[:MAX_READ_NAMES])
    return [f"{row.get('producer', '')} {row['name']}" for row in rows if "name" in row]


def _distinct(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the cells of rows by field; what a file says twice only once.

    A bottle with a barcode is one bottle. With counts, the same row twice is a copy.
    """
    seen: set[tuple[str, ...] | str] = set()
    for row in rows:
        cells = filled_cells(columns, row.cells)
        key: tuple[str, ...] | str | None = cells.get("barcode")
        if key is None and "count" in columns:
            key = row.cells
        if key is not None and key in seen:
            continue
        if key is not None:
            seen.add(key)
        yield cells


def _add(item: CellarItem, items: dict[str, CellarItem]) -> None:
    """Add bottles to those of the same wine; places are joined, other facts are the first ones."""
    if item.count <= 0:
        return
    known = items.get(item.key)
    if known is None:
        items[item.key] = item
        return
    places = known.place
    if item.place and item.place not in places and len(places) < MAX_PLACE_CHARS:
        places = "; ".join(filter(None, (places, item.place)))[:MAX_PLACE_CHARS]
    items[item.key] = replace(
        known,
        count=known.count + item.count,
        place=places,
        note=known.note or item.note,
        bought=known.bought or item.bought,
        drink_from=known.drink_from or item.drink_from,
        drink_until=known.drink_until or item.drink_until,
    )


def _to_bottles(row: Mapping[str, str]) -> CellarItem:
    """Return the bottles of a row; guess missing and unreadable cells from the wine's name."""
    title, vintage = take_vintage(row["name"])
    name = " ".join(title.split())
    own = dict(row)
    if name and "vintage" not in row:
        own |= {"name": name, "vintage": vintage}
    readable = {
        name: cell
        for name, cell in own.items()
        if name in wine_fields()
        and name != "notes"
        and cell
        and _is_readable(name, cell)
    }
    guess = _guess(f"{own['name']} {row.get('region', '')} {row.get('grapes', '')}")
    placeholders = {
        "id": "own",
        "producer": own["name"],
        "country": "-",
        "style": str(guess.style),
    }
    offer = OfferCells(
        price=_read_price(readable), currency=readable.get("currency", "")
    )
    wine = parse_cells(placeholders | readable, [read_offer(offer)])
    guessed = {
        name: getattr(wine, name) or getattr(guess, name) for name in GUESSED_FIELDS
    }
    originals = {"producer": row.get("producer", ""), "country": row.get("country", "")}
    count = _read_number(row.get("count", ""))
    first_year, last_year = _read_window(row)
    return to_cellar_item(
        wine.model_copy(update=originals | guessed),
        1 if count is None else count,
        drink_from=first_year,
        drink_until=last_year,
        note=row.get("notes", "")[:MAX_NOTE_CHARS],
        size_ml=_read_size(row),
        place=_read_place(row),
        bought=row.get("bought", "")[:MAX_PLACE_CHARS],
    )


# A bottle has a row in some exports, so the same cells come many times.
_is_readable = lru_cache(MAX_CACHED_CELLS)(is_readable)


@lru_cache(MAX_CACHED_CELLS)
def _guess(name: str) -> Wine:
    return guess_wine(name)


def _read_price(row: Mapping[str, str]) -> str:
    """Return the cell of a price; CellarTracker exports an unknown one as 0."""
    price = row.get("price", "")
    number = read_number(price)
    return price if any(digit in number for digit in "123456789") else ""


def _read_size(row: Mapping[str, str]) -> int | None:
    """Return the size of a bottle in millilitres if it is not the usual one."""
    packing = read_packing(row.get("size", "")) or read_packing(row["name"])
    if packing is None or packing.kind is OfferKind.CASE:
        return None
    size = packing.size_ml or USUAL_SIZES.get(packing.kind)
    return None if size == USUAL_SIZE_ML else size


def _read_place(row: Mapping[str, str]) -> str:
    """Return where bottles lie: the location and the bin."""
    parts = (row.get("location", ""), row.get("bin", ""))
    known = (part for part in parts if part and part.lower() not in NO_PLACE)
    return ", ".join(dict.fromkeys(known))[:MAX_PLACE_CHARS]


def _read_number(cell: str) -> int | None:
    """Return the whole number in a cell, or None."""
    number = cell.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= len("9999") else None


def _read_window(row: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the years of a drinking window, from two columns or from one: "2022 - 2035"."""
    first = _read_year(row.get("drink_from", ""))
    last = _read_year(row.get("drink_until", ""))
    if first or last:
        return first, last
    both = WINDOW.search(row.get("window", "")[:MAX_PLACE_CHARS])
    return (_read_year(both[1]), _read_year(both[2])) if both else (None, None)


def _read_year(cell: str) -> int | None:
    """Return a year of a drinking window; CellarTracker exports an unknown one as 9999."""
    year = _read_number(cell)
    return year if year in YEARS else None

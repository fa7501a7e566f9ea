"""Cellars of people as CSV files: read as they come, CellarTracker's too, and written."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from agent.memory.cellar import YEARS, bottles_of, guessed, window_of, wine_of
from agent.person import Bottles
from agent.sommelier.wine import Wine, folded
from db.wines.lists import (
    CatalogueFileError,
    OwnRow,
    columns_of,
    decoded,
    known_columns,
    read_table,
)

COLUMNS: Final = (
    "Wine,Producer,Vintage,Country,Region,Appellation,Varietal,Type,Quantity,Price,Currency,"
    "BeginConsume,EndConsume,Note"
).split(",")
"""What is written, by CellarTracker's names."""
COUNTED: Final = frozenset(
    "quantity qty bottles count inventory anzahl menge flaschen bestand quantite bouteilles "
    "cantidad botellas quantita bottiglie aantal flessen quantidade garrafas".split()
) | {"on hand"}
BEGINS: Final = frozenset({"beginconsume", "begin consume", "drink from", "trinken ab"})
ENDS: Final = frozenset(
    {"endconsume", "end consume", "drink until", "drink by", "trinken bis", "bis"}
)
MOST_WINES: Final = 5000
NO_LIST: Final = "no column of the file holds names of wines"


def read_bottles(content: bytes) -> tuple[list[Bottles], int]:
    """Return the bottles that a CSV file lists, and how many rows could not be read.

    Raises:
        ValueError: it is no list of wines.
    """
    try:
        table = read_table(decoded(content)[0], known_columns)
    except (CatalogueFileError, LookupError, UnicodeDecodeError):
        raise ValueError(NO_LIST) from None
    columns = columns_of(table)
    if "name" not in columns:
        raise ValueError(NO_LIST)
    found, left = dict[str, Bottles](), 0
    for _, cells in table.rows[:MOST_WINES]:
        named = dict(zip(map(folded, table.names), cells, strict=False))
        row = {name: cell for name, cell in zip(columns, cells, strict=False) if name and cell}
        wine = _wine(row)
        if wine is None:
            left += 1
            continue
        count = _number(named, COUNTED)
        read = bottles_of(
            wine,
            1 if count is None else count,
            drink_from=_year(named, BEGINS),
            drink_until=_year(named, ENDS),
            note=row.get("notes", "")[:200],
        )
        if read.count > 0:
            before = found.get(read.key)
            found[read.key] = bottles_of(
                wine,
                read.count + (before.count if before else 0),
                drink_from=read.drink_from,
                drink_until=read.drink_until,
                note=read.note,
            )
    return list(found.values()), left + max(0, len(table.rows) - MOST_WINES)


def _wine(row: Mapping[str, str]) -> Wine | None:
    """The wine of a row; what it does not tell is what its name does."""
    name = row.get("name", "")
    if not name:
        return None
    by_name = guessed(f"{name} {row.get('region', '')} {row.get('grapes', '')}")
    cells = {key: cell for key, cell in row.items() if key not in ("id", "in_stock", "notes")}
    bare = {key: cell for key, cell in cells.items() if key in ("name", "producer", "vintage")}
    for kept in (cells, bare):
        try:
            style = kept.get("style") or by_name.style
            given = {"producer": name, "country": "-", **kept, "style": style}
            wine = OwnRow.model_validate(given).wine()
        except ValidationError:
            continue
        blank = {"producer": row.get("producer", ""), "country": row.get("country", "")}
        more = {
            "grapes": wine.grapes or by_name.grapes,
            "body": wine.body or by_name.body,
            "tannin": wine.tannin or by_name.tannin,
            "acidity": wine.acidity or by_name.acidity,
        }
        return wine.model_copy(update=blank | more)
    return None


def _year(named: Mapping[str, str], names: frozenset[str]) -> int | None:
    """The year in such a column; CellarTracker writes 9999 for one that nobody gave."""
    year = _number(named, names)
    return year if year in YEARS else None


def _number(named: Mapping[str, str], names: frozenset[str]) -> int | None:
    """The whole number in the first column of one of these names; None where there is none."""
    cell = next((cell for name, cell in named.items() if name in names), "")
    bare = cell.strip().split(".")[0]
    return int(bare) if bare.isascii() and bare.isdecimal() and len(bare) < len("10000") else None


def write_bottles(bottles: Sequence[Bottles]) -> bytes:
    """Write the bottles that somebody owns as a CSV file, which `read_bottles` and others read."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    rows.writerows(_cells(each) for each in bottles if each.count)
    return out.getvalue().encode("utf-8-sig")


def _cells(bottles: Bottles) -> Iterator[object]:
    wine, window = wine_of(bottles), window_of(bottles) or ("", "")
    yield from (wine.name, wine.producer, wine.vintage or "", wine.country, wine.region)
    yield from (wine.appellation, ";".join(wine.grapes), wine.style, bottles.count)
    currency = wine.currency if wine.price is not None else ""
    yield from ("" if wine.price is None else wine.price, currency, *window, bottles.note)

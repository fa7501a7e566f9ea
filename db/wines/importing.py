"""Import wines from the lists of shops and cellar programs, and keep a list's wines in step.

A wine whose id exists is replaced, so importing a file twice changes nothing. Cellars of users are
read and written as CellarTracker has them.
"""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from sqlalchemy import exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.memory.cellar import YEARS, bottles_of, guessed, window_of, wine_of
from agent.sommelier.wine import Wine, folded
from agent.turn import Bottles
from db.decoding import Undecodable, decode
from db.engine import Sessions
from db.models import WineRow
from db.wines.catalogue import chunks, load_wines, save_wines, sources_of
from db.wines.lists import (
    CELLAR_FIELDS,
    columns_of,
    count_known,
    currency_in,
    problems_of,
    read_row,
)
from db.wines.tables import (
    WORKBOOK,
    CatalogueFileError,
    Problem,
    Table,
    csv_table,
    workbook_table,
)

Progress = Callable[[int, int], None]
"""Called with the number of wines done, and of all wines."""

STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
SAMPLES: Final = "starter"
"""The source of the wines that a new installation has."""
REQUIRED: Final = {"name", "style"}
ASSUMED: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""The value in each row of a file that has no such column."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of wines by what an import did with them; `gone` ones are out of stock now."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, the problems of its other rows, and how it was understood.

    `columns` are pairs of a column's name and its field, "" for a column that is not used;
    `assumed` are the fields for which there is no column.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    assumed: frozenset[str] = frozenset()
    encoding: str = "utf-8"
    source: str = ""


async def import_catalogue(
    sessions: Sessions, path: Path, progress: Progress | None = None, source: str | None = None
) -> ImportReport:
    """Import the wines of a file, all or none.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source), progress)


async def load_starter(sessions: Sessions, path: Path = STARTER) -> ImportReport | None:
    """Import the starter catalogue into an empty database; return None if it holds wines."""
    async with sessions() as session:
        has_wines = await session.scalar(select(exists(select(WineRow.number))))
    if has_wines:
        return None
    return await import_catalogue(sessions, path, source=SAMPLES)


async def import_wines(
    sessions: Sessions,
    file: CatalogueFile,
    progress: Progress | None = None,
    *,
    without_samples: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Add or replace the wines of a file in one transaction; `dry_run` only counts.

    Wines of an earlier file of this name that are missing now are out of stock from now on, and so
    are those of the starter catalogue with `without_samples`.
    """
    fates: Counter[str] = Counter()
    async with sessions.begin() as session:
        for wines in chunks(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            sources = await sources_of(session, list(stored))
            changed = [wine for wine in wines if stored.get(wine.id) != wine]
            fates["added"] += sum(wine.id not in stored for wine in wines)
            fates["updated"] += sum(wine.id in stored for wine in changed)
            fates["unchanged"] += len(wines) - len(changed)
            moved = [w for w in wines if stored.get(w.id) == w and sources[w.id] != file.source]
            if (to_save := changed + moved) and not dry_run:
                await save_wines(session, to_save, file.source)
            if progress:
                progress(fates.total(), len(file.wines))
        gone = await _gone(session, file, without_samples=without_samples)
        if not dry_run:
            for ids in chunks(gone):
                away = update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False)
                await session.execute(away)
    return ImportReport(**fates, gone=len(gone))


async def _gone(session: AsyncSession, file: CatalogueFile, *, without_samples: bool) -> list[str]:
    """Return the ids of wines in stock from an earlier file of this name that are not in `file`."""
    sources = {file.source, *([SAMPLES] if without_samples else [])} - {""}
    of_source = WineRow.source.in_(sources) & WineRow.in_stock
    here = {wine.id for wine in file.wines}
    found = await session.scalars(select(WineRow.id).where(of_source))
    return [wine_id for wine_id in found if wine_id not in here]


async def count_samples(sessions: Sessions) -> int:
    """Count the wines of the starter catalogue that are in stock."""
    samples = (WineRow.source == SAMPLES) & WineRow.in_stock
    async with sessions() as session:
        return await session.scalar(select(func.count()).where(samples)) or 0


def read_catalogue(path: Path, encoding: str | None = None) -> CatalogueFile:
    """Return the wines of a CSV file or workbook, and the problems of its other rows.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    try:
        data = path.read_bytes()
        if data.startswith(WORKBOOK):
            file, read_as = parse_table(workbook_table(data, count_known)), "a workbook"
        else:
            text, read_as = (data.decode(encoding), encoding) if encoding else decode(data)
            file = parse_catalogue(text)
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except (UnicodeDecodeError, LookupError):
        reason = f"{path} is not in {encoding}; save it as 'CSV UTF-8'"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except Undecodable as error:
        raise CatalogueFileError([Problem(0, "", f"{path} {error}")]) from None
    return replace(file, encoding=read_as, source=_source(path))


def _source(path: Path) -> str:
    """Return the name by which a list is known again, without numbers: `L 2026-10.csv` is `l`."""
    words = folded(path.stem).split()
    return " ".join(word for word in words if not any(map(str.isdigit, word))) or path.stem


def parse_catalogue(text: str) -> CatalogueFile:
    """Return the wines of a CSV text, and the problems of its other rows.

    Raises:
        CatalogueFileError: it is not CSV, or no list of wines.
    """
    return parse_table(csv_table(text, count_known))


def parse_table(table: Table) -> CatalogueFile:
    """Return the wines of a table, each id once, and the problems of its other rows.

    Raises:
        CatalogueFileError: it is no list of wines.
    """
    columns = columns_of(table)
    if missing := sorted(REQUIRED - set(columns)):
        known = ",".join(Wine.model_fields)
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError([Problem(1, "", reason)])
    assumed = {field: value for field, value in ASSUMED.items() if field not in columns}
    if "price" in columns and (currency := currency_in(table.names[columns.index("price")])):
        assumed["currency"] = currency
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    for line, cells in table.rows:
        if len(cells) < len(columns) or any(cells[len(columns) :]):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            problems.append(Problem(line, "", reason))
            continue
        filled = zip(columns, cells, strict=False)
        try:
            wine = read_row(assumed | {field: cell for field, cell in filled if field and cell})
        except ValidationError as error:
            problems += problems_of(line, error)
            continue
        if wines.setdefault(wine.id, wine) is not wine:
            problems.append(Problem(line, "id", f"'{wine.id}' is in the file twice"))
    named = tuple(zip(table.names, columns, strict=True))
    return CatalogueFile(tuple(wines.values()), tuple(problems), named, frozenset(assumed))


CELLAR_COLUMNS: Final = (
    "Wine,Producer,Vintage,Country,Region,Appellation,Varietal,Type,Quantity,Price,Currency,"
    "BeginConsume,EndConsume,Note"
).split(",")
"""What is written, by CellarTracker's names."""
COLUMNS: Final = tuple(
    name for name in (*Wine.model_fields, *CELLAR_FIELDS) if name not in {"id", "in_stock"}
)
"""The fields that are read; ids and stocks of other programs mean nothing here."""
NAMING: Final = ("name", "producer", "vintage")
GUESSED: Final = ("grapes", "body", "tannin", "acidity")
"""What the name of a wine may tell."""
MOST_WINES: Final = 5000
NO_LIST: Final = "no column of the file holds names of wines"


def read_bottles(content: bytes) -> tuple[list[Bottles], int]:
    """Return the bottles that a CSV file lists, and how many rows could not be read.

    Raises:
        ValueError: it is no list of wines.
    """
    try:
        table = csv_table(decode(content)[0], count_known)
    except (CatalogueFileError, Undecodable):
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
            continue
        count, begin, end = (_whole_number(row.get(name, "")) for name in CELLAR_FIELDS)
        read = bottles_of(
            wine,
            1 if count is None else count,
            # CellarTracker writes 9999 for a year that nobody gave.
            drink_from=begin if begin in YEARS else None,
            drink_until=end if end in YEARS else None,
            note=row.get("notes", "")[:200],
        )
        if read.count > 0:
            before = found.get(read.key)
            found[read.key] = replace(read, count=read.count + (before.count if before else 0))
    return list(found.values()), unread


def _wine_in(row: Mapping[str, str]) -> Wine | None:
    """Return the wine of a row; its name tells what the other cells do not."""
    name = row.get("name", "")
    if not name:
        return None
    by_name = guessed(f"{name} {row.get('region', '')} {row.get('grapes', '')}")
    cells = {field: cell for field, cell in row.items() if field in Wine.model_fields}
    cells.pop("notes", None)
    bare = {field: cell for field, cell in cells.items() if field in NAMING}
    for readable in (cells, bare):
        try:
            style = readable.get("style") or by_name.style
            wine = read_row({"producer": name, "country": "-", **readable, "style": style})
        except ValidationError:
            continue
        known = {field: getattr(wine, field) or getattr(by_name, field) for field in GUESSED}
        blank = {"producer": row.get("producer", ""), "country": row.get("country", "")}
        return wine.model_copy(update=blank | known)
    return None


def _whole_number(cell: str) -> int | None:
    """Return the whole number in a cell, None if it holds none."""
    bare = cell.strip().split(".")[0]
    return int(bare) if bare.isascii() and bare.isdecimal() and len(bare) < len("10000") else None


def write_bottles(bottles: Sequence[Bottles]) -> bytes:
    """Write the bottles that somebody owns as a CSV file, which `read_bottles` and others read."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(CELLAR_COLUMNS)
    rows.writerows(_cells_of(owned) for owned in bottles if owned.count)
    return out.getvalue().encode("utf-8-sig")


def _cells_of(bottles: Bottles) -> Iterator[object]:
    wine, window = wine_of(bottles), window_of(bottles) or ("", "")
    yield from (wine.name, wine.producer, wine.vintage or "", wine.country, wine.region)
    yield from (wine.appellation, ";".join(wine.grapes), wine.style, bottles.count)
    currency = wine.currency if wine.price is not None else ""
    yield from ("" if wine.price is None else wine.price, currency, *window, bottles.note)

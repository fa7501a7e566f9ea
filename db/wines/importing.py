"""Importing wines from CSV files, and keeping what a file of the same name held before in step.

Lists of shops and cellar programs are understood (`db/wines/lists.py`), and the X-Wines data set as
published. An id that exists already is replaced, so importing a file twice changes nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.synonyms import folded
from agent.sommelier.wine import Wine
from db.engine import Sessions
from db.models import WineRow
from db.wines.csv_files import (
    CatalogueFileError,
    FileRow,
    Problem,
    Table,
    decoded,
    read_rows,
    read_table,
)
from db.wines.lists import OwnRow, columns_of, currency_of, known_columns
from db.wines.rows import chunks, load_wines, save_wines, sources_of
from db.wines.xwines import HEADER, XWinesRow

Progress = Callable[[int, int], None]
"""Called with wines done and wines in all."""

STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
SAMPLES: Final = "starter"
"""Where the wines of a fresh installation come from."""
REQUIRED: Final = {"name", "style"}
ASSUMED: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""What is taken to be so in every row of a file without such a column."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do, in wines; `gone` are out of stock now."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, each id once, what is wrong with the rest, and how it was understood.

    `left_out` are details that wines are imported without, `columns` pairs of a column's name in
    the file and its field, "" for a column that is not used; `assumed` what no column tells.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    assumed: frozenset[str] = frozenset()
    encoding: str = "utf-8"
    source: str = ""


async def import_catalogue(
    sessions: Sessions, path: Path, progress: Progress | None = None, source: str | None = None
) -> ImportReport:
    """Import the wines of a CSV file, all or none, in one transaction.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source), progress)


async def load_starter(sessions: Sessions, path: Path = STARTER) -> ImportReport | None:
    """Import the starter catalogue into an empty database; None if it holds wines already."""
    async with sessions() as session:
        if await session.scalar(select(exists(select(WineRow.number)))):
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
    """Add or replace the wines of a file, in one transaction; those stored already are left.

    What an earlier file of this name held and this one does not is out of stock from now on, and
    so is every wine of the starter catalogue `without_samples`.
    """
    fates: Counter[str] = Counter()
    async with sessions.begin() as session:
        for wines in chunks(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            sources = await sources_of(session, list(stored))
            changed = [wine for wine in wines if stored.get(wine.id) != wine]
            moved = [w for w in wines if stored.get(w.id) == w and sources[w.id] != file.source]
            fates["added"] += sum(wine.id not in stored for wine in wines)
            fates["updated"] += sum(wine.id in stored for wine in changed)
            fates["unchanged"] += len(wines) - len(changed)
            if (to_save := changed + moved) and not dry_run:
                await save_wines(session, to_save, file.source)
            session.expunge_all()
            if progress:
                progress(fates.total(), len(file.wines))
        gone = await _gone(session, file, without_samples=without_samples)
        if not dry_run:
            for ids in chunks(gone):
                away = update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False)
                await session.execute(away)
    return ImportReport(**fates, gone=len(gone))


async def _gone(session: AsyncSession, file: CatalogueFile, *, without_samples: bool) -> list[str]:
    """The ids of wines in stock that came from a file of this name, and are not in it."""
    sources = {file.source, *([SAMPLES] if without_samples else [])} - {""}
    of_source = WineRow.source.in_(sources) & WineRow.in_stock
    here = {wine.id for wine in file.wines}
    found = await session.scalars(select(WineRow.id).where(of_source))
    return [wine_id for wine_id in found if wine_id not in here]


async def count_samples(sessions: Sessions) -> int:
    """Count the wines of the starter catalogue that are in stock."""
    async with sessions() as session:
        samples = (WineRow.source == SAMPLES) & WineRow.in_stock
        return await session.scalar(select(func.count()).where(samples)) or 0


def read_catalogue(path: Path, encoding: str | None = None) -> CatalogueFile:
    """Return the wines of a CSV file, and what is wrong with the rest of it.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    try:
        content, read_as = decoded(path.read_bytes(), encoding)
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except (UnicodeDecodeError, LookupError):
        reason = f"{path} is not in {encoding or 'a known encoding'}; save it as 'CSV UTF-8'"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    return replace(parse_catalogue(content), encoding=read_as, source=_source(path))


def _source(path: Path) -> str:
    """The name by which a list is known again, without numbers: `L 2026-10.csv` is `l`."""
    words = folded(path.stem).split()
    return " ".join(word for word in words if not any(map(str.isdigit, word))) or path.stem


def parse_catalogue(content: str) -> CatalogueFile:
    """Return the wines of a CSV text, and what is wrong with the rest of it.

    Raises:
        CatalogueFileError: it is not CSV, or no list of wines.
    """
    table = read_table(content, known_columns)
    columns, kind, everywhere = _understood(table)
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for row in read_rows(table, columns, kind, everywhere):
        problems += row.problems
        left_out += row.left_out
        if row.wine and row.wine.id in wines:
            problems.append(Problem(row.line, "id", f"'{row.wine.id}' is in the file twice"))
        elif row.wine:
            wines[row.wine.id] = row.wine
    return CatalogueFile(
        tuple(wines.values()),
        tuple(problems),
        tuple(left_out),
        tuple(zip(table.names, columns, strict=True)),
        assumed=frozenset(everywhere),
    )


def _understood(table: Table) -> tuple[list[str], type[FileRow], dict[str, str]]:
    """The field of each column, the kind of row, and what is so in every row."""
    if set(table.names) >= set(HEADER):
        return [name if name in HEADER else "" for name in table.names], XWinesRow, {}
    columns = columns_of(table)
    if missing := sorted(REQUIRED - set(columns)):
        known = ",".join(OwnRow.columns())
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError([Problem(1, "", reason)])
    everywhere = {name: value for name, value in ASSUMED.items() if name not in columns}
    if "price" in columns and (currency := currency_of(table.names[columns.index("price")])):
        everywhere["currency"] = currency
    return columns, OwnRow, everywhere

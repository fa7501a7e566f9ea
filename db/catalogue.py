"""Importing wines from CSV files: all of a file or nothing of it.

A file is UTF-8 with a header line and commas. Two headers are known:

- the generic one, `id,producer,name,vintage,country,region,appellation,grapes,style,colour,
  sweetness,body,acidity,tannin,abv,price,currency,foods,allergens,notes,in_stock`, in any order;
  only producer, name, country and style are required; lists are separated by `;`; `docs/wines.md`
  explains the columns;
- the one of the X-Wines data set, as published.

An id that exists already is replaced, so importing a file twice changes nothing.
"""

import asyncio
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import exists, select

from agent.sommelier.wine import Wine
from db import generic_csv, xwines
from db.csv_rows import CatalogueFileError, Fields, Problem
from db.engine import Sessions
from db.models import WineRow
from db.rows import chunks, load_wines, save_wines

Progress = Callable[[int, int], None]
"""Called with wines done and wines in all."""

STARTER: Final = Path(__file__).parent / "starter" / "wines.csv"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `problems` are details left out of wines that were imported."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, each id once, and what was left out of them."""

    wines: tuple[Wine, ...]
    left_out: tuple[Problem, ...] = ()


async def import_catalogue(
    sessions: Sessions, path: Path, progress: Progress | None = None
) -> ImportReport:
    """Import the wines of a CSV file, in one transaction.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    return await import_wines(sessions, file, progress)


async def load_starter(sessions: Sessions, path: Path = STARTER) -> ImportReport | None:
    """Import the starter catalogue into an empty database; None if it holds wines already."""
    async with sessions() as session:
        if await session.scalar(select(exists(select(WineRow.number)))):
            return None
    return await import_catalogue(sessions, path)


async def import_wines(
    sessions: Sessions, file: CatalogueFile, progress: Progress | None = None
) -> ImportReport:
    """Add or replace these wines, in one transaction; those that are stored already are left."""
    counts = {"added": 0, "updated": 0, "unchanged": 0}
    done = 0
    async with sessions.begin() as session:
        for wines in chunks(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            for wine in wines:
                counts[_fate(wine, stored)] += 1
            changed = [wine for wine in wines if stored.get(wine.id) != wine]
            if changed:
                await save_wines(session, changed)
            session.expunge_all()
            done += len(wines)
            if progress:
                progress(done, len(file.wines))
    return ImportReport(**counts, problems=file.left_out)


def read_catalogue(path: Path) -> CatalogueFile:
    """The wines of a CSV file.

    Raises:
        CatalogueFileError: names the file, or every bad row with column and reason.
    """
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except UnicodeDecodeError as error:
        reason = f"{path} is not UTF-8 (byte {error.start}); save it as 'CSV UTF-8'"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    return parse_catalogue(content)


def parse_catalogue(content: str) -> CatalogueFile:
    """The wines of a CSV text.

    Raises:
        CatalogueFileError: every bad row with line, column and reason.
    """
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for fields, wine in _read(content):
        problems += fields.problems
        left_out += fields.left_out
        if wine is None:
            continue
        if wine.id in wines:
            problems.append(Problem(fields.line, "id", f"'{wine.id}' is in the file twice"))
        wines.setdefault(wine.id, wine)
    if problems:
        raise CatalogueFileError(problems)
    return CatalogueFile(tuple(wines.values()), tuple(left_out))


def _fate(wine: Wine, stored: Mapping[str, Wine]) -> str:
    if wine.id not in stored:
        return "added"
    return "unchanged" if stored[wine.id] == wine else "updated"


def _read(content: str) -> Iterator[tuple[Fields, Wine | None]]:
    rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    line = 0
    try:
        columns = _header(next(rows, []))
        read_wine = xwines.read_wine if columns[0] in xwines.COLUMNS else generic_csv.read_wine
        line = rows.line_num
        for row in rows:
            start, line = line + 1, rows.line_num
            if not any(value.strip() for value in row):
                continue
            fields = Fields(dict(zip(columns, row, strict=False)), start)
            if len(row) != len(columns):
                fields.wrong("", f"has {len(row)} fields, the header has {len(columns)}")
                yield fields, None
            else:
                yield fields, read_wine(fields)
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None


def _header(row: Sequence[str]) -> Sequence[str]:
    """The column names.

    Raises:
        CatalogueFileError: neither of the two known headers.
    """
    names = [name.strip() for name in row]
    if set(names) >= set(xwines.COLUMNS):
        return names
    names = [name.lower() for name in names]
    unknown = sorted(set(names) - set(generic_csv.COLUMNS))
    missing = sorted(generic_csv.REQUIRED - set(names))
    if not unknown and not missing and len(names) == len(set(names)):
        return names
    reasons = [f"unknown columns: {', '.join(map(repr, unknown))}"] if unknown else []
    reasons += [f"missing columns: {', '.join(missing)}"] if missing else []
    reasons += ["a column is there twice"] if len(names) != len(set(names)) else []
    raise CatalogueFileError(
        [
            Problem(
                1, "", f"{'; '.join(reasons)}. Expected, separated by commas: {generic_csv.HEADER}"
            )
        ]
    )

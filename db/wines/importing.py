"""Import wines into the catalogue, and keep the wines of a list in step with it.

A wine whose id exists is replaced, so importing a file twice changes nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import exists, func, select, update

from db.engine import Sessions
from db.models import WineRow
from db.wines.catalogue import load_wines, save_wines, sources_of
from db.wines.lists import CatalogueFile, read_catalogue
from db.wines.tables import CatalogueFileError

T = TypeVar("T")
BATCH: Final = 200
"""Wines per statement; well below SQLite's limit on bound values."""
STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
SAMPLES: Final = "starter"
"""The source of the wines that a new installation has."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of wines by what an import did with them; `gone` ones are out of stock now."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


async def import_catalogue(
    sessions: Sessions, path: Path, source: str | None = None
) -> ImportReport:
    """Import the wines of a file, all or none.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(*file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source))


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
    *,
    without_samples: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Add or replace the wines of a file in one transaction; `dry_run` only counts.

    Wines of an earlier file of this name that are missing now are out of stock from now on, and so
    are those of the starter catalogue with `without_samples`.
    """
    fates: Counter[str] = Counter()
    lists = {file.source, *([SAMPLES] if without_samples else [])} - {""}
    from_lists = select(WineRow.id).where(WineRow.source.in_(lists), WineRow.in_stock)
    async with sessions.begin() as session:
        for wines in _batches(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            sources = await sources_of(session, list(stored))
            new = [wine for wine in wines if wine.id not in stored]
            changed = [wine for wine in wines if wine.id in stored and stored[wine.id] != wine]
            moved = [w for w in wines if stored.get(w.id) == w and sources[w.id] != file.source]
            unchanged = len(wines) - len(new) - len(changed)
            fates.update(added=len(new), updated=len(changed), unchanged=unchanged)
            if (to_save := new + changed + moved) and not dry_run:
                await save_wines(session, to_save, file.source)
        here = {wine.id for wine in file.wines}
        gone = [wine_id for wine_id in await session.scalars(from_lists) if wine_id not in here]
        for ids in () if dry_run else _batches(gone):
            await session.execute(update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False))
    return ImportReport(**fates, gone=len(gone))


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


async def count_samples(sessions: Sessions) -> int:
    """Count the wines of the starter catalogue that are in stock."""
    samples = (WineRow.source == SAMPLES) & WineRow.in_stock
    async with sessions() as session:
        return await session.scalar(select(func.count()).where(samples)) or 0

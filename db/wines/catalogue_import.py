"""Import wine lists into the database.

A wine replaces the stored wine with the same id, so importing a file twice changes nothing.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import Wine, stored_wine_fields
from db.engine import Sessions
from db.models import OfferRow, WineRow
from db.statements import upsert
from db.wines.catalogue import (
    INCREMENT_VERSION,
    STARTER_SOURCE,
    SqlCatalogue,
    load_wines,
)
from db.wines.lists.importing import CatalogueFile, read_catalogue
from db.wines.lists.problems import CatalogueFileError
from db.wines.shrinkage import ListShrinks, find_shrinkage

T = TypeVar("T")

BATCH_SIZE: Final = 200
"""The number of wines per statement, well below SQLite's limit on bound values."""
STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The number of wines for each thing that an import may do with a wine."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0
    """The number of wines that left the list. They are now out of stock."""


async def import_catalogue(
    sessions: Sessions,
    path: Path,
    source: str = "",
) -> ImportReport:
    """Import the wines of a file in one transaction, under the name `source` if it is given.

    Raises:
        CatalogueFileError: the file is unreadable or has invalid rows. Nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(*file.problems)
    if source:
        file = replace(file, source=source)
    return await import_wines(sessions, file)


async def load_starter(sessions: Sessions) -> ImportReport | None:
    """Import the starter catalogue, or return None if there are wines already."""
    wine_count = await SqlCatalogue(sessions).count()
    if wine_count:
        return None
    return await import_catalogue(sessions, STARTER, source=STARTER_SOURCE)


async def import_wines(
    sessions: Sessions,
    file: CatalogueFile,
    *,
    without_samples: bool = False,
    dry_run: bool = False,
    may_shrink: bool = True,
) -> ImportReport:
    """Add or replace the wines of a file in one transaction.

    Wines that an earlier file of this source had, and this one does not, become out of stock. With
    `without_samples`, the wines of the starter catalogue do, too. With `dry_run`, nothing is
    stored, and the report says what would be done.

    Raises:
        ListShrinks: suspiciously much of the list would change, and it may not shrink.
    """
    replaced_sources: set[str] = set()
    if file.source:
        replaced_sources.add(file.source)
    if without_samples:
        replaced_sources.add(STARTER_SOURCE)
    async with sessions.begin() as session:
        await session.execute(INCREMENT_VERSION)
        shrinkage = await find_shrinkage(session, file.source, file.wines)
        if shrinkage.is_suspicious and not may_shrink:
            raise ListShrinks(shrinkage)
        gone = await _take_out_of_stock(session, replaced_sources, file.wines)
        added = 0
        updated = 0
        for batch in _batches(file.wines):
            added_now, updated_now = await _store_wines(session, batch, file.source)
            added += added_now
            updated += updated_now
        if dry_run:
            await session.rollback()
    unchanged = len(file.wines) - added - updated
    return ImportReport(
        added=added,
        updated=updated,
        unchanged=unchanged,
        gone=gone,
    )


async def _take_out_of_stock(
    session: AsyncSession,
    sources: Collection[str],
    kept: Sequence[Wine],
) -> int:
    """Take the wines of these sources out of stock, except those to keep. Return their number."""
    kept_ids = {wine.id for wine in kept}
    select_in_stock = _select_in_stock(sources)
    gone: list[str] = []
    for wine_id in await session.scalars(select_in_stock):
        if wine_id not in kept_ids:
            gone.append(wine_id)
    for ids in _batches(gone):
        is_gone = OfferRow.wine_id.in_(ids)
        take_out = update(OfferRow).where(is_gone)
        await session.execute(take_out.values(in_stock=False, changed_at=None))
    return len(gone)


async def _store_wines(
    session: AsyncSession,
    wines: Sequence[Wine],
    source: str,
) -> tuple[int, int]:
    """Store wines and their offers. Return how many are new, and how many differ from before."""
    wine_ids = [wine.id for wine in wines]
    stored = await load_wines(session, wine_ids)
    # A file does not say whether a wine is a sample. Its source does.
    sample_field = {"is_sample": source == STARTER_SOURCE}
    updated_count = 0
    for wine in wines:
        before = stored.get(wine.id)
        after = wine.model_copy(update=sample_field)
        if before is not None and before != after:
            updated_count += 1
    rows = [_to_row(wine, source) for wine in wines]
    await upsert(session, *rows)
    await _replace_offers(session, wines)
    new_count = len(wines) - len(stored)
    return new_count, updated_count


async def _replace_offers(session: AsyncSession, wines: Sequence[Wine]) -> None:
    """Replace the stored offers of wines by their present ones."""
    wine_ids = [wine.id for wine in wines]
    is_of_wines = OfferRow.wine_id.in_(wine_ids)
    await session.execute(delete(OfferRow).where(is_of_wines))
    rows: list[dict[str, object]] = []
    for wine in wines:
        for position, offer in enumerate(wine.offers):
            row = offer.model_dump(mode="json")
            row["wine_id"] = wine.id
            row["position"] = position
            rows.append(row)
    await session.execute(insert(OfferRow), rows)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in batches that fit into one statement each."""
    for start in range(0, len(items), BATCH_SIZE):
        end = start + BATCH_SIZE
        yield items[start:end]


async def count_samples(sessions: Sessions) -> int:
    """Return the number of wines of the starter catalogue that are in stock."""
    samples = _select_in_stock({STARTER_SOURCE}).subquery()
    query = select(func.count()).select_from(samples)
    async with sessions() as session:
        count = await session.scalar(query)
    return count or 0


def _select_in_stock(sources: Collection[str]) -> Select[str]:
    """Return the statement that selects the ids of the wines of these sources in stock."""
    offer_in_stock = select(OfferRow.wine_id).where(
        OfferRow.wine_id == WineRow.id,
        OfferRow.in_stock,
    )
    is_of_sources = WineRow.source.in_(sources)
    return select(WineRow.id).where(is_of_sources, offer_in_stock.exists())


def _to_row(wine: Wine, source: str) -> WineRow:
    """Return the row of a wine, without its offers, which have rows of their own."""
    columns = wine.model_dump(mode="json", include=stored_wine_fields())
    return WineRow(**columns, source=source)

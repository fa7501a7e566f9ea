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
    sessions: Sessions, path: Path, source: str = ""
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
    if await SqlCatalogue(sessions).count():
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
        added = updated = 0
        for batch in _batches(file.wines):
            added_now, updated_now = await _store_wines(session, batch, file.source)
            added += added_now
            updated += updated_now
        if dry_run:
            await session.rollback()
    unchanged = len(file.wines) - added - updated
    return ImportReport(added, updated, unchanged, gone)


async def _take_out_of_stock(
    session: AsyncSession, sources: Collection[str], kept: Sequence[Wine]
) -> int:
    """Take the wines of these sources out of stock, except those to keep. Return their number."""
    kept_ids = {wine.id for wine in kept}
    in_stock = await session.scalars(_select_in_stock(sources))
    gone = [wine_id for wine_id in in_stock if wine_id not in kept_ids]
    for ids in _batches(gone):
        offers = update(OfferRow).where(OfferRow.wine_id.in_(ids))
        await session.execute(offers.values(in_stock=False, changed_at=None))
    return len(gone)


async def _store_wines(
    session: AsyncSession, wines: Sequence[Wine], source: str
) -> tuple[int, int]:
    """Store wines and their offers. Return how many are new, and how many differ from before."""
    stored = await load_wines(session, [wine.id for wine in wines])
    updated = 0
    for wine in wines:
        before = stored.get(wine.id)
        # A file does not say whether a wine is a sample. Its source does.
        after = wine.model_copy(update={"is_sample": source == STARTER_SOURCE})
        if before is not None and before != after:
            updated += 1
    await upsert(session, *[_to_row(wine, source) for wine in wines])
    await _replace_offers(session, wines)
    return len(wines) - len(stored), updated


async def _replace_offers(session: AsyncSession, wines: Sequence[Wine]) -> None:
    """Replace the stored offers of wines by their present ones."""
    is_earlier = OfferRow.wine_id.in_([wine.id for wine in wines])
    await session.execute(delete(OfferRow).where(is_earlier))
    rows: list[dict[str, object]] = []
    for wine in wines:
        for position, offer in enumerate(wine.offers):
            row = {"wine_id": wine.id, "position": position}
            rows.append(row | offer.model_dump(mode="json"))
    await session.execute(insert(OfferRow), rows)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in batches that fit into one statement each."""
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]


async def count_samples(sessions: Sessions) -> int:
    """Return the number of wines of the starter catalogue that are in stock."""
    samples = _select_in_stock({STARTER_SOURCE}).subquery()
    async with sessions() as session:
        return await session.scalar(select(func.count()).select_from(samples)) or 0


def _select_in_stock(sources: Collection[str]) -> Select[str]:
    """Return the statement that selects the ids of the wines of these sources in stock."""
    has_offer = select(OfferRow.wine_id).where(
        OfferRow.wine_id == WineRow.id, OfferRow.in_stock
    )
    return select(WineRow.id).where(WineRow.source.in_(sources), has_offer.exists())


def _to_row(wine: Wine, source: str) -> WineRow:
    columns = wine.model_dump(mode="json", include=stored_wine_fields())
    return WineRow(**columns, source=source)

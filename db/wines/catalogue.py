"""The wine catalogue: its wines in memory, and the import of wine lists into the database.

An import replaces wines with known ids, so importing a file twice changes nothing.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import RowMapping, Select, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.queries import WineQuery, WineSearchResult
from agent.sommelier.wine import Offer, Wine, stored_wine_fields
from db.engine import Sessions, SqlRepository
from db.models import CatalogueRow, OfferRow, WineRow, upsert
from db.wines.lists.importing import CatalogueFile, read_catalogue
from db.wines.lists.problems import CatalogueFileError
from db.wines.shrinkage import ListShrinks, find_shrinkage

if TYPE_CHECKING:
    from db.wines.search import WineIndex

T = TypeVar("T")

BATCH_SIZE: Final = 200
"""The number of wines per statement, well below SQLite's limit on bound values."""
DIGEST_CHARS: Final = 16
STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
STARTER_SOURCE: Final = "starter"
"""The source of the wines of the starter catalogue."""
COUNT_VERSION: Final = text("""
    INSERT INTO catalogue (id, version) VALUES (1, 1)
    ON CONFLICT (id) DO UPDATE SET version = catalogue.version + 1
""")
_WINES: Final = select(
    *(getattr(WineRow, name) for name in stored_wine_fields()),
    (WineRow.source == STARTER_SOURCE).label("is_sample"),
)
_OFFERS: Final = select(
    OfferRow.wine_id, *(getattr(OfferRow, name) for name in Offer.model_fields)
).order_by(OfferRow.wine_id, OfferRow.position)


@dataclass(eq=False)
class SqlCatalogue(SqlRepository):
    """A `Catalogue` in memory, read from SQLite or Postgres.

    The wines are read again when their version in the database shows that any process has imported
    some.
    """

    _index: "WineIndex | None" = None
    _version: int | None = None
    _updating: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def search(self, query: WineQuery) -> WineSearchResult:
        index = await self._current_index()
        return await asyncio.to_thread(index.search, query)

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        wines = (await self._current_index()).wines_by_id
        return [wines[wine_id] for wine_id in wine_ids if wine_id in wines]

    async def find_by_digest(self, digest: str) -> Wine | None:
        """Return the wine whose id has this digest, as `digest_of` returns it; None without one."""
        wines = (await self._current_index()).wines_by_id
        ids = await asyncio.to_thread(
            lambda: [id for id in wines if digest_of(id) == digest]
        )
        return wines[ids[0]] if ids else None

    async def count(self) -> int:
        return await self._first_value(select(func.count(WineRow.id))) or 0

    async def _current_index(self) -> "WineIndex":
        """Return the index of all wines, read again if they have changed."""
        async with self._updating:
            # The wines may be newer than the version; the next search then reads them once more.
            version = await self._first_value(select(CatalogueRow.version)) or 0
            if self._index is None or version != self._version:
                self._index = await self._read_index()
                self._version = version
            return self._index

    async def _read_index(self) -> "WineIndex":
        async with self.sessions() as session:
            wines = (
                (await session.execute(_WINES.order_by(WineRow.id))).mappings().all()
            )
            offers = (await session.execute(_OFFERS)).mappings().all()

        def make_index() -> "WineIndex":
            search = import_module("db.wines.search")  # slow
            index: WineIndex = search.WineIndex(_to_wines(wines, offers))
            return index

        return await asyncio.to_thread(make_index)


def digest_of(wine_id: str) -> str:
    """Return a short name of a wine, for the data of a button, in which many ids have no room."""
    return hashlib.sha256(wine_id.encode()).hexdigest()[:DIGEST_CHARS]


def _to_wines(wines: Sequence[RowMapping], offers: Sequence[RowMapping]) -> list[Wine]:
    """Return the wines of these rows, with their offers."""
    offers_by_id = defaultdict[str, list[Offer]](list)
    for row in offers:
        offers_by_id[row["wine_id"]].append(Offer.model_validate(row))
    return [Wine(**row, offers=offers_by_id[row["id"]]) for row in wines]


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return stored wines by their ids, without unknown ids."""
    wines = (
        (await session.execute(_WINES.where(WineRow.id.in_(wine_ids)))).mappings().all()
    )
    offers = await session.execute(_OFFERS.where(OfferRow.wine_id.in_(wine_ids)))
    return {wine.id: wine for wine in _to_wines(wines, offers.mappings().all())}


async def list_wines(
    sessions: Sessions, *, changed: bool
) -> list[tuple[Wine, datetime | None]]:
    """Return the wines, with the time when the staff changed them after the last import, or None.

    Those that were changed come first, the last one first; with `changed` there are no others.
    """
    changed_at = func.max(OfferRow.changed_at).label("changed_at")
    query = select(OfferRow.wine_id, changed_at).group_by(OfferRow.wine_id)
    if changed:
        query = query.having(changed_at.is_not(None))
    query = query.order_by(changed_at.desc().nulls_last(), OfferRow.wine_id)
    async with sessions() as session:
        rows = (await session.execute(query)).all()
    times = {row.wine_id: row.changed_at for row in rows}
    wines = await SqlCatalogue(sessions).get([*times])
    return [(wine, times[wine.id]) for wine in wines]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of wines by what an import did; `gone` wines are now out of stock."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


async def import_catalogue(
    sessions: Sessions, path: Path, source: str = ""
) -> ImportReport:
    """Import the wines of a file in one transaction.

    Raises:
        CatalogueFileError: the file is unreadable or has invalid rows. Nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(*file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source))


async def load_starter(sessions: Sessions) -> ImportReport | None:
    """Import the starter catalogue; return None if there are wines already."""
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
    """Add or replace the wines of a file in one transaction; if `dry_run`, only count them.

    Wines that are only in an earlier file from this source become out of stock. With
    `without_samples`, so do the wines of the starter catalogue.

    Raises:
        ListShrinks: suspiciously much of the list would change, and it may not shrink.
    """
    sources = {file.source, *([STARTER_SOURCE] if without_samples else [])} - {""}
    added = updated = 0
    async with sessions.begin() as session:
        await session.execute(COUNT_VERSION)
        shrinkage = await find_shrinkage(session, file.source, file.wines)
        if shrinkage.is_suspicious and not may_shrink:
            raise ListShrinks(shrinkage)
        file_ids = {wine.id for wine in file.wines}
        in_stock = await session.scalars(_select_in_stock(sources))
        gone = [wine_id for wine_id in in_stock if wine_id not in file_ids]
        for ids in _batches(gone):
            offered = update(OfferRow).where(OfferRow.wine_id.in_(ids))
            await session.execute(offered.values(in_stock=False, changed_at=None))
        is_sample = {"is_sample": file.source == STARTER_SOURCE}
        for batch in _batches(file.wines):
            wines = [wine.model_copy(update=is_sample) for wine in batch]
            stored = await load_wines(session, [wine.id for wine in wines])
            added += len(wines) - len(stored)
            updated += sum(stored.get(wine.id, wine) != wine for wine in wines)
            await upsert(session, *(_to_row(wine, file.source) for wine in wines))
            await _replace_offers(session, wines)
        if dry_run:
            await session.rollback()
    return ImportReport(added, updated, len(file.wines) - added - updated, len(gone))


async def _replace_offers(session: AsyncSession, wines: Sequence[Wine]) -> None:
    """Store the offers of wines instead of their earlier ones."""
    ids = [wine.id for wine in wines]
    await session.execute(delete(OfferRow).where(OfferRow.wine_id.in_(ids)))
    rows = [
        {"wine_id": wine.id, "position": position, **offer.model_dump(mode="json")}
        for wine in wines
        for position, offer in enumerate(wine.offers)
    ]
    await session.execute(insert(OfferRow), rows)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (
        items[start : start + BATCH_SIZE] for start in range(0, len(items), BATCH_SIZE)
    )


async def count_samples(sessions: Sessions) -> int:
    """Return the number of wines of the starter catalogue that are in stock."""
    samples = _select_in_stock({STARTER_SOURCE})
    async with sessions() as session:
        return (
            await session.scalar(select(func.count()).select_from(samples.subquery()))
            or 0
        )


def _select_in_stock(sources: Collection[str]) -> Select[str]:
    """Return the statement that selects the ids of the wines of these sources in stock."""
    has_offer = select(OfferRow.wine_id).where(
        OfferRow.wine_id == WineRow.id, OfferRow.in_stock
    )
    return select(WineRow.id).where(WineRow.source.in_(sources), has_offer.exists())


def _to_row(wine: Wine, source: str) -> WineRow:
    return WineRow(
        **wine.model_dump(mode="json", include=stored_wine_fields()), source=source
    )

"""The wine catalogue: its wines in memory, as searches and answers use them."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Final

from sqlalchemy import RowMapping, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.offers import Offer
from agent.sommelier.queries import WineNames, WineQuery, WineSearchResult
from agent.sommelier.wine import Wine, stored_wine_fields
from db.engine import Sessions, SqlRepository
from db.models import CatalogueVersionRow, OfferRow, WineRow

if TYPE_CHECKING:
    from db.wines.search import WineIndex

DIGEST_CHARS: Final = 16
STARTER_SOURCE: Final = "starter"
"""The source of the wines of the starter catalogue."""
INCREMENT_VERSION: Final = text("""
    INSERT INTO catalogue (id, version) VALUES (1, 1)
    ON CONFLICT (id) DO UPDATE SET version = catalogue.version + 1
""")
"""Tells all processes that the wines have changed."""
_IS_SAMPLE: Final = WineRow.source == STARTER_SOURCE
_WINE_COLUMNS: Final = [getattr(WineRow, name) for name in stored_wine_fields()]
_OFFER_COLUMNS: Final = [getattr(OfferRow, name) for name in Offer.model_fields]
_WINES: Final = select(
    *_WINE_COLUMNS,
    _IS_SAMPLE.label("is_sample"),
)
_OFFERS: Final = select(
    OfferRow.wine_id,
    *_OFFER_COLUMNS,
).order_by(OfferRow.wine_id, OfferRow.position)


@dataclass(eq=False)
class SqlCatalogue(SqlRepository):
    """The wines of the database, kept in memory, as the interface `Catalogue` describes them.

    The database counts imports of wines. If the number shows that any process has imported wines,
    they are read again.
    """

    _index: "WineIndex | None" = None
    _version: int | None = None
    _updating: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def search(self, query: WineQuery) -> WineSearchResult:
        index = await self._current_index()
        return await asyncio.to_thread(index.search, query)

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        index = await self._current_index()
        wines: list[Wine] = []
        for wine_id in wine_ids:
            wine = index.wines_by_id.get(wine_id)
            if wine is not None:
                wines.append(wine)
        return wines

    async def load_names(self) -> WineNames:
        index = await self._current_index()
        return index.names

    async def find_by_digest(self, digest: str) -> Wine | None:
        """Return the wine for whose id `digest_of` returns this digest, or None."""
        index = await self._current_index()
        wines = index.wines_by_id.values()
        return await asyncio.to_thread(_find_by_digest, wines, digest)

    async def count(self) -> int:
        count = await self._first_value(select(func.count(WineRow.id)))
        return count or 0

    async def _current_index(self) -> "WineIndex":
        """Return the index of all wines. Read them again if they have changed."""
        query = select(CatalogueVersionRow.version)
        async with self._updating:
            # Read before the wines. If an import comes in between, the next search reads again.
            stored_version = await self._first_value(query)
            version = stored_version or 0
            if self._index is None or version != self._version:
                self._index = await self._read_index()
                self._version = version
            return self._index

    async def _read_index(self) -> "WineIndex":
        """Read all wines and their offers, and return an index of them."""
        async with self.sessions() as session:
            wines = await session.execute(_WINES.order_by(WineRow.id))
            wine_rows = wines.mappings().all()
            offers = await session.execute(_OFFERS)
            offer_rows = offers.mappings().all()

        def make_index() -> "WineIndex":
            # Imported here, because it is slow to import.
            search = import_module("db.wines.search")
            wines = _to_wines(wine_rows, offer_rows)
            index: WineIndex = search.WineIndex(wines)
            return index

        return await asyncio.to_thread(make_index)


def digest_of(wine_id: str) -> str:
    """Return a short name of a wine for the data of a button, where many ids are too long."""
    digest = hashlib.sha256(wine_id.encode()).hexdigest()
    return digest[:DIGEST_CHARS]


def _find_by_digest(wines: Iterable[Wine], digest: str) -> Wine | None:
    """Return the wine whose id has this digest, or None."""
    for wine in wines:
        if digest_of(wine.id) == digest:
            return wine
    return None


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return the stored wines with these ids, by their ids."""
    select_wines = _WINES.where(WineRow.id.in_(wine_ids))
    wine_rows = await session.execute(select_wines)
    select_offers = _OFFERS.where(OfferRow.wine_id.in_(wine_ids))
    offer_rows = await session.execute(select_offers)
    wines = _to_wines(
        wine_rows.mappings().all(),
        offer_rows.mappings().all(),
    )
    return {wine.id: wine for wine in wines}


def _to_wines(wines: Sequence[RowMapping], offers: Sequence[RowMapping]) -> list[Wine]:
    """Return the wines of these rows, with their offers."""
    offers_by_id: defaultdict[str, list[Offer]] = defaultdict(list)
    for row in offers:
        offer = Offer.model_validate(row)
        offers_by_id[row["wine_id"]].append(offer)
    found: list[Wine] = []
    for row in wines:
        offers_of_wine = offers_by_id[row["id"]]
        found.append(Wine(**row, offers=offers_of_wine))
    return found


async def list_wines(
    sessions: Sessions, *, changed: bool
) -> list[tuple[Wine, datetime | None]]:
    """Return the wines, each with the time when the staff changed it after the last import.

    The time is None for a wine that the staff has not changed. Wines that were changed last come
    first. If `changed`, return only wines that were changed.
    """
    changed_at = func.max(OfferRow.changed_at).label("changed_at")
    last_change_first = changed_at.desc().nulls_last()
    query = select(OfferRow.wine_id, changed_at).group_by(OfferRow.wine_id)
    if changed:
        query = query.having(changed_at.is_not(None))
    async with sessions() as session:
        rows = await session.execute(
            query.order_by(last_change_first, OfferRow.wine_id)
        )
        times = {row.wine_id: row.changed_at for row in rows}
    wine_ids = list(times)
    wines = await SqlCatalogue(sessions).get(wine_ids)
    return [(wine, times[wine.id]) for wine in wines]

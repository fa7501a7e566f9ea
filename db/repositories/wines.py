"""The catalogue over SQL."""

from collections.abc import Sequence

from sqlalchemy import func, select

from agent.sommelier.wine import Wine, WineQuery, WineSearchResult
from db import search
from db.engine import Sessions
from db.models import WineRow
from db.rows import load_wines
from db.search_text import storable


class SqlCatalogue:
    """Fulfils `Catalogue` on SQLite and Postgres alike."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Wines that pass every filter of `query`, best match first."""
        async with self._sessions() as session:
            return await search.search(session, query)

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids, in the order asked; unknown ids are left out."""
        wanted = [wine_id for wine_id in wine_ids if wine_id == storable(wine_id)]
        async with self._sessions() as session:
            found = await load_wines(session, wanted)
        return [found[wine_id] for wine_id in wanted if wine_id in found]

    async def similar(self, wine_id: str, query: WineQuery) -> WineSearchResult:
        """Wines other than this one that pass `query`, most alike first; none for an unknown id."""
        async with self._sessions() as session:
            wine = (await load_wines(session, [storable(wine_id)])).get(wine_id)
            return await search.search(session, query, wine) if wine else WineSearchResult()

    async def count(self) -> int:
        """How many wines the catalogue holds, out of stock included."""
        async with self._sessions() as session:
            return await session.scalar(select(func.count(WineRow.number))) or 0

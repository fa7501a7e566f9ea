"""The catalogue over SQL."""

from collections.abc import Sequence

from sqlalchemy import func, select

from agent.sommelier.wine import Wine, WineQuery, WineSearchResult
from db import search
from db.engine import Sessions
from db.models import WineRow
from db.rows import load_wines
from db.search_text import storable
from db.similar import similar_ids


class SqlCatalogue:
    """Fulfils `agent.ports.Catalogue` on SQLite and Postgres alike."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Wines that pass every hard filter of `query`, best match first."""
        async with self._sessions() as session:
            return await search.search(session, query)

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids, in the order asked; unknown ids are left out."""
        wanted = [wine_id for wine_id in wine_ids if wine_id == storable(wine_id)]
        async with self._sessions() as session:
            found = await load_wines(session, wanted)
        return [found[wine_id] for wine_id in wanted if wine_id in found]

    async def similar(self, wine_id: str, limit: int = 5) -> list[Wine]:
        """Wines in stock most like this one, most alike first; empty for an unknown id."""
        async with self._sessions() as session:
            wine = (await load_wines(session, [storable(wine_id)])).get(wine_id)
            if wine is None or limit < 1:
                return []
            ids = list(await session.scalars(similar_ids(wine, limit)))
            found = await load_wines(session, ids)
        return [found[like] for like in ids if like in found]

    async def count(self) -> int:
        """How many wines the catalogue holds, out of stock included."""
        async with self._sessions() as session:
            return await session.scalar(select(func.count(WineRow.number))) or 0

"""The catalogue over SQL: filters exclude or rank, and a result of few wines says what to relax.

The order of a search, best first:

1. the points for soft filters;
2. a name or an origin that the text names, then what is not dear for what fits, unless the search
   tells of prices;
3. the points for asked foods that a wine suits, and for the place of an asked grape in it; pairings
   are data, so they outweigh words;
4. how well the text matches (bm25 in SQLite, ts_rank in Postgres);
5. for wines like another one, the distance from it; of wines without alcohol, the least strong;
6. among equals, the wines that repeat the fewest producers, regions and price bands before them;
   wines without alcohol last;
7. a shuffle that depends on the wine and on the query: the alphabet would favour a few producers.

With `cheapest` or `dearest` the price comes first (in euros, wines without a price last); a text
then only puts wines that match before others.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    case,
    func,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import Wine, WineQuery, WineSearchResult, folded, key, names
from agent.text import storable
from db.engine import Sessions
from db.models import WineRow, insert
from db.wines.search import Filters, filters, matching_text, preferred, ranks, shuffled, varied

T = TypeVar("T")
AnySelect = Select[*tuple[Any, ...]]

ENOUGH: Final = 3
"""From how many wines on a result needs no hint which filter to leave out."""
CANDIDATES: Final = 96
"""The number of the best wines among which variety is looked for."""


class SqlCatalogue:
    """Fulfils `Catalogue` on SQLite and Postgres alike."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def search(self, query: WineQuery) -> WineSearchResult:
        async with self._sessions() as session:
            return await _search(session, query, None)

    async def similar(self, wine_id: str, query: WineQuery) -> WineSearchResult:
        async with self._sessions() as session:
            wine = (await load_wines(session, [storable(wine_id)])).get(wine_id)
            return await _search(session, query, wine) if wine else WineSearchResult()

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        wanted = [wine_id for wine_id in wine_ids if wine_id == storable(wine_id)]
        async with self._sessions() as session:
            found = await load_wines(session, wanted)
        return [found[wine_id] for wine_id in wanted if wine_id in found]

    async def count(self) -> int:
        count = select(func.count(WineRow.number))
        async with self._sessions() as session:
            return await session.scalar(count) or 0


async def _search(session: AsyncSession, query: WineQuery, like: Wine | None) -> WineSearchResult:
    conditions = _conditions(query, like, session.get_bind().dialect.name)
    rows = (await session.execute(conditions.best())).all()
    total = rows[0].total if rows else 0
    relax = await _relax(session, conditions, total) if total < ENOUGH else {}
    if not rows:
        return WineSearchResult(relax=relax)
    placed = [(None, row) for row in rows] if like else preferred(rows, query)
    best = varied(placed, len(conditions.ranks), query.limit)
    wines = await load_wines(session, [row.id for row in best])
    missed = {
        row.id: tuple(name for name in conditions.soft if not getattr(row, name)) for row in best
    }
    return WineSearchResult(
        wines=tuple(wines[row.id] for row in best if row.id in wines),
        total=total,
        relax=relax,
        missed={wine_id: names for wine_id, names in missed.items() if names},
    )


@dataclass(frozen=True, slots=True)
class _Conditions:
    """A query as conditions, and the expressions that order wines, smallest first."""

    hard: Filters
    soft: Filters
    text: Subquery | None
    ranks: Sequence[ColumnElement[Any]]
    shuffled: ColumnElement[int]

    def best(self) -> AnySelect:
        """Select the best wines: their ranks first, and 1 for each soft filter that they meet."""
        ranked = [rank.label(f"rank_{at}") for at, rank in enumerate(self.ranks)]
        statement = select(
            *ranked,
            WineRow.id.label("id"),
            func.count().over().label("total"),
            WineRow.style.label("style"),
            WineRow.producer.label("producer"),
            WineRow.name.label("name"),
            WineRow.places.label("place"),
            WineRow.price_in_euros.label("price"),
            *(case((meets, 1), else_=0).label(name) for name, meets in self.soft.items()),
        )
        return self.found(statement).order_by(*ranked, self.shuffled, WineRow.id).limit(CANDIDATES)

    def found(self, statement: AnySelect, without: str = "") -> AnySelect:
        """Narrow `statement` to the wines that pass; without any filter the text must match."""
        hard = {name: condition for name, condition in self.hard.items() if name != without}
        if self.text is not None:
            only_text = not {*hard, *self.soft} - {"in_stock_only", "not_ids"}
            statement = statement.select_from(WineRow).join(
                self.text, self.text.c.number == WineRow.number, isouter=not only_text
            )
        return statement.where(true(), *hard.values())


def _conditions(query: WineQuery, like: Wine | None, dialect: str) -> _Conditions:
    every = filters(query)
    soft: Filters = {name: condition for name, condition in every.items() if name in query.soft}
    hard = {name: condition for name, condition in every.items() if name not in soft}
    if like:
        hard["like"] = WineRow.id != like.id
    text = matching_text(query.text, dialect)
    return _Conditions(hard, soft, text, [*ranks(query, soft, text, like)], shuffled(query))


async def _relax(session: AsyncSession, conditions: _Conditions, total: int) -> dict[str, int]:
    """Return the number of wines without each filter, if they are more, in one round trip."""
    names = [name for name in conditions.hard if name != "like"]
    if not names:
        return {}
    count = select(func.count(WineRow.number))
    counts = (conditions.found(count, without=name).scalar_subquery().label(name) for name in names)
    row = (await session.execute(select(*counts))).one()
    return {name: found for name, found in row._mapping.items() if found > total}


CHUNK: Final = 200
"""Wines per statement; well below SQLite's limit on bound values."""
FIELDS: Final = tuple(Wine.model_fields)


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return the wines with these ids by their ids; unknown ids are left out."""
    columns = select(*(getattr(WineRow, name) for name in FIELDS))
    found: dict[str, Wine] = {}
    for ids in chunks(wine_ids):
        rows = await session.execute(columns.where(WineRow.id.in_(ids)))
        found |= {row["id"]: Wine(**row) for row in rows.mappings()}
    return found


async def sources_of(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, str]:
    """Return the sources of these wines by their ids."""
    statement = select(WineRow.id, WineRow.source).where(WineRow.id.in_(wine_ids))
    return {row.id: row.source for row in await session.execute(statement)}


async def save_wines(session: AsyncSession, wines: Sequence[Wine], source: str = "") -> None:
    """Insert these wines of a file, or replace those whose ids exist. Does not commit."""
    statement = insert(session, WineRow)
    kept = ("number", "id")
    changed = {c.key: statement.excluded[c.key] for c in WineRow.__table__.columns}
    changed = {name: value for name, value in changed.items() if name not in kept}
    upsert = statement.on_conflict_do_update(index_elements=["id"], set_=changed)
    await session.execute(upsert, [_to_record(wine) | {"source": source} for wine in wines])


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield `items` in parts of at most `CHUNK`."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _to_record(wine: Wine) -> dict[str, Any]:
    """Return the row of a wine, with the folded forms that filters compare."""
    return {
        **wine.model_dump(mode="json"),
        "price_in_euros": wine.price_in_euros,
        "country_key": key("countries", wine.country),
        "grape_keys": [key("grapes", grape) for grape in wine.grapes],
        "places": places(wine),
        "shuffle": zlib.crc32(wine.id.encode()),
        "search_text": search_text(wine),
    }


def places(wine: Wine) -> str:
    """Return region and appellation so that ` rhone ` is found as whole words in either."""
    return f" {folded(wine.region)} | {folded(wine.appellation)} "


def search_text(wine: Wine) -> str:
    """Return the words that a text search finds this wine by, with other names of its grapes."""
    said = [wine.producer, wine.name, str(wine.vintage or "NV")]
    said += [wine.country, wine.region, wine.appellation, *wine.grapes]
    for grape in wine.grapes:
        said += others if len(others := names("grapes", grape)) > 1 else ()
    said += [value for value in (wine.style, wine.colour, wine.sweetness) if value]
    said += [food.replace("_", " ") for food in wine.foods]
    return folded(" ".join([*said, wine.notes]))

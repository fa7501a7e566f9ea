"""The catalogue over SQL: fill it from files, and search it.

A wine whose id exists is replaced, so importing a file twice changes nothing. In a search, filters
exclude or rank, and a result of few wines says what to relax.

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

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Select, Subquery, case, func, select, true, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import (
    Wine,
    WineQuery,
    WineSearchResult,
    canonical_name,
    normalize,
    synonyms,
)
from agent.text import strip_unstorable
from db.engine import Sessions, SqlRepository
from db.models import WineRow, upsert
from db.wines.lists import CatalogueFile, CatalogueFileError, read_catalogue
from db.wines.search import Filters, filters, matching_text, preferred, ranks, shuffled, varied

T = TypeVar("T")
AnySelect = Select[*tuple[Any, ...]]

BATCH: Final = 200
"""Wines per statement; well below SQLite's limit on bound values."""
STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
SAMPLES: Final = "starter"
"""The source of the wines that a new installation has."""
ENOUGH: Final = 3
"""From how many wines on a result needs no hint which filter to leave out."""
CANDIDATES: Final = 96
"""The number of the best wines among which variety is looked for."""
SHOWN: Final = (
    WineRow.id,
    WineRow.style,
    WineRow.producer,
    WineRow.name,
    WineRow.places,
    WineRow.price_in_euros,
)
"""The columns of the best wines beside their ranks and the soft filters that they meet."""


class SqlCatalogue(SqlRepository):
    """Fulfils `Catalogue` on SQLite and Postgres alike."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        async with self.sessions() as session:
            if not query.like:
                return await _search(session, query, None)
            like = (await load_wines(session, [strip_unstorable(query.like)])).get(query.like)
            return await _search(session, query, like) if like else WineSearchResult()

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        wanted = [wine_id for wine_id in wine_ids if wine_id == strip_unstorable(wine_id)]
        async with self.sessions() as session:
            found = await load_wines(session, wanted)
        return [found[wine_id] for wine_id in wanted if wine_id in found]

    async def count(self) -> int:
        return await self._first(select(func.count(WineRow.number))) or 0


async def _search(session: AsyncSession, query: WineQuery, like: Wine | None) -> WineSearchResult:
    every = filters(query)
    soft: Filters = {name: condition for name, condition in every.items() if name in query.soft}
    hard = {name: condition for name, condition in every.items() if name not in soft}
    if like:
        hard["like"] = WineRow.id != like.id
    text = matching_text(query.text, session.get_bind().dialect.name)
    narrow = partial(_narrow, hard=hard, soft=soft, text=text)
    order = [rank.label(f"rank_{at}") for at, rank in enumerate(ranks(query, soft, text, like))]
    meets = (case((is_met, 1), else_=0).label(name) for name, is_met in soft.items())
    columns = (*order, *SHOWN, func.count().over().label("total"), *meets)
    best = narrow(select(*columns)).order_by(*order, shuffled(query), WineRow.id)
    rows = (await session.execute(best.limit(CANDIDATES))).all()
    total = rows[0].total if rows else 0
    names = [name for name in hard if name != "like"]
    relax = await _relax(session, narrow, names, total) if names and total < ENOUGH else {}
    placed = [(None, row) for row in rows] if like else preferred(rows, query)
    chosen = varied(placed, len(order), query.limit)
    wines = await load_wines(session, [row.id for row in chosen])
    missed = {row.id: tuple(name for name in soft if not getattr(row, name)) for row in chosen}
    return WineSearchResult(
        wines=tuple(wines[row.id] for row in chosen if row.id in wines),
        total=total,
        relax=relax,
        unmet_filters={wine_id: names for wine_id, names in missed.items() if names},
    )


def _narrow(
    statement: AnySelect, hard: Filters, soft: Filters, text: Subquery | None, without: str = ""
) -> AnySelect:
    """Narrow `statement` to the wines that pass; without any filter the text must match."""
    conditions = {name: condition for name, condition in hard.items() if name != without}
    if text is not None:
        only_text = not {*conditions, *soft} - {"in_stock_only", "not_ids"}
        statement = statement.select_from(WineRow).join(
            text, text.c.number == WineRow.number, isouter=not only_text
        )
    return statement.where(true(), *conditions.values())


async def _relax(
    session: AsyncSession, narrow: Callable[..., AnySelect], names: Sequence[str], total: int
) -> dict[str, int]:
    """Return the number of wines without each filter, if they are more, in one round trip."""
    count = select(func.count(WineRow.number))
    counts = (narrow(count, without=name).scalar_subquery().label(name) for name in names)
    row = (await session.execute(select(*counts))).one()
    return {name: wines for name, wines in row._mapping.items() if wines > total}


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return the wines with these ids by their ids; unknown ids are left out."""
    columns = select(*(getattr(WineRow, name) for name in Wine.model_fields))
    rows = await session.execute(columns.where(WineRow.id.in_(wine_ids)))
    return {row["id"]: Wine(**row) for row in rows.mappings()}


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of wines by what an import did with them; `gone` ones are out of stock now."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


async def import_catalogue(sessions: Sessions, path: Path, source: str = "") -> ImportReport:
    """Import the wines of a file, all or none.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(*file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source))


async def load_starter(sessions: Sessions) -> ImportReport | None:
    """Import the starter catalogue into an empty database; return None if it holds wines."""
    if await SqlCatalogue(sessions).count():
        return None
    return await import_catalogue(sessions, STARTER, source=SAMPLES)


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
    lists = {file.source, *([SAMPLES] if without_samples else [])} - {""}
    from_lists = select(WineRow.id).where(WineRow.source.in_(lists), WineRow.in_stock)
    added = updated = 0
    async with sessions.begin() as session:
        here = {wine.id for wine in file.wines}
        gone = [wine_id for wine_id in await session.scalars(from_lists) if wine_id not in here]
        for ids in _batches(gone):
            await session.execute(update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False))
        for wines in _batches(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            added += len(wines) - len(stored)
            updated += sum(stored.get(wine.id, wine) != wine for wine in wines)
            await upsert(session, *(_row_of(wine, file.source) for wine in wines), key="id")
        if dry_run:
            await session.rollback()
    return ImportReport(added, updated, len(file.wines) - added - updated, len(gone))


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


async def count_samples(sessions: Sessions) -> int:
    """Count the wines of the starter catalogue that are in stock."""
    samples = (WineRow.source == SAMPLES) & WineRow.in_stock
    async with sessions() as session:
        return await session.scalar(select(func.count()).where(samples)) or 0


def _row_of(wine: Wine, source: str) -> WineRow:
    """Return the row of a wine, with the folded forms that filters compare."""
    return WineRow(
        **wine.model_dump(mode="json"),
        source=source,
        price_in_euros=wine.price_in_euros,
        country_key=canonical_name("countries", wine.country),
        grape_keys=[canonical_name("grapes", grape) for grape in wine.grapes],
        # ` rhone ` is found as whole words in either.
        places=f" {normalize(wine.region)} | {normalize(wine.appellation)} ",
        shuffle=zlib.crc32(wine.id.encode()),
        search_text=_search_text(wine),
    )


def _search_text(wine: Wine) -> str:
    """Return the words that a text search finds this wine by, with other names of its grapes."""
    known = [synonyms("grapes", grape) for grape in wine.grapes]
    others = [name for called in known if len(called) > 1 for name in called]
    values = [value for value in (wine.style, wine.colour, wine.sweetness) if value]
    said = [wine.producer, wine.name, str(wine.vintage or "NV"), wine.country, wine.region]
    said += [wine.appellation, *wine.grapes, *others, *values]
    said += [food.replace("_", " ") for food in wine.foods]
    return normalize(" ".join([*said, wine.notes]))

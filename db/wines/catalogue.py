"""The wine catalogue in SQL: import wines from files, and search them.

An import replaces wines with known ids, so importing a file twice changes nothing. In a search,
hard filters exclude wines and soft filters rank them. A short result says which filters to relax.

Wines are ranked by, in this order:

1. the points for soft filters;
2. the words of the text that are in the wine's name, producer or origin; then wines that are not
   expensive compared with the others, unless the query limits prices;
3. the points for requested foods that a wine suits, and for the position of a requested grape in
   its blend; pairings are data, so they outweigh words;
4. how well the text matches (bm25 in SQLite, ts_rank in Postgres);
5. low strength if the query is alcohol-free; the distance from a price or from a wine to resemble;
6. variety: few repeated producers, regions and price bands; alcohol-free wines last;
7. a shuffle by wine and query, since alphabetical order would favour a few producers.

With `cheapest` or `dearest` the price in euros comes first (wines without a price last), and the
text only puts matching wines before others.
"""

import asyncio
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Select, Subquery, case, delete, func, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import (
    Offer,
    Wine,
    WineQuery,
    WineSearchResult,
    canonical_name,
    normalize,
    synonyms,
)
from agent.sommelier.wine_fields import wine_fields
from agent.text import strip_unstorable
from db.engine import Sessions, SqlRepository
from db.models import OfferRow, WineRow, upsert
from db.wines import search
from db.wines.lists import CatalogueFile, CatalogueFileError, read_catalogue
from db.wines.search import Filters

T = TypeVar("T")
AnySelect = Select[*tuple[Any, ...]]

BATCH_SIZE: Final = 200
"""The number of wines per statement, well below SQLite's limit on bound values."""
STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
STARTER_SOURCE: Final = "starter"
"""The source of the wines of the starter catalogue."""
MIN_WINES: Final = 3
"""Results with fewer wines say which filters to relax."""
CANDIDATES: Final = 96
"""The number of best wines from which a varied selection is chosen."""
RANKING_COLUMNS: Final = (
    WineRow.id,
    WineRow.style,
    WineRow.producer,
    WineRow.name,
    WineRow.places,
    WineRow.price_in_euros,
)
"""Columns of the candidates, in addition to their ranks and the soft filters that they meet."""


class SqlCatalogue(SqlRepository):
    """A `Catalogue` on SQLite or Postgres."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        async with self.sessions() as session:
            if not query.like:
                return await _search(session, query, None)
            wines = await load_wines(session, [strip_unstorable(query.like)])
            like = wines.get(query.like)
            return await _search(session, query, like) if like else WineSearchResult()

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        storable = [wine_id for wine_id in wine_ids if wine_id == strip_unstorable(wine_id)]
        async with self.sessions() as session:
            wines = await load_wines(session, storable)
        return [wines[wine_id] for wine_id in storable if wine_id in wines]

    async def count(self) -> int:
        return await self._first_value(select(func.count(WineRow.number))) or 0


async def _search(session: AsyncSession, query: WineQuery, like: Wine | None) -> WineSearchResult:
    conditions = search.build_filters(query)
    soft = {name: condition for name, condition in conditions.items() if name in query.soft}
    hard = {name: condition for name, condition in conditions.items() if name not in soft}
    if like:
        hard["like"] = WineRow.id != like.id
    text = search.match_text(query.text, session.get_bind().dialect.name)
    narrow = partial(_narrow, hard=hard, soft=soft, text=text)
    ranks = search.rank_wines(query, soft, text, like)
    order = [rank.label(f"rank_{n}") for n, rank in enumerate(ranks)]
    met_filters = (case((is_met, 1), else_=0).label(name) for name, is_met in soft.items())
    columns = (*order, *RANKING_COLUMNS, func.count().over().label("total"), *met_filters)
    best = narrow(select(*columns)).order_by(*order, search.shuffle_order(query), WineRow.id)
    rows = (await session.execute(best.limit(CANDIDATES))).all()
    total = rows[0].total if rows else 0
    names = [name for name in hard if name != "like"]
    relax = await _count_relaxed(session, narrow, names, total) if total < MIN_WINES else {}
    ranked = [(None, row) for row in rows] if like else search.rank_by_preference(rows, query)
    chosen = search.choose_varied(ranked, len(order), query.limit)
    wines = await load_wines(session, [row.id for row in chosen])
    unmet = {row.id: tuple(name for name in soft if not getattr(row, name)) for row in chosen}
    return WineSearchResult(
        wines=tuple(wines[row.id] for row in chosen if row.id in wines),
        total=total,
        relax=relax,
        unmet_filters={wine_id: fields for wine_id, fields in unmet.items() if fields},
    )


def _narrow(
    statement: AnySelect, hard: Filters, soft: Filters, text: Subquery | None, without: str = ""
) -> AnySelect:
    """Limit `statement` to wines that pass; the text must only match if there are no filters."""
    conditions = {name: condition for name, condition in hard.items() if name != without}
    if text is not None:
        must_match = not {*conditions, *soft} - {"in_stock_only", "not_ids"}
        statement = statement.select_from(WineRow).join(
            text, text.c.number == WineRow.number, isouter=not must_match
        )
    return statement.where(true(), *conditions.values())


async def _count_relaxed(
    session: AsyncSession, narrow: Callable[..., AnySelect], names: Sequence[str], total: int
) -> dict[str, int]:
    """Return the number of wines without each filter, for filters whose removal adds wines."""
    if not names:
        return {}
    count = select(func.count(WineRow.number))
    counts = (narrow(count, without=name).scalar_subquery().label(name) for name in names)
    row = (await session.execute(select(*counts))).one()
    return {name: wines for name, wines in row._mapping.items() if wines > total}


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return wines by their ids, without unknown ids."""
    own_fields = [name for name in Wine.model_fields if name != "offers"]
    columns = select(*(getattr(WineRow, name) for name in own_fields))
    rows = await session.execute(columns.where(WineRow.id.in_(wine_ids)))
    offers = await _load_offers(session, wine_ids)
    return {row["id"]: Wine(**row, offers=offers[row["id"]]) for row in rows.mappings()}


async def _load_offers(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, list[Offer]]:
    """Return the offers of wines by the ids of the wines."""
    columns = select(OfferRow.wine_id, *(getattr(OfferRow, name) for name in Offer.model_fields))
    rows = await session.execute(
        columns.where(OfferRow.wine_id.in_(wine_ids)).order_by(OfferRow.position)
    )
    offers = defaultdict[str, list[Offer]](list)
    for row in rows.mappings():
        offers[row["wine_id"]].append(Offer.model_validate(row))
    return offers


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of wines by what an import did; `gone` wines are now out of stock."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


async def import_catalogue(sessions: Sessions, path: Path, source: str = "") -> ImportReport:
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
) -> ImportReport:
    """Add or replace the wines of a file in one transaction; if `dry_run`, only count them.

    Wines that are only in an earlier file from this source become out of stock. With
    `without_samples`, so do the wines of the starter catalogue.
    """
    sources = {file.source, *([STARTER_SOURCE] if without_samples else [])} - {""}
    in_stock = select(WineRow.id).where(WineRow.source.in_(sources), WineRow.in_stock)
    added = updated = 0
    async with sessions.begin() as session:
        file_ids = {wine.id for wine in file.wines}
        gone = [wine_id for wine_id in await session.scalars(in_stock) if wine_id not in file_ids]
        for ids in _batches(gone):
            await session.execute(update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False))
            offered = update(OfferRow).where(OfferRow.wine_id.in_(ids))
            await session.execute(offered.values(in_stock=False))
        for wines in _batches(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            added += len(wines) - len(stored)
            updated += sum(stored.get(wine.id, wine) != wine for wine in wines)
            await upsert(session, *(_to_row(wine, file.source) for wine in wines), key="id")
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
    return (items[start : start + BATCH_SIZE] for start in range(0, len(items), BATCH_SIZE))


async def count_samples(sessions: Sessions) -> int:
    """Return the number of wines of the starter catalogue that are in stock."""
    samples = (WineRow.source == STARTER_SOURCE) & WineRow.in_stock
    async with sessions() as session:
        return await session.scalar(select(func.count()).where(samples)) or 0


def _to_row(wine: Wine, source: str) -> WineRow:
    """Return the row of a wine, with the normalised forms that filters compare."""
    return WineRow(
        **wine.model_dump(mode="json", exclude={"offers"}),
        in_stock=wine.in_stock,
        source=source,
        price_in_euros=wine.price_in_euros,
        country_key=canonical_name("countries", wine.country),
        grape_keys=[canonical_name("grapes", grape) for grape in wine.grapes],
        # The spaces let filters find whole words, such as ` rhone `.
        places=f" {normalize(wine.region)} | {normalize(wine.appellation)} ",
        shuffle=zlib.crc32(wine.id.encode()),
        search_text=_search_text(wine),
    )


def _search_text(wine: Wine) -> str:
    """Return the words that a text search matches, including synonyms of the grapes."""
    words = [wine.field_text(name) for name, field in wine_fields().items() if field.is_searched]
    if wine.vintage is None:
        words.append("NV")
    for grape in wine.grapes:
        names = synonyms("grapes", grape)
        words += names if len(names) > 1 else ()
    return normalize(" ".join(words))

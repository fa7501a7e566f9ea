"""Between rows and wines: what is stored, what is read back, and the upsert of many at once."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from agent.sommelier.synonyms import folded, key, names
from agent.sommelier.wine import Wine
from db.models import WineAllergenRow, WineFoodRow, WineGrapeRow, WineRow, insert_into

Record = dict[str, Any]
"""Column values of one row."""

CHUNK: Final = 200
"""Wines per statement; well below SQLite's limit on bound values."""

_LISTS: Final[Mapping[str, type[WineGrapeRow | WineFoodRow | WineAllergenRow]]] = {
    "grapes": WineGrapeRow,
    "foods": WineFoodRow,
    "allergens": WineAllergenRow,
}


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """Return the wines with these ids, by id; unknown ids are left out."""
    found: dict[str, Wine] = {}
    related = [selectinload(getattr(WineRow, name)) for name in _LISTS]
    for ids in chunks(wine_ids):
        statement = select(WineRow).where(WineRow.id.in_(ids)).options(*related)
        found |= {row.id: _to_wine(row) for row in await session.scalars(statement)}
    return found


async def sources_of(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, str]:
    """Return the names of the files that these wines came from, by id."""
    statement = select(WineRow.id, WineRow.source).where(WineRow.id.in_(wine_ids))
    return {row.id: row.source for row in await session.execute(statement)}


async def save_wines(session: AsyncSession, wines: Sequence[Wine], source: str = "") -> None:
    """Insert these wines of a file, or replace those whose ids exist. Does not commit."""
    statement = insert_into(session, WineRow)
    kept = ("number", "id")
    changed = {c.key: statement.excluded[c.key] for c in WineRow.__table__.columns}
    changed = {name: value for name, value in changed.items() if name not in kept}
    upsert = statement.on_conflict_do_update(index_elements=["id"], set_=changed)
    await session.execute(upsert, [_to_record(wine) | {"source": source} for wine in wines])
    for name, model in _LISTS.items():
        await session.execute(delete(model).where(model.wine_id.in_([wine.id for wine in wines])))
        if items := [item for wine in wines for item in _items(wine, name)]:
            await session.execute(insert(model), items)


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield `items` in parts of at most `CHUNK`."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _to_wine(row: WineRow) -> Wine:
    own = {name: getattr(row, name) for name in Wine.model_fields.keys() - _LISTS.keys()}
    return Wine(
        **own,
        grapes=tuple(item.grape for item in row.grapes),
        foods=tuple(item.food for item in row.foods),
        allergens=tuple(item.allergen for item in row.allergens),
    )


def _to_record(wine: Wine) -> Record:
    """The row of a wine, without its lists, with the folded forms that filters compare."""
    return {
        **wine.model_dump(mode="json", exclude=set(_LISTS)),
        "price_in_euros": wine.price_in_euros,
        "country_key": key("countries", wine.country),
        "places": places(wine),
        "shuffle": zlib.crc32(wine.id.encode()),
        "search_text": search_text(wine),
    }


def _items(wine: Wine, name: str) -> list[Record]:
    """The rows of one of a wine's lists."""
    items = [
        {"wine_id": wine.id, "position": at, name.removesuffix("s"): value}
        for at, value in enumerate(getattr(wine, name))
    ]
    if name == "grapes":
        return [item | {"grape_key": key("grapes", item["grape"])} for item in items]
    return items


def places(wine: Wine) -> str:
    """Return region and appellation so that ` rhone ` is found as whole words in either."""
    return f" {folded(wine.region)} | {folded(wine.appellation)} "


def search_text(wine: Wine) -> str:
    """Return every word that a text search should find this wine by, its grapes' names too."""
    said = [wine.producer, wine.name, str(wine.vintage or "NV")]
    said += [wine.country, wine.region, wine.appellation, *wine.grapes]
    for grape in wine.grapes:
        said += others if len(others := names("grapes", grape)) > 1 else ()
    said += [value for value in (wine.style, wine.colour, wine.sweetness) if value]
    said += [food.replace("_", " ") for food in wine.foods]
    return folded(" ".join([*said, wine.notes]))

"""Between rows and wines: what is stored, what is read back, and the upsert of many at once."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Insert, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from agent.sommelier.wine import Wine
from db.models import WineAllergenRow, WineFoodRow, WineGrapeRow, WineRow
from db.search_text import country_key, grape_key, places, search_text, shuffle

Record = dict[str, Any]
"""Column values of one row."""

CHUNK: Final = 200
"""Wines per statement; well below SQLite's limit on bound values."""

_LISTS: Final = frozenset({"grapes", "foods", "allergens"})
_RELATED: Final = (WineGrapeRow, WineFoodRow, WineAllergenRow)


async def load_wines(session: AsyncSession, wine_ids: Sequence[str]) -> dict[str, Wine]:
    """The wines with these ids, by id; unknown ids are left out."""
    found: dict[str, Wine] = {}
    for ids in chunks(wine_ids):
        statement = (
            select(WineRow)
            .where(WineRow.id.in_(ids))
            .options(
                selectinload(WineRow.grapes),
                selectinload(WineRow.foods),
                selectinload(WineRow.allergens),
            )
        )
        for row in await session.scalars(statement):
            found[row.id] = to_wine(row)
    return found


async def save_wines(session: AsyncSession, wines: Sequence[Wine]) -> None:
    """Insert these wines, or replace those whose ids exist. Does not commit."""
    ids = [wine.id for wine in wines]
    await session.execute(_upsert(session.get_bind().dialect.name), [to_record(w) for w in wines])
    for related in _RELATED:
        await session.execute(delete(related).where(related.wine_id.in_(ids)))
    for related, records in (
        (WineGrapeRow, [record for wine in wines for record in _grapes(wine)]),
        (WineFoodRow, [record for wine in wines for record in _foods(wine)]),
        (WineAllergenRow, [record for wine in wines for record in _allergens(wine)]),
    ):
        if records:
            await session.execute(related.__table__.insert(), records)  # type: ignore[attr-defined]


def chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """`items` in parts of at most `CHUNK`."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def to_wine(row: WineRow) -> Wine:
    """The wine of a row whose lists are loaded."""
    own = {name: getattr(row, name) for name in Wine.model_fields.keys() - _LISTS}
    return Wine(
        **own,
        grapes=tuple(item.grape for item in row.grapes),
        foods=tuple(item.food for item in row.foods),
        allergens=tuple(item.allergen for item in row.allergens),
    )


def to_record(wine: Wine) -> Record:
    """The row of a wine, without its lists, with the folded forms that filters compare."""
    return {
        **wine.model_dump(mode="json", exclude=set(_LISTS)),
        "price_in_euros": wine.price_in_euros,
        "country_key": country_key(wine.country),
        "places": places(wine),
        "shuffle": shuffle(wine.id),
        "search_text": search_text(wine),
    }


def _upsert(dialect: str) -> Insert:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert(WineRow)
    changed = {
        name: statement.excluded[name]
        for name in (c.key for c in WineRow.__table__.columns)
        if name not in ("number", "id")
    }
    return statement.on_conflict_do_update(index_elements=["id"], set_=changed)


def _grapes(wine: Wine) -> list[Record]:
    return [
        {"wine_id": wine.id, "position": at, "grape": grape, "grape_key": grape_key(grape)}
        for at, grape in enumerate(wine.grapes)
    ]


def _foods(wine: Wine) -> list[Record]:
    return [
        {"wine_id": wine.id, "position": at, "food": food.value}
        for at, food in enumerate(wine.foods)
    ]


def _allergens(wine: Wine) -> list[Record]:
    return [
        {"wine_id": wine.id, "position": at, "allergen": allergen.value}
        for at, allergen in enumerate(wine.allergens)
    ]

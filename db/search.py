"""The wine search: filters exclude, foods and text rank, and an empty result says what to relax.

The order, best first:

1. how many of the asked foods a wine suits: pairings are data, so they outweigh words;
2. how well the text matches (bm25 in SQLite, ts_rank in Postgres);
3. for equals, one of each price band in turn, so that a page without a price limit shows what
   there is from cheap to dear rather than six wines of one price;
4. within a band, a fixed shuffle of the ids: alphabetical order would recommend the same few
   producers whatever is asked.

Asked for the cheapest or the dearest, the price comes before all of these (in euros, wines without
a price last); only what matches a text goes before what does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Float,
    Select,
    Subquery,
    and_,
    case,
    column,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    table,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.money import in_euros
from agent.sommelier.wine import Order, WineQuery, WineSearchResult
from db.models import FULL_TEXT, WineAllergenRow, WineFoodRow, WineGrapeRow, WineRow
from db.rows import load_wines
from db.search_text import country_key, grape_key, grape_phrases, region_phrases, terms

Filters = Mapping[str, ColumnElement[bool]]
AnySelect = Select[*tuple[Any, ...]]

PRICE_BANDS_EUR = (12, 20, 35, 70, 150)


async def search(session: AsyncSession, query: WineQuery) -> WineSearchResult:
    """Wines that pass every filter of `query`, best match first; see the module for the order."""
    filters = hard_filters(query)
    text = matching_text(query.text, session.get_bind().dialect.name)
    found = (await session.execute(_ranked(query, filters, text))).all()
    if not found:
        return WineSearchResult(relax=await _relax(session, filters, text))
    wines = await load_wines(session, [row.id for row in found])
    return WineSearchResult(
        wines=tuple(wines[row.id] for row in found if row.id in wines), total=found[0].total
    )


def hard_filters(query: WineQuery) -> Filters:
    """One condition for every filter that is set, under the name that `relax` uses for it."""
    return {
        **_attribute_filters(query),
        **_related_filters(query),
        **_excluding_filters(query),
        **_range_filters(query),
    }


def matching_text(text: str, dialect: str) -> Subquery | None:
    """Wines (`number`) that hold any word of `text`, with a `rank`; None for no words."""
    words = terms(text)
    if not words:
        return None
    return (_postgres_match if dialect == "postgresql" else _sqlite_match)(words)


def _sqlite_match(words: tuple[str, ...]) -> Subquery:
    index = table(FULL_TEXT, column("rowid"), column("rank", Float))
    phrase = " OR ".join(f'"{word}"' for word in words)
    return (
        select(index.c.rowid.label("number"), (-index.c.rank).label("rank"))
        .where(literal_column(FULL_TEXT).op("MATCH")(phrase))
        .subquery("matching")
    )


def _postgres_match(words: tuple[str, ...]) -> Subquery:
    vector: ColumnClause[str] = literal_column(f"wines.{FULL_TEXT}")
    phrase = func.to_tsquery("english", " | ".join(f"'{word}'" for word in words))
    return (
        select(WineRow.number.label("number"), func.ts_rank(vector, phrase, 1).label("rank"))
        .where(vector.op("@@")(phrase))
        .subquery("matching")
    )


def _ranked(query: WineQuery, filters: Filters, text: Subquery | None) -> AnySelect:
    ranks = _Ranks(_food_matches(query), _text_rank(text), _price_band())
    alternating = func.row_number().over(
        partition_by=(ranks.foods, ranks.text, ranks.band), order_by=(WineRow.shuffle, WineRow.id)
    )
    statement = select(WineRow.id.label("id"), func.count().over().label("total"))
    return (
        _found(statement, filters, text)
        .order_by(
            *_by_price(query.order, ranks.text),
            ranks.foods.desc(),
            ranks.text.desc(),
            alternating,
            WineRow.shuffle,
            WineRow.id,
        )
        .limit(query.limit)
    )


@dataclass(frozen=True, slots=True)
class _Ranks:
    foods: ColumnElement[int]
    text: ColumnElement[float]
    band: ColumnElement[int]


def _found(statement: AnySelect, filters: Filters, text: Subquery | None) -> AnySelect:
    """`statement` over the wines that pass; with nothing but a text to go by, it must match."""
    if text is not None:
        only_text = not filters.keys() - {"in_stock_only"}
        statement = statement.select_from(WineRow).join(
            text, text.c.number == WineRow.number, isouter=not only_text
        )
    return statement.where(*filters.values())


async def _relax(session: AsyncSession, filters: Filters, text: Subquery | None) -> dict[str, int]:
    """For each filter, how many wines there are without it, in one round trip."""
    if not filters:
        return {}
    counts = [
        _found(
            select(func.count(WineRow.number)),
            {other: filters[other] for other in filters if other != name},
            text,
        )
        .scalar_subquery()
        .label(name)
        for name in filters
    ]
    row = (await session.execute(select(*counts))).one()
    return {name: count for name, count in row._mapping.items() if count}


def _food_matches(query: WineQuery) -> ColumnElement[int]:
    if not query.foods:
        return literal(0)
    return (
        select(func.count())
        .select_from(WineFoodRow)
        .where(WineFoodRow.wine_id == WineRow.id, WineFoodRow.food.in_(query.foods))
        .scalar_subquery()
    )


def _text_rank(text: Subquery | None) -> ColumnElement[float]:
    return literal(0.0) if text is None else func.coalesce(text.c.rank, 0.0)


def _by_price(order: Order, text: ColumnElement[float]) -> tuple[Any, ...]:
    """What ranks before everything else if a price is what counts."""
    if order == "match":
        return ()
    price = WineRow.price_in_euros
    matches = case((text > 0, 0), else_=1)
    return price.is_(None), matches, price if order == "cheapest" else price.desc()


def _price_band() -> ColumnElement[int]:
    bands = [(WineRow.price_in_euros < edge, edge) for edge in PRICE_BANDS_EUR]
    return case((WineRow.price_in_euros.is_(None), -1), *bands, else_=0)


def _attribute_filters(query: WineQuery) -> Filters:
    asked = {
        "styles": (WineRow.style, query.styles),
        "colours": (WineRow.colour, query.colours),
        "sweetness": (WineRow.sweetness, query.sweetness),
        "bodies": (WineRow.body, query.bodies),
        "countries": (WineRow.country_key, tuple(map(country_key, query.countries))),
    }
    return {name: field.in_(values) for name, (field, values) in asked.items() if values}


def _related_filters(query: WineQuery) -> Filters:
    filters: dict[str, ColumnElement[bool]] = {}
    if query.foods:
        suited = select(WineFoodRow.wine_id).where(WineFoodRow.food.in_(query.foods))
        filters["foods"] = WineRow.id.in_(suited)
    if query.grapes:
        filters["grapes"] = WineRow.id.in_(_made_of(query.grapes))
    if query.regions:
        filters["regions"] = _lies_in(query.regions)
    return filters


def _excluding_filters(query: WineQuery) -> Filters:
    """What a wine must not be. Only what is known of it counts: an unknown colour is no red."""
    filters: dict[str, ColumnElement[bool]] = {}
    if query.without_allergens:
        contain = select(WineAllergenRow.wine_id).where(
            WineAllergenRow.allergen.in_(query.without_allergens)
        )
        filters["without_allergens"] = WineRow.id.not_in(contain)
    if styles := query.without_styles:
        colour = func.coalesce(WineRow.colour, "")
        filters["without_styles"] = and_(WineRow.style.not_in(styles), colour.not_in(styles))
    if grapes := query.without_grapes:
        filters["without_grapes"] = not_(or_(WineRow.id.in_(_made_of(grapes)), _hints_at(grapes)))
    for name in ("without_countries", "without_regions"):
        if origins := getattr(query, name):
            filters[name] = not_(or_(_from_country(origins), _lies_in(origins)))
    return filters


def _from_country(names: Sequence[str]) -> ColumnElement[bool]:
    return WineRow.country_key.in_(tuple(map(country_key, names)))


def _lies_in(regions: Sequence[str]) -> ColumnElement[bool]:
    phrases = (phrase for name in regions for phrase in region_phrases(name))
    return or_(false(), *(WineRow.places.contains(f" {phrase} ") for phrase in phrases))


def _made_of(grapes: Sequence[str]) -> AnySelect:
    keys = tuple(map(grape_key, grapes))
    return select(WineGrapeRow.wine_id).where(WineGrapeRow.grape_key.in_(keys))


def _hints_at(grapes: Sequence[str]) -> ColumnElement[bool]:
    """Whether a wine of unknown grapes is said to be of one of these: "Riesling Réserve"."""
    text = literal(" ").concat(WineRow.search_text).concat(" ")
    phrases = (phrase for name in grapes for phrase in grape_phrases(name))
    named = or_(false(), *(text.contains(f" {phrase} ") for phrase in phrases))
    return and_(named, WineRow.id.not_in(select(WineGrapeRow.wine_id)))


def _range_filters(query: WineQuery) -> Filters:
    filters: dict[str, ColumnElement[bool]] = {}
    low, high = (
        None if limit is None else in_euros(limit, query.currency)
        for limit in (query.min_price, query.max_price)
    )
    price = [WineRow.price_in_euros >= low] if low is not None else []
    price += [WineRow.price_in_euros <= high] if high is not None else []
    if price:
        filters["price"] = and_(*price)
    if query.min_abv is not None:
        filters["min_abv"] = WineRow.abv >= query.min_abv
    if query.max_abv is not None:
        filters["max_abv"] = WineRow.abv <= query.max_abv
    if query.in_stock_only:
        filters["in_stock_only"] = WineRow.in_stock.is_(True)
    return filters

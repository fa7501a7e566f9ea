"""The wine search: filters exclude or rank, and an empty result says what to relax.

The order, best first:

1. the score: what a wine meets of the soft filters, how many of the asked foods it suits, and how
   far to the front an asked grape stands in it. Pairings are data, so they outweigh words;
2. how well the text matches (bm25 in SQLite, ts_rank in Postgres);
3. for wines like another one, how near they are to it;
4. among equals, what repeats least of the producers, regions and price bands before it, so that a
   page shows what there is;
5. a shuffle that depends on the wine and on what was asked: alphabetical order would recommend the
   same few producers whatever is asked.

Asked for the cheapest or the dearest, the price comes before all of these (in euros, wines without
a price last); only what matches a text goes before what does not.
"""

import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Float,
    Row,
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
    true,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from agent.sommelier.money import in_euros
from agent.sommelier.wine import (
    Body,
    Level,
    Sweetness,
    Wine,
    WineQuery,
    WineSearchResult,
)
from db.models import FULL_TEXT, WineAllergenRow, WineFoodRow, WineGrapeRow, WineRow
from db.rows import load_wines
from db.search_text import country_key, grape_key, grape_phrases, region_phrases, storable, terms
from db.similar import distance

Filters = Mapping[str, ColumnElement[bool]]
AnySelect = Select[*tuple[Any, ...]]

PRICE_BANDS_EUR: Final = (12, 20, 35, 70, 150)
CANDIDATES: Final = 96
"""How many of the best are looked at for variety."""

WEIGHTS: Final[Mapping[str, int]] = {
    "foods": 60,
    "styles": 60,
    "colours": 50,
    "sweetness": 40,
    "grapes": 40,
    "regions": 40,
    "countries": 30,
    "bodies": 20,
    "tannins": 20,
    "acidities": 20,
    "min_abv": 20,
    "max_abv": 20,
}
"""What it counts to meet a soft filter."""
FURTHER_FOOD: Final = 10
"""What each asked food counts that a wine suits beyond the first."""
PRIME: Final = 2**31 - 1
SCALES: Final[Mapping[str, tuple[InstrumentedAttribute[str | None], Sequence[str]]]] = {
    "sweetness": (WineRow.sweetness, [*Sweetness]),
    "bodies": (WineRow.body, [*Body]),
    "tannins": (WineRow.tannin, [*Level]),
    "acidities": (WineRow.acidity, [*Level]),
}
"""Ordered values: the neighbour of what was asked counts half."""


async def search(
    session: AsyncSession, query: WineQuery, like: Wine | None = None
) -> WineSearchResult:
    """Wines that pass every filter of `query`, best match first; see the module for the order.

    With `like`, the wines most like it come first among those of one score; it is left out itself.
    """
    asked = _asked(query, like, session.get_bind().dialect.name)
    rows = (await session.execute(asked.best())).all()
    if not rows:
        return WineSearchResult(relax=await _relax(session, asked))
    best = _varied(rows, len(asked.ranks), query.limit)
    wines = await load_wines(session, [row.id for row in best])
    missed = {row.id: tuple(name for name in asked.soft if not getattr(row, name)) for row in best}
    return WineSearchResult(
        wines=tuple(wines[row.id] for row in best if row.id in wines),
        total=rows[0].total,
        missed={wine_id: names for wine_id, names in missed.items() if names},
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as conditions, and what orders the wines that meet them, the smallest first."""

    hard: Filters
    soft: Filters
    text: Subquery | None
    ranks: Sequence[ColumnElement[Any]]
    shuffled: ColumnElement[int]

    def best(self) -> AnySelect:
        """The best wines, with their ranks in front, and 1 for each soft filter they meet."""
        ranks = [rank.label(f"rank_{at}") for at, rank in enumerate(self.ranks)]
        statement = select(
            *ranks,
            WineRow.id.label("id"),
            func.count().over().label("total"),
            WineRow.producer.label("producer"),
            WineRow.places.label("place"),
            WineRow.price_in_euros.label("price"),
            *(case((meets, 1), else_=0).label(name) for name, meets in self.soft.items()),
        )
        return self.found(statement).order_by(*ranks, self.shuffled, WineRow.id).limit(CANDIDATES)

    def found(self, statement: AnySelect, without: str = "") -> AnySelect:
        """`statement` over the wines that pass; with nothing but a text to go by, it must match."""
        hard = {name: each for name, each in self.hard.items() if name != without}
        if self.text is not None:
            only_text = not {*hard, *self.soft} - {"in_stock_only", "not_ids"}
            statement = statement.select_from(WineRow).join(
                self.text, self.text.c.number == WineRow.number, isouter=not only_text
            )
        return statement.where(true(), *hard.values())


def _asked(query: WineQuery, like: Wine | None, dialect: str) -> _Asked:
    conditions = filters(query)
    soft: Filters = {name: each for name, each in conditions.items() if name in query.soft}
    hard = {name: each for name, each in conditions.items() if name not in soft}
    if like:
        hard["like"] = WineRow.id != like.id
    text = matching_text(query.text, dialect)
    return _Asked(hard, soft, text, [*_ranks(query, soft, text, like)], _shuffled(query))


async def _relax(session: AsyncSession, asked: _Asked) -> dict[str, int]:
    """For each filter, how many wines there are without it, in one round trip."""
    names = [name for name in asked.hard if name != "like"]
    if not names:
        return {}
    count = select(func.count(WineRow.number))
    counts = (asked.found(count, without=name).scalar_subquery().label(name) for name in names)
    row = (await session.execute(select(*counts))).one()
    return {name: found for name, found in row._mapping.items() if found}


def filters(query: WineQuery) -> Filters:
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


def _ranks(
    query: WineQuery, soft: Filters, text: Subquery | None, like: Wine | None
) -> Iterator[ColumnElement[Any]]:
    """What orders the wines found; what is the same for all is left out."""
    matches = None if text is None else func.coalesce(text.c.rank, 0.0)
    if query.order != "match":
        price = WineRow.price_in_euros.expression
        yield case((price.is_(None), 1), else_=0)
        if matches is not None:
            yield case((matches > 0, 0), else_=1)
        yield price if query.order == "cheapest" else -price
    if points := [*_soft_points(query, soft), *_foods_points(query), *_grape_points(query)]:
        yield -sum(points[1:], start=points[0])
    if matches is not None:
        yield -matches
    if like:
        yield distance(like)


def _soft_points(query: WineQuery, soft: Filters) -> list[ColumnElement[int]]:
    """What a wine gets for each soft filter, foods and grapes apart."""
    return [
        _near(name, getattr(query, name))
        if name in SCALES
        else case((condition, WEIGHTS[name]), else_=0)
        for name, condition in soft.items()
        if name not in ("foods", "grapes")
    ]


def _near(name: str, asked: Sequence[str]) -> ColumnElement[int]:
    """The weight for a value that was asked for, half of it for the one beside it on its scale."""
    field, scale = SCALES[name]
    places = [scale.index(value) for value in asked]
    steps = {str(value): min(abs(at - place) for place in places) for at, value in enumerate(scale)}
    worth = {value: WEIGHTS[name] // 2**apart for value, apart in steps.items() if apart < 2}
    return case(worth, value=field, else_=0)


def _foods_points(query: WineQuery) -> list[ColumnElement[int]]:
    """The weight of foods for the first that a wine suits, and something for each further one."""
    if not query.foods:
        return []
    suited = (
        select(func.count())
        .select_from(WineFoodRow)
        .where(WineFoodRow.wine_id == WineRow.id, WineFoodRow.food.in_(query.foods))
        .scalar_subquery()
    )
    first = WEIGHTS["foods"] - FURTHER_FOOD
    return [case((suited > 0, first + FURTHER_FOOD * suited), else_=0)]


def _grape_points(query: WineQuery) -> list[ColumnElement[int]]:
    """The weight of grapes for a wine of the asked grape, half of it where it stands second ..."""
    if not query.grapes:
        return []
    foremost = (
        select(func.min(WineGrapeRow.position))
        .where(WineGrapeRow.wine_id == WineRow.id)
        .where(WineGrapeRow.grape_key.in_(tuple(map(grape_key, query.grapes))))
        .scalar_subquery()
    )
    return [func.coalesce(WEIGHTS["grapes"] // (foremost + 1), 0)]


def _shuffled(query: WineQuery) -> ColumnElement[int]:
    """An order of the wines that looks random, and is another one for another question."""
    asked = query.model_dump_json(exclude={"text", "not_ids", "order", "limit", "soft", "wine_id"})
    return (WineRow.shuffle * (zlib.crc32(asked.encode()) >> 2 | 1)) % PRIME


def _varied(rows: Sequence[Row[Any]], ranks: int, limit: int) -> list[Row[Any]]:
    """The first `limit` rows, equals so chosen that what they show is repeated least."""
    best: list[Row[Any]] = []
    shown: Counter[tuple[str, object]] = Counter()

    def repeats(row: Row[Any]) -> tuple[int, ...]:
        producer, place, band = (shown[each] for each in _traits(row))
        return producer, place + band, band

    for _, equals in groupby(rows, key=lambda row: tuple(row[:ranks])):
        left = list(equals)
        while left and len(best) < limit:
            best.append(min(left, key=repeats))
            left.remove(best[-1])
            shown.update(_traits(best[-1]))
    return best


def _traits(row: Row[Any]) -> list[tuple[str, object]]:
    band = -1 if row.price is None else bisect(PRICE_BANDS_EUR, row.price)
    return [("producer", row.producer), ("place", row.place), ("band", band)]


def _attribute_filters(query: WineQuery) -> Filters:
    asked = {
        "styles": (WineRow.style, query.styles),
        "colours": (WineRow.colour, query.colours),
        "sweetness": (WineRow.sweetness, query.sweetness),
        "bodies": (WineRow.body, query.bodies),
        "tannins": (WineRow.tannin, query.tannins),
        "acidities": (WineRow.acidity, query.acidities),
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
    if query.not_ids:
        filters["not_ids"] = WineRow.id.not_in([storable(each) for each in query.not_ids])
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

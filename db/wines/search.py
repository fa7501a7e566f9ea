"""The conditions and the ranking of a search for wines, and variety among equals."""

import json
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from math import inf, log
from pathlib import Path
from statistics import median
from typing import Any, Final

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Float,
    Row,
    String,
    Subquery,
    and_,
    case,
    cast,
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
from sqlalchemy.orm import InstrumentedAttribute

from agent.sommelier.wine import (
    NOT_VEGAN,
    VEGAN,
    Body,
    Colour,
    Food,
    Level,
    Style,
    Sweetness,
    Wine,
    WineQuery,
    folded,
    in_euros,
    key,
    known_names,
    names,
)
from agent.tables import read_toml
from agent.text import stop_words, storable, words
from db.models import FULL_TEXT, WineRow

Condition = ColumnElement[bool]
Filters = Mapping[str, Condition]

MAX_TERMS: Final = 32
AROUND: Final = 0.25
"""The share by which a price may differ from the one that it is to be around."""
OAKED: Final = ("oak", "oaky", "oaked", "barrel", "barrels", "barrique", "barriques", "vanilla")
UNOAKED: Final = ("no oak", "without oak", "not oaky", "unoaked")
"""Words of a wine's notes that tell of oak, and that tell of none."""
BUBBLES: Final = ("sparkling", "bubbles", "fizz", "fizzy", "spumante", "sekt", "mousseux")
"""Words of a wine without alcohol that tell of bubbles; its style does not."""


def filters(query: WineQuery) -> Filters:
    """Return a condition for every filter that is set, under the name that `relax` uses for it."""
    return {**_wanted(query), **_unwanted(query), **_ranges(query)}


def _wanted(query: WineQuery) -> Filters:
    countries = [key("countries", name) for name in query.countries]
    asked: dict[str, tuple[object, Condition]] = {
        "styles": (query.styles, _is_of_style(query)),
        "alcohol_free": (
            query.alcohol_free is not None,
            (WineRow.style == Style.ALCOHOL_FREE)
            if query.alcohol_free
            else (WineRow.style != Style.ALCOHOL_FREE),
        ),
        "colours": (query.colours, WineRow.colour.in_(query.colours)),
        "sweetness": (query.sweetness, WineRow.sweetness.in_(query.sweetness)),
        "bodies": (query.bodies, WineRow.body.in_(query.bodies)),
        "tannins": (query.tannins, WineRow.tannin.in_(query.tannins)),
        "acidities": (query.acidities, WineRow.acidity.in_(query.acidities)),
        "countries": (countries, WineRow.country_key.in_(countries)),
        "foods": (query.foods, _holds(WineRow.foods, query.foods)),
        "grapes": (query.grapes, _is_made_of(query.grapes)),
        "regions": (query.regions, _lies_in(query.regions)),
        "in_stock_only": (query.in_stock_only, WineRow.in_stock.is_(True)),
        "oak": (query.oak is not None, _is_oaked() if query.oak else not_(_is_oaked())),
    }
    return {name: condition for name, (values, condition) in asked.items() if values}


def _unwanted(query: WineQuery) -> Filters:
    """Return the conditions that rule wines out; an unknown colour is no red."""
    found: dict[str, Condition] = {}
    if query.not_ids:
        found["not_ids"] = WineRow.id.not_in([storable(wine_id) for wine_id in query.not_ids])
    if allergens := query.without_allergens:
        found["without_allergens"] = not_(_holds(WineRow.allergens, allergens))
    if query.vegan:
        found["vegan"] = not_(_holds(WineRow.allergens, [*NOT_VEGAN]))
    if styles := query.without_styles:
        colour = func.coalesce(WineRow.colour, "")
        found["without_styles"] = and_(WineRow.style.not_in(styles), colour.not_in(styles))
    if grapes := query.without_grapes:
        found["without_grapes"] = not_(or_(_is_made_of(grapes), _hints_at(grapes)))
    for filter_name in ("without_countries", "without_regions"):
        if origins := getattr(query, filter_name):
            countries = [key("countries", name) for name in origins]
            from_one = or_(WineRow.country_key.in_(countries), _lies_in(origins))
            found[filter_name] = not_(from_one)
    return found


def _ranges(query: WineQuery) -> Filters:
    found: dict[str, Condition] = {}
    price = WineRow.price_in_euros
    limits: list[Condition] = []
    if query.min_price is not None:
        limits = [price >= in_euros(query.min_price, query.currency)]
    if query.max_price is not None:
        limits.append(price <= in_euros(query.max_price, query.currency))
    if query.below is not None:
        limits.append(price < in_euros(query.below, query.currency))
    if query.around is not None:
        target = in_euros(query.around, query.currency)
        limits += [price >= target * (1 - AROUND), price <= target * (1 + AROUND)]
    if limits:
        found["price"] = and_(*limits)
    if query.min_abv is not None:
        found["min_abv"] = WineRow.abv >= query.min_abv
    if query.max_abv is not None:
        # A wine without alcohol whose strength is not known has none.
        unknown = case((WineRow.style == Style.ALCOHOL_FREE, 0.0))
        found["max_abv"] = func.coalesce(WineRow.abv, unknown) <= query.max_abv
    return found


def _holds(field: InstrumentedAttribute[list[str]], values: Sequence[str]) -> Condition:
    """Return the condition that a list of a wine, as JSON, holds one of these values."""
    text = _text_of(field)
    return or_(false(), *(text.contains(json.dumps(value), autoescape=True) for value in values))


def _text_of(field: InstrumentedAttribute[list[str]]) -> ColumnElement[str]:
    return cast(field, String)


def _is_made_of(grapes: Sequence[str]) -> Condition:
    return _holds(WineRow.grape_keys, [key("grapes", name) for name in grapes])


def _lies_in(regions: Sequence[str]) -> Condition:
    phrases = (phrase for name in regions for phrase in names("regions", name))
    return or_(false(), *(WineRow.places.contains(f" {phrase} ") for phrase in phrases))


def _is_of_style(query: WineQuery) -> Condition:
    """Return the condition of a style; a wine without alcohol is of one by colour and bubbles."""
    styles = query.styles
    if not query.alcohol_free or Style.ALCOHOL_FREE in styles:
        return WineRow.style.in_(styles)
    bubbles = _tells_of(BUBBLES) if Style.SPARKLING in styles else false()
    return or_(WineRow.colour.in_(styles), bubbles)


def _is_oaked() -> Condition:
    """Return the condition that the notes of a wine tell of oak."""
    return and_(_tells_of(OAKED), not_(_tells_of(UNOAKED)))


def _tells_of(known: Sequence[str]) -> Condition:
    """Return the condition that a wine's name or notes hold one of these words."""
    text = literal(" ").concat(WineRow.search_text).concat(" ")
    return or_(false(), *(text.contains(f" {word} ") for word in known))


def _hints_at(grapes: Sequence[str]) -> Condition:
    """Return the condition that a wine of unknown grapes names one of these: "Riesling Réserve"."""
    phrases = [phrase for name in grapes for phrase in names("grapes", name)]
    return and_(_tells_of(phrases), _text_of(WineRow.grape_keys) == "[]")


def terms(text: str) -> tuple[str, ...]:
    """Return the words of `text` worth searching for: folded, without stop words and doubles.

    A term consists of letters, digits and their marks, so no text can break a query's syntax.
    """
    # All stop words of Postgres' English configuration are left out: a term that it drops must not
    # count in SQLite either, or the two would disagree on what a text matches.
    nothing = stop_words() | _says_nothing()
    return tuple(dict.fromkeys(word for word in words(text) if word not in nothing))[:MAX_TERMS]


@cache
def _says_nothing() -> frozenset[str]:
    read = read_toml(dict[str, str], Path(__file__).with_suffix(".toml"))
    return frozenset(read["says_nothing"].split())


def matching_text(text: str, dialect: str) -> Subquery | None:
    """Return the wines (`number`) that hold any word of `text`, with a `rank`; None for none."""
    found = terms(text)
    if not found:
        return None
    return (_postgres_match if dialect == "postgresql" else _sqlite_match)(found)


def _sqlite_match(found: tuple[str, ...]) -> Subquery:
    index = table(FULL_TEXT, column("rowid"), column("rank", Float))
    phrase = " OR ".join(f'"{word}"' for word in found)
    return (
        select(index.c.rowid.label("number"), (-index.c.rank).label("rank"))
        .where(literal_column(FULL_TEXT).op("MATCH")(phrase))
        .subquery("matching")
    )


def _postgres_match(found: tuple[str, ...]) -> Subquery:
    vector: ColumnClause[str] = literal_column(f"wines.{FULL_TEXT}")
    phrase = func.to_tsquery("english", " | ".join(f"'{word}'" for word in found))
    return (
        select(WineRow.number.label("number"), func.ts_rank(vector, phrase, 1).label("rank"))
        .where(vector.op("@@")(phrase))
        .subquery("matching")
    )


Distance = ColumnElement[float]

POINTS: Final[Mapping[str, int]] = {
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
"""The points for meeting a soft filter."""
FURTHER_FOOD: Final = 10
"""The points for each asked food that a wine suits, beyond the first."""

UNKNOWN: Final = 0.5
"""The distance to an unknown value: neither alike nor different."""

SCALES: Final[Mapping[str, tuple[InstrumentedAttribute[str | None], list[str]]]] = {
    "sweetness": (WineRow.sweetness, [*Sweetness]),
    "bodies": (WineRow.body, [*Body]),
    "tannins": (WineRow.tannin, [*Level]),
    "acidities": (WineRow.acidity, [*Level]),
}
"""Ordered values: a neighbour of the asked value gets half of the points."""
PRICE_BANDS_EUR: Final = (12, 20, 35, 70, 150)
DEAR: Final = 2
"""How many times the median price of what fits is dear: such wines come last, unless a search tells
of prices."""
PRIME: Final = 2**31 - 1
VALUES: Final = frozenset(
    word for values in (Style, Colour, Sweetness, Food) for value in values for word in words(value)
)
"""Words that a filter says: in a name they are no name."""


def ranks(
    query: WineQuery, soft: Filters, text: Subquery | None, like: Wine | None
) -> Iterator[ColumnElement[Any]]:
    """Yield the expressions that order the wines, the smallest first."""
    matches = None if text is None else func.coalesce(text.c.rank, 0.0)
    if query.order != "match":
        price = WineRow.price_in_euros.expression
        yield case((price.is_(None), 1), else_=0)
        if matches is not None:
            yield case((matches > 0, 0), else_=1)
        yield price if query.order == "cheapest" else -price
    if query.vegan:
        yield case((_tells_of([VEGAN]), 0), else_=1)
    if points := [*_soft_points(query, soft), *_food_points(query), *_grape_points(query)]:
        yield -sum(points[1:], start=points[0])
    if matches is not None:
        yield -matches
    if query.alcohol_free:
        yield func.coalesce(WineRow.abv, 0.0)
    if query.around is not None:
        yield func.abs(WineRow.price_in_euros - in_euros(query.around, query.currency))
    if like:
        yield distance(like)


def shuffled(query: WineQuery) -> ColumnElement[int]:
    """Return an order that looks random, and differs for other filters."""
    asked = query.model_dump_json(exclude={"text", "not_ids", "order", "limit", "soft", "vegan"})
    return (WineRow.shuffle * (zlib.crc32(asked.encode()) >> 2 | 1)) % PRIME


_Trait = tuple[str, object]


def preferred(rows: Sequence[Row[Any]], query: WineQuery) -> list[tuple[Any, Row[Any]]]:
    """Return rows in order, each with its place: those that the text names first, the dear last.

    The points for soft filters go before both.
    """
    if query.order != "match":
        return [(None, row) for row in rows]
    named, dearest = _named(query.text, rows), inf
    prices = [row.price for row in rows if row.price is not None]
    if prices and all(limit is None for limit in query.price_limits):
        dearest = DEAR * median(prices)
    has_points = any(getattr(query, name) for name in query.soft)
    places = [
        (row[0] if has_points else 0, -weight, (row.price or 0) > dearest)
        for row, weight in zip(rows, named, strict=True)
    ]
    return sorted(zip(places, rows, strict=True), key=lambda placed: placed[0])


def _named(text: str, rows: Sequence[Row[Any]]) -> list[float]:
    """Return how much of each row's name, producer and origin a text names; rare words count more.

    Grapes and what a filter says name no wine.
    """
    said = f" {folded(text)} "
    for name in _grape_names():
        said = said.replace(f" {name} ", " ")
    asked = {*terms(said)} - VALUES
    if not asked:
        return [0.0] * len(rows)
    held = [asked & {*words(f"{row.name} {row.producer} {row.place}")} for row in rows]
    counts = Counter(word for found in held for word in found)
    return [sum(log(len(rows) / counts[word]) for word in found) for found in held]


@cache
def _grape_names() -> Sequence[str]:
    return sorted(known_names("grapes"), key=len, reverse=True)


def varied(rows: Sequence[tuple[object, Row[Any]]], ranked: int, limit: int) -> list[Row[Any]]:
    """Return at most `limit` first rows; equals are chosen to repeat each other least.

    `ranked` is the number of columns that rank a row beside its place.
    """
    best: list[Row[Any]] = []
    shown: Counter[_Trait] = Counter()
    for _, equals in groupby(rows, key=lambda placed: (placed[0], *placed[1][:ranked])):
        left = [(row, *_traits(row)) for _, row in equals]
        while left and len(best) < limit:
            repeats = [
                (shown[producer], shown[place] + shown[band], shown[band], is_seldom_meant)
                for _, producer, place, band, is_seldom_meant in left
            ]
            row, *traits, _ = left.pop(repeats.index(min(repeats)))
            best.append(row)
            shown.update(traits)
    return best


def _traits(row: Row[Any]) -> tuple[_Trait, _Trait, _Trait, bool]:
    band = -1 if row.price is None else bisect(PRICE_BANDS_EUR, row.price)
    is_seldom_meant = row.style == Style.ALCOHOL_FREE
    return ("producer", row.producer), ("place", row.place), ("band", band), is_seldom_meant


def _soft_points(query: WineQuery, soft: Filters) -> list[ColumnElement[int]]:
    """Return the points for each soft filter but foods and grapes."""
    return [
        _near(name, getattr(query, name))
        if name in SCALES
        else case((condition, POINTS[name]), else_=0)
        for name, condition in soft.items()
        if name not in ("foods", "grapes")
    ]


def _near(name: str, asked: Sequence[str]) -> ColumnElement[int]:
    """Return the points for an asked value, half of them for its neighbours."""
    field, scale = SCALES[name]
    places = [scale.index(value) for value in asked]
    steps = {str(value): min(abs(at - place) for place in places) for at, value in enumerate(scale)}
    worth = {value: POINTS[name] // 2**apart for value, apart in steps.items() if apart < 2}
    return case(worth, value=field, else_=0)


def _food_points(query: WineQuery) -> list[ColumnElement[int]]:
    """Return the points for the asked foods that a wine suits, most for the first."""
    if not query.foods:
        return []
    suited = _count_held(WineRow.foods, query.foods)
    first = POINTS["foods"] - FURTHER_FOOD
    return [case((suited > 0, first + FURTHER_FOOD * suited), else_=0)]


def _grape_points(query: WineQuery) -> list[ColumnElement[int]]:
    """Return the points for an asked grape, half of them if it is not the first of the blend."""
    if not query.grapes:
        return []
    keys = [key("grapes", name) for name in query.grapes]
    blend = _text_of(WineRow.grape_keys)
    is_first = or_(*(blend.startswith(f"[{json.dumps(name)}", autoescape=True) for name in keys))
    points = POINTS["grapes"]
    return [case((is_first, points), (_holds(WineRow.grape_keys, keys), points // 2), else_=0)]


def _count_held(
    field: InstrumentedAttribute[list[str]], values: Sequence[str]
) -> ColumnElement[int]:
    """Return how many of these values a list of a wine holds."""
    counts = [case((_holds(field, [value]), 1), else_=0) for value in values]
    return sum(counts[1:], start=counts[0])


def distance(wine: Wine) -> Distance:
    """Return the distance of each row from `wine`; 0 is alike in everything that counts."""
    differences: list[tuple[float, Distance]] = [
        (4.0, _differs(WineRow.style, wine.style)),  # nobody calls a port like a Chablis
        (3.0, _differs(WineRow.colour, wine.colour)),
        (3.0, _other_grapes(wine)),
        (2.0, _steps("sweetness", wine.sweetness)),
        (2.0, _steps("bodies", wine.body)),
        (1.5, _other_region(wine)),
        (1.0, _steps("tannins", wine.tannin)),
        (1.0, _steps("acidities", wine.acidity)),
        (1.0, _price_ratio(wine.price_in_euros)),
        (0.5, _differs(WineRow.country_key, key("countries", wine.country))),
    ]
    return sum((weight * difference for weight, difference in differences), start=literal(0.0))


def _differs(field: InstrumentedAttribute[Any], value: str | None) -> Distance:
    if not value:
        return literal(UNKNOWN)
    return case((field == value, 0.0), (field.is_(None), UNKNOWN), else_=1.0)


def _steps(name: str, value: str | None) -> Distance:
    """Return the distance on an ordered scale, 1 between its ends."""
    if value is None:
        return literal(UNKNOWN)
    field, scale = SCALES[name]
    here, longest = scale.index(value), len(scale) - 1
    apart = {str(other): abs(at - here) / longest for at, other in enumerate(scale)}
    return case(apart, value=field, else_=UNKNOWN)


def _other_grapes(wine: Wine) -> Distance:
    """Return 1 minus the share of common grapes in all grapes of both wines."""
    keys = {key("grapes", grape) for grape in wine.grapes}
    if not keys:
        return literal(UNKNOWN)
    shared = cast(_count_held(WineRow.grape_keys, sorted(keys)), Float)
    count = func.json_array_length(WineRow.grape_keys)
    return cast(1 - shared / (len(keys) + count - shared), Float)


def _other_region(wine: Wine) -> Distance:
    place = folded(wine.region)
    if not place:
        return literal(UNKNOWN)
    return case((WineRow.places.contains(f" {place} "), 0.0), else_=1.0)


def _price_ratio(price: float | None) -> Distance:
    """Return 0 for the same price, near 1 for a price many times the other."""
    if not price:
        return literal(UNKNOWN)
    other = WineRow.price_in_euros
    return case(
        (other.is_(None), UNKNOWN),
        (other > price, 1.0 - price / other),
        else_=1.0 - other / price,
    )

"""The conditions and the ranking of a search for wines, and variety among equals."""

import json
import operator
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import inf
from statistics import median
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Row, case, func
from sqlalchemy.orm import InstrumentedAttribute

from agent.language import stop_words
from agent.sommelier.wine import (
    NON_VEGAN_ALLERGENS,
    VEGAN_WORD,
    Body,
    Colour,
    Food,
    Level,
    Style,
    Sweetness,
    Wine,
    WineQuery,
    canonical_name,
    known_names,
    normalize,
    synonyms,
    to_euros,
)
from agent.text import split_words, strip_unstorable
from db.models import FULL_TEXT, WineRow

Condition = ColumnElement[bool]
Distance = ColumnElement[float]
Filters = dict[str, Condition]

MAX_TERMS: Final = 32
SAYS_NOTHING: Final = frozenset(
    "something anything wine wines bottle bottles please want like would could find show give need "
    "good nice best great get got let us".split()
)
"""Words that tell nothing in a search for wine, beside the stop words of English."""
AROUND: Final = 0.25
"""The share by which a price may differ from the one that it is to be around."""
OAKED: Final = ("oak", "oaky", "oaked", "barrel", "barrels", "barrique", "barriques", "vanilla")
UNOAKED: Final = ("no oak", "without oak", "not oaky", "unoaked")
"""Words of a wine's notes that tell of oak, and that tell of none."""
BUBBLES: Final = ("sparkling", "bubbles", "fizz", "fizzy", "spumante", "sekt", "mousseux")
"""Words of a wine without alcohol that tell of bubbles; its style does not."""
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
    word
    for values in (Style, Colour, Sweetness, Food)
    for value in values
    for word in split_words(value)
)
"""Words that a filter says: in a name they are no name."""


def filters(query: WineQuery) -> Filters:
    """Return a condition for every filter that is set, under the name that `relax` uses for it."""
    is_free = WineRow.style == Style.ALCOHOL_FREE
    is_oaked = _tells_of(OAKED) & ~_tells_of(UNOAKED)
    colour = func.coalesce(WineRow.colour, "")
    # A wine without alcohol whose strength is not known has none.
    strength = func.coalesce(WineRow.abv, case((is_free, 0.0)))
    conditions: Mapping[str, Callable[[Any], Condition]] = {
        "styles": lambda _: _is_of_style(query),
        "alcohol_free": lambda free: is_free if free else ~is_free,
        "colours": WineRow.colour.in_,
        **{name: field.in_ for name, (field, _) in SCALES.items()},
        "countries": _is_from,
        "foods": partial(_holds, WineRow.foods),
        "grapes": _is_made_of,
        "regions": _lies_in,
        "oak": lambda wanted: is_oaked if wanted else ~is_oaked,
        "min_abv": lambda least: WineRow.abv >= least,
        "max_abv": lambda most: strength <= most,
        "in_stock_only": lambda _: WineRow.in_stock.is_(True),
        "not_ids": lambda ids: WineRow.id.not_in([*map(strip_unstorable, ids)]),
        "without_allergens": lambda found: ~_holds(WineRow.allergens, found),
        "vegan": lambda _: ~_holds(WineRow.allergens, [*NON_VEGAN_ALLERGENS]),
        # An unknown colour is no red.
        "without_styles": lambda out: WineRow.style.not_in(out) & colour.not_in(out),
        "without_grapes": lambda out: ~(_is_made_of(out) | _hints_at(out)),
        "without_countries": lambda out: ~(_is_from(out) | _lies_in(out)),
        "without_regions": lambda out: ~(_is_from(out) | _lies_in(out)),
    }
    wanted = {name: getattr(query, name) for name in conditions}
    off = dict.fromkeys(("vegan", "in_stock_only"), (None, (), False))
    return {
        name: conditions[name](value)
        for name, value in wanted.items()
        if value not in off.get(name, (None, ()))
    } | _price_limits(query)


def _price_limits(query: WineQuery) -> Filters:
    bounds: list[tuple[float | None, Callable[[Any, float], Condition], float]] = [
        (query.min_price, operator.ge, 1),
        (query.max_price, operator.le, 1),
        (query.below, operator.lt, 1),
        (query.around, operator.ge, 1 - AROUND),
        (query.around, operator.le, 1 + AROUND),
    ]
    limits = [
        compare(WineRow.price_in_euros, to_euros(amount, query.currency) * share)
        for amount, compare, share in bounds
        if amount is not None
    ]
    return {"price": sa.and_(*limits)} if limits else {}


def _holds(field: InstrumentedAttribute[list[str]], values: Sequence[str]) -> Condition:
    """Return the condition that a list of a wine, as JSON, holds one of these values."""
    text = sa.cast(field, sa.String)
    return sa.or_(
        sa.false(), *(text.contains(json.dumps(value), autoescape=True) for value in values)
    )


def _is_made_of(grapes: Sequence[str]) -> Condition:
    return _holds(WineRow.grape_keys, [canonical_name("grapes", name) for name in grapes])


def _is_from(countries: Sequence[str]) -> Condition:
    return WineRow.country_key.in_([canonical_name("countries", name) for name in countries])


def _lies_in(regions: Sequence[str]) -> Condition:
    phrases = (phrase for name in regions for phrase in synonyms("regions", name))
    return sa.or_(sa.false(), *(WineRow.places.contains(f" {phrase} ") for phrase in phrases))


def _is_of_style(query: WineQuery) -> Condition:
    """Return the condition of a style; a wine without alcohol is of one by colour and bubbles."""
    styles = query.styles
    if not query.alcohol_free or Style.ALCOHOL_FREE in styles:
        return WineRow.style.in_(styles)
    bubbles = _tells_of(BUBBLES) if Style.SPARKLING in styles else sa.false()
    return WineRow.colour.in_(styles) | bubbles


def _tells_of(known: Sequence[str]) -> Condition:
    """Return the condition that a wine's name or notes hold one of these words."""
    text = sa.literal(" ").concat(WineRow.search_text).concat(" ")
    return sa.or_(sa.false(), *(text.contains(f" {word} ") for word in known))


def _hints_at(grapes: Sequence[str]) -> Condition:
    """Return the condition that a wine of unknown grapes names one of these: "Riesling Réserve"."""
    phrases = [phrase for name in grapes for phrase in synonyms("grapes", name)]
    return _tells_of(phrases) & (sa.cast(WineRow.grape_keys, sa.String) == "[]")


def extract_terms(text: str) -> tuple[str, ...]:
    """Return the words of `text` worth searching for: folded, without stop words and doubles.

    A term consists of letters, digits and their marks, so no text can break a query's syntax.
    """
    # All stop words of Postgres' English configuration are left out: a term that it drops must not
    # count in SQLite either, or the two would disagree on what a text matches.
    nothing = stop_words() | SAYS_NOTHING
    return tuple(dict.fromkeys(word for word in split_words(text) if word not in nothing))[
        :MAX_TERMS
    ]


def matching_text(text: str, dialect: str) -> sa.Subquery | None:
    """Return the wines (`number`) that hold any word of `text`, with a `rank`; None for none."""
    found = extract_terms(text)
    if not found:
        return None
    if dialect == "postgresql":
        vector: sa.ColumnClause[str] = sa.literal_column(f"wines.{FULL_TEXT}")
        phrase = func.to_tsquery("english", " | ".join(f"'{word}'" for word in found))
        rank = func.ts_rank(vector, phrase, 1).label("rank")
        statement = sa.select(WineRow.number.label("number"), rank).where(vector.op("@@")(phrase))
    else:
        index = sa.table(FULL_TEXT, sa.column("rowid"), sa.column("rank", sa.Float))
        any_word = " OR ".join(f'"{word}"' for word in found)
        statement = sa.select(index.c.rowid.label("number"), (-index.c.rank).label("rank"))
        statement = statement.where(sa.literal_column(FULL_TEXT).op("MATCH")(any_word))
    return statement.subquery("matching")


def ranks(
    query: WineQuery, soft: Filters, text: sa.Subquery | None, like: Wine | None
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
        yield case((_tells_of([VEGAN_WORD]), 0), else_=1)
    if points := [*_points(query, soft)]:
        yield -sum(points[1:], start=points[0])
    if matches is not None:
        yield -matches
    if query.alcohol_free:
        yield func.coalesce(WineRow.abv, 0.0)
    if query.around is not None:
        yield func.abs(WineRow.price_in_euros - to_euros(query.around, query.currency))
    if like:
        yield _distance(like)


def shuffled(query: WineQuery) -> ColumnElement[int]:
    """Return an order that looks random, and differs for other filters."""
    asked = query.model_dump_json(exclude={"text", "not_ids", "order", "limit", "soft", "vegan"})
    return (WineRow.shuffle * (zlib.crc32(asked.encode()) >> 2 | 1)) % PRIME


def preferred(rows: Sequence[Row[Any]], query: WineQuery) -> list[tuple[Any, Row[Any]]]:
    """Return rows in order, each with its place: those that the text names first, the dear last.

    The points for soft filters go before both.
    """
    if query.order != "match":
        return [(None, row) for row in rows]
    named, dearest = _named(query.text, rows), inf
    prices = [row.price_in_euros for row in rows if row.price_in_euros is not None]
    if prices and all(limit is None for limit in query.price_limits):
        dearest = DEAR * median(prices)
    has_points = any(getattr(query, name) for name in query.soft)
    places = [
        (row[0] if has_points else 0, -count, (row.price_in_euros or 0) > dearest)
        for row, count in zip(rows, named, strict=True)
    ]
    return sorted(zip(places, rows, strict=True), key=lambda placed: placed[0])


def _named(text: str, rows: Sequence[Row[Any]]) -> list[int]:
    """Return how many words of each row's name, producer and origin a text names.

    Grapes and what a filter says name no wine.
    """
    said = f" {normalize(text)} "
    for name in sorted(known_names("grapes"), key=len, reverse=True):
        said = said.replace(f" {name} ", " ")
    asked = {*extract_terms(said)} - VALUES
    return [len(asked & {*split_words(f"{row.name} {row.producer} {row.places}")}) for row in rows]


def varied(rows: Sequence[tuple[object, Row[Any]]], ranked: int, limit: int) -> list[Row[Any]]:
    """Return at most `limit` first rows; equals are chosen to repeat each other least.

    `ranked` is the number of columns that rank a row beside its place.
    """
    best: list[Row[Any]] = []
    shown: Counter[tuple[str, object]] = Counter()

    def repeats(candidate: tuple[Row[Any], Sequence[tuple[str, object]]]) -> tuple[int, ...]:
        row, traits = candidate
        producer, place, band = map(shown.__getitem__, traits)
        return producer, place + band, band, row.style == Style.ALCOHOL_FREE  # seldom meant

    for _, equals in groupby(rows, key=lambda placed: (placed[0], *placed[1][:ranked])):
        left = [(row, _traits(row)) for _, row in equals]
        while left and len(best) < limit:
            row, traits = left.pop(left.index(min(left, key=repeats)))
            best.append(row)
            shown.update(traits)
    return best


def _traits(row: Row[Any]) -> Sequence[tuple[str, object]]:
    band = row.price_in_euros and bisect(PRICE_BANDS_EUR, row.price_in_euros)
    return ("producer", row.producer), ("place", row.places), ("band", band)


def _points(query: WineQuery, soft: Filters) -> Iterator[ColumnElement[int]]:
    """Yield the points for soft filters, and for asked foods and grapes."""
    for name, condition in soft.items():
        if name in SCALES:
            field, scale = SCALES[name]
            asked = [scale.index(value) for value in getattr(query, name)]
            apart = {at: min(abs(at - place) for place in asked) for at in range(len(scale))}
            near = {scale[at]: POINTS[name] // 2**steps for at, steps in apart.items() if steps < 2}
            yield case(near, value=field, else_=0)
        elif name not in ("foods", "grapes"):
            yield case((condition, POINTS[name]), else_=0)
    if query.foods:
        suited, first = _count_held(WineRow.foods, query.foods), POINTS["foods"] - FURTHER_FOOD
        yield case((suited > 0, first + FURTHER_FOOD * suited), else_=0)
    if query.grapes:
        keys, points = [canonical_name("grapes", name) for name in query.grapes], POINTS["grapes"]
        blend = sa.cast(WineRow.grape_keys, sa.String)
        first_ones = (blend.startswith(f"[{json.dumps(one)}", autoescape=True) for one in keys)
        # A later grape of the blend is worth half.
        held = _holds(WineRow.grape_keys, keys)
        yield case((sa.or_(*first_ones), points), (held, points // 2), else_=0)


def _count_held(
    field: InstrumentedAttribute[list[str]], values: Sequence[str]
) -> ColumnElement[int]:
    """Return how many of these values a list of a wine holds."""
    counts = [case((_holds(field, [value]), 1), else_=0) for value in values]
    return sum(counts[1:], start=counts[0])


def _distance(wine: Wine) -> Distance:
    """Return the distance of each row from `wine`; 0 is alike in everything that counts."""
    price, other_price = wine.price_in_euros, WineRow.price_in_euros
    differences: list[tuple[float, Distance]] = [
        (4.0, _differs(WineRow.style, wine.style)),  # nobody calls a port like a Chablis
        (3.0, _differs(WineRow.colour, wine.colour)),
        (2.0, _steps("sweetness", wine.sweetness)),
        (2.0, _steps("bodies", wine.body)),
        (1.0, _steps("tannins", wine.tannin)),
        (1.0, _steps("acidities", wine.acidity)),
        (0.5, _differs(WineRow.country_key, canonical_name("countries", wine.country))),
    ]
    if keys := {canonical_name("grapes", grape) for grape in wine.grapes}:
        shared = sa.cast(_count_held(WineRow.grape_keys, sorted(keys)), sa.Float)
        count = func.json_array_length(WineRow.grape_keys)
        differences.append((3.0, sa.cast(1 - shared / (len(keys) + count - shared), sa.Float)))
    if place := normalize(wine.region):
        is_near = WineRow.places.contains(f" {place} ")
        differences.append((1.5, case((is_near, 0.0), else_=1.0)))
    if price:
        ratio = func.abs(other_price - price) / (other_price + price)
        differences.append((1.0, func.coalesce(ratio, UNKNOWN)))
    return sum((weight * difference for weight, difference in differences), start=sa.literal(0.0))


def _differs(field: InstrumentedAttribute[Any], value: str | None) -> Distance:
    if not value:
        return sa.literal(UNKNOWN)
    return case((field == value, 0.0), (field.is_(None), UNKNOWN), else_=1.0)


def _steps(name: str, value: str | None) -> Distance:
    """Return the distance on an ordered scale, 1 between its ends."""
    if value is None:
        return sa.literal(UNKNOWN)
    field, scale = SCALES[name]
    here, longest = scale.index(value), len(scale) - 1
    apart = {str(other): abs(at - here) / longest for at, other in enumerate(scale)}
    return case(apart, value=field, else_=UNKNOWN)

"""The filters and the ranking of a wine search, and variety among equally ranked wines."""

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
FILLER_WORDS: Final = frozenset(
    "something anything wine wines bottle bottles please want like would could find show give need "
    "good nice best great get got let us".split()
)
"""Words that do not narrow a search for wine, in addition to English stop words."""
PRICE_TOLERANCE: Final = 0.25
"""The share by which prices may differ from the price `query.around`."""
OAKED: Final = ("oak", "oaky", "oaked", "barrel", "barrels", "barrique", "barriques", "vanilla")
UNOAKED: Final = ("no oak", "without oak", "not oaky", "unoaked")
"""Words in the notes of oaked wines, and of unoaked ones."""
BUBBLES: Final = ("sparkling", "bubbles", "fizz", "fizzy", "spumante", "sekt", "mousseux")
"""Words in the notes of sparkling alcohol-free wines, whose style is just alcohol-free."""
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
"""The points for meeting a soft filter, which ranks wines but excludes none."""
EXTRA_FOOD_POINTS: Final = 10
"""The points for each requested food, after the first, that a wine suits."""
UNKNOWN_DISTANCE: Final = 0.5
"""The distance to an unknown value, halfway between equal and different."""
SCALES: Final[Mapping[str, tuple[InstrumentedAttribute[str | None], list[str]]]] = {
    "sweetness": (WineRow.sweetness, [*Sweetness]),
    "bodies": (WineRow.body, [*Body]),
    "tannins": (WineRow.tannin, [*Level]),
    "acidities": (WineRow.acidity, [*Level]),
}
"""Filters on ordered values: a neighbour of a requested value gets half of the points."""
PRICE_BANDS_EUR: Final = (12, 20, 35, 70, 150)
EXPENSIVE_FACTOR: Final = 2
"""Unless the query limits prices, wines above this multiple of their median price come last."""
SHUFFLE_PRIME: Final = 2**31 - 1
FILTER_WORDS: Final = frozenset(
    word
    for values in (Style, Colour, Sweetness, Food)
    for value in values
    for word in split_words(value)
)
"""Words like "red" that a filter already covers; they do not identify a wine by its name."""


def build_filters(query: WineQuery) -> Filters:
    """Return the condition of every filter that is set, by the filter's name."""
    is_alcohol_free = WineRow.style == Style.ALCOHOL_FREE
    is_oaked = _mentions(OAKED) & ~_mentions(UNOAKED)
    colour = func.coalesce(WineRow.colour, "")
    # An alcohol-free wine of unknown strength counts as 0 %.
    strength = func.coalesce(WineRow.abv, case((is_alcohol_free, 0.0)))
    conditions: Mapping[str, Callable[[Any], Condition]] = {
        "styles": lambda _: _has_style(query),
        "alcohol_free": lambda free: is_alcohol_free if free else ~is_alcohol_free,
        "colours": WineRow.colour.in_,
        **{name: field.in_ for name, (field, _) in SCALES.items()},
        "countries": _is_from,
        "foods": partial(_contains_any, WineRow.foods),
        "grapes": _is_made_of,
        "regions": _is_in_region,
        "oak": lambda oaked: is_oaked if oaked else ~is_oaked,
        "min_abv": lambda minimum: WineRow.abv >= minimum,
        "max_abv": lambda maximum: strength <= maximum,
        "in_stock_only": lambda _: WineRow.in_stock.is_(True),
        "not_ids": lambda ids: WineRow.id.not_in([*map(strip_unstorable, ids)]),
        "without_allergens": lambda names: ~_contains_any(WineRow.allergens, names),
        "vegan": lambda _: ~_contains_any(WineRow.allergens, [*NON_VEGAN_ALLERGENS]),
        # "red" and "white" are styles and colours. A wine of unknown colour passes.
        "without_styles": lambda names: WineRow.style.not_in(names) & colour.not_in(names),
        "without_grapes": lambda names: ~(_is_made_of(names) | _suggests_grapes(names)),
        # Requests mix up countries and regions.
        "without_countries": lambda names: ~(_is_from(names) | _is_in_region(names)),
        "without_regions": lambda names: ~(_is_from(names) | _is_in_region(names)),
    }
    values = {name: getattr(query, name) for name in conditions}
    off_if_false = ("vegan", "in_stock_only")  # for other flags, False is a filter as well
    return {
        name: conditions[name](value)
        for name, value in values.items()
        if value not in ((None, (), False) if name in off_if_false else (None, ()))
    } | _price_limits(query)


def _price_limits(query: WineQuery) -> Filters:
    bounds: list[tuple[float | None, Callable[[Any, float], Condition], float]] = [
        (query.min_price, operator.ge, 1),
        (query.max_price, operator.le, 1),
        (query.below, operator.lt, 1),
        (query.around, operator.ge, 1 - PRICE_TOLERANCE),
        (query.around, operator.le, 1 + PRICE_TOLERANCE),
    ]
    limits = [
        compare(WineRow.price_in_euros, to_euros(amount, query.currency) * share)
        for amount, compare, share in bounds
        if amount is not None
    ]
    return {"price": sa.and_(*limits)} if limits else {}


def _contains_any(field: InstrumentedAttribute[list[str]], values: Sequence[str]) -> Condition:
    """Return the condition that a JSON list of a wine contains one of the values."""
    text = sa.cast(field, sa.String)
    matches = (text.contains(json.dumps(value), autoescape=True) for value in values)
    return sa.or_(sa.false(), *matches)


def _is_made_of(grapes: Sequence[str]) -> Condition:
    return _contains_any(WineRow.grape_keys, [canonical_name("grapes", name) for name in grapes])


def _is_from(countries: Sequence[str]) -> Condition:
    return WineRow.country_key.in_([canonical_name("countries", name) for name in countries])


def _is_in_region(regions: Sequence[str]) -> Condition:
    names = (name for region in regions for name in synonyms("regions", region))
    return sa.or_(sa.false(), *(WineRow.places.contains(f" {name} ") for name in names))


def _has_style(query: WineQuery) -> Condition:
    """Return the condition of the styles; for alcohol-free wines compare colour and bubbles."""
    styles = query.styles
    if not query.alcohol_free or Style.ALCOHOL_FREE in styles:
        return WineRow.style.in_(styles)
    bubbles = _mentions(BUBBLES) if Style.SPARKLING in styles else sa.false()
    return WineRow.colour.in_(styles) | bubbles


def _mentions(phrases: Sequence[str]) -> Condition:
    """Return the condition that the search text of a wine contains one of the phrases."""
    text = sa.literal(" ").concat(WineRow.search_text).concat(" ")
    return sa.or_(sa.false(), *(text.contains(f" {phrase} ") for phrase in phrases))


def _suggests_grapes(grapes: Sequence[str]) -> Condition:
    """Return the condition that the text of a wine of unknown grapes mentions one of these."""
    phrases = [phrase for name in grapes for phrase in synonyms("grapes", name)]
    return _mentions(phrases) & (sa.cast(WineRow.grape_keys, sa.String) == "[]")


def extract_terms(text: str) -> tuple[str, ...]:
    """Return the normalised words of `text`, each once, without stop words and filler words.

    Terms contain only letters, digits and accents, so no text can break the syntax of a query.
    """
    # `stop_words` includes those of Postgres' English configuration: a term that Postgres ignores
    # must not count in SQLite either, or their results would differ.
    ignored = stop_words() | FILLER_WORDS
    terms = dict.fromkeys(word for word in split_words(text) if word not in ignored)
    return tuple(terms)[:MAX_TERMS]


def match_text(text: str, dialect: str) -> sa.Subquery | None:
    """Return `number` and `rank` of the wines with any term of `text`; None if it has no terms."""
    terms = extract_terms(text)
    if not terms:
        return None
    if dialect == "postgresql":
        vector: sa.ColumnClause[str] = sa.literal_column(f"wines.{FULL_TEXT}")
        tsquery = func.to_tsquery("english", " | ".join(f"'{term}'" for term in terms))
        rank = func.ts_rank(vector, tsquery, 1).label("rank")  # 1: normalise by length
        statement = sa.select(WineRow.number.label("number"), rank).where(vector.op("@@")(tsquery))
    else:
        index = sa.table(FULL_TEXT, sa.column("rowid"), sa.column("rank", sa.Float))
        # SQLite's rank is lowest for the best match.
        any_word = " OR ".join(f'"{term}"' for term in terms)
        statement = sa.select(index.c.rowid.label("number"), (-index.c.rank).label("rank"))
        statement = statement.where(sa.literal_column(FULL_TEXT).op("MATCH")(any_word))
    return statement.subquery("matching")


def rank_wines(
    query: WineQuery, soft: Filters, text_matches: sa.Subquery | None, like: Wine | None
) -> Iterator[ColumnElement[Any]]:
    """Yield the expressions that order the wines, most important first, each ascending."""
    text_rank = None if text_matches is None else func.coalesce(text_matches.c.rank, 0.0)
    if query.order != "match":
        price = WineRow.price_in_euros.expression
        yield case((price.is_(None), 1), else_=0)
        if text_rank is not None:
            yield case((text_rank > 0, 0), else_=1)
        yield price if query.order == "cheapest" else -price
    if query.vegan:
        yield case((_mentions([VEGAN_WORD]), 0), else_=1)
    if points := [*_points(query, soft)]:
        yield -sum(points[1:], start=points[0])  # without the literal 0 of `sum`
    if text_rank is not None:
        yield -text_rank
    if query.alcohol_free:
        yield func.coalesce(WineRow.abv, 0.0)
    if query.around is not None:
        yield func.abs(WineRow.price_in_euros - to_euros(query.around, query.currency))
    if like:
        yield _distance(like)


def shuffle_order(query: WineQuery) -> ColumnElement[int]:
    """Return a random-looking order that depends on the filters: products modulo a prime."""
    seed = query.model_dump_json(exclude={"text", "not_ids", "order", "limit", "soft", "vegan"})
    factor = (zlib.crc32(seed.encode()) >> 2) | 1  # at most 30 bits, and never 0
    return (WineRow.shuffle * factor) % SHUFFLE_PRIME


def rank_by_preference(rows: Sequence[Row[Any]], query: WineQuery) -> list[tuple[Any, Row[Any]]]:
    """Return rows with sort keys, in order: named in the text first, expensive ones last.

    With soft filters, the first rank of `rank_wines` (the first column) outweighs both.
    """
    if query.order != "match":
        return [(None, row) for row in rows]
    named_words = _count_named_words(query.text, rows)
    max_price = inf
    prices = [row.price_in_euros for row in rows if row.price_in_euros is not None]
    if prices and all(limit is None for limit in query.price_limits):
        max_price = EXPENSIVE_FACTOR * median(prices)
    has_points = any(getattr(query, name) for name in query.soft)
    keys = [
        (row[0] if has_points else 0, -count, (row.price_in_euros or 0) > max_price)
        for row, count in zip(rows, named_words, strict=True)
    ]
    return sorted(zip(keys, rows, strict=True), key=lambda ranked: ranked[0])


def _count_named_words(text: str, rows: Sequence[Row[Any]]) -> list[int]:
    """Return how many words of each row's name, producer and origin are in `text`.

    Grapes and filter words do not count: they do not identify a wine.
    """
    text = f" {normalize(text)} "
    for name in sorted(known_names("grapes"), key=len, reverse=True):
        text = text.replace(f" {name} ", " ")
    terms = {*extract_terms(text)} - FILTER_WORDS
    return [len(terms & {*split_words(f"{row.name} {row.producer} {row.places}")}) for row in rows]


def choose_varied(
    rows: Sequence[tuple[object, Row[Any]]], rank_count: int, limit: int
) -> list[Row[Any]]:
    """Return the first `limit` rows; among equally ranked rows, prefer those that add variety.

    A row is ranked by its sort key, then by its first `rank_count` columns.
    """
    best: list[Row[Any]] = []
    trait_counts: Counter[tuple[str, object]] = Counter()

    def count_repeats(candidate: tuple[Row[Any], Sequence[tuple[str, object]]]) -> tuple[int, ...]:
        row, traits = candidate
        producer, place, band = map(trait_counts.__getitem__, traits)
        # Place and band weigh the same; of equal sums, the smaller band count wins.
        return producer, place + band, band, row.style == Style.ALCOHOL_FREE  # rarely wanted

    for _, equals in groupby(rows, key=lambda ranked: (ranked[0], *ranked[1][:rank_count])):
        remaining = [(row, _traits(row)) for _, row in equals]
        while remaining and len(best) < limit:
            row, traits = remaining.pop(remaining.index(min(remaining, key=count_repeats)))
            best.append(row)
            trait_counts.update(traits)
    return best


def _traits(row: Row[Any]) -> Sequence[tuple[str, object]]:
    """Return what should vary between the chosen wines."""
    band = row.price_in_euros and bisect(PRICE_BANDS_EUR, row.price_in_euros)
    return ("producer", row.producer), ("place", row.places), ("band", band)


def _points(query: WineQuery, soft: Filters) -> Iterator[ColumnElement[int]]:
    """Yield the points for soft filters, and for foods and grapes even if they are hard filters."""
    for name, condition in soft.items():
        if name in SCALES:
            field, scale = SCALES[name]
            requested = [scale.index(value) for value in getattr(query, name)]
            points_by_value = {}
            for index, value in enumerate(scale):
                steps = min(abs(index - other) for other in requested)
                points_by_value[value] = POINTS[name] // 2**steps if steps < 2 else 0
            yield case(points_by_value, value=field, else_=0)
        elif name not in ("foods", "grapes"):
            yield case((condition, POINTS[name]), else_=0)
    if query.foods:
        count = _count_contained(WineRow.foods, query.foods)
        points = POINTS["foods"] + EXTRA_FOOD_POINTS * (count - 1)
        yield case((count > 0, points), else_=0)
    if query.grapes:
        keys = [canonical_name("grapes", name) for name in query.grapes]
        blend = sa.cast(WineRow.grape_keys, sa.String)
        starts = (f"[{json.dumps(key)}" for key in keys)
        is_first = sa.or_(*(blend.startswith(start, autoescape=True) for start in starts))
        is_included = _contains_any(WineRow.grape_keys, keys)
        # A grape that is not the first of the blend is worth half.
        yield case((is_first, POINTS["grapes"]), (is_included, POINTS["grapes"] // 2), else_=0)


def _count_contained(
    field: InstrumentedAttribute[list[str]], values: Sequence[str]
) -> ColumnElement[int]:
    """Return how many of the values a JSON list of a wine contains."""
    counts = [case((_contains_any(field, [value]), 1), else_=0) for value in values]
    return sum(counts[1:], start=counts[0])


def _distance(wine: Wine) -> Distance:
    """Return the distance of each row from `wine`, a weighted sum; 0 means equal."""
    price, other_price = wine.price_in_euros, WineRow.price_in_euros
    differences: list[tuple[float, Distance]] = [
        (4.0, _value_distance(WineRow.style, wine.style)),  # a port never resembles a Chablis
        (3.0, _value_distance(WineRow.colour, wine.colour)),
        (2.0, _scale_distance("sweetness", wine.sweetness)),
        (2.0, _scale_distance("bodies", wine.body)),
        (1.0, _scale_distance("tannins", wine.tannin)),
        (1.0, _scale_distance("acidities", wine.acidity)),
        (0.5, _value_distance(WineRow.country_key, canonical_name("countries", wine.country))),
    ]
    if keys := {canonical_name("grapes", grape) for grape in wine.grapes}:
        shared = sa.cast(_count_contained(WineRow.grape_keys, sorted(keys)), sa.Float)
        count = func.json_array_length(WineRow.grape_keys)  # for the Jaccard distance
        differences.append((3.0, sa.cast(1 - shared / (len(keys) + count - shared), sa.Float)))
    if place := normalize(wine.region):
        is_near = WineRow.places.contains(f" {place} ")
        differences.append((1.5, case((is_near, 0.0), else_=1.0)))
    if price:
        ratio = func.abs(other_price - price) / (other_price + price)
        differences.append((1.0, func.coalesce(ratio, UNKNOWN_DISTANCE)))
    return sum((weight * difference for weight, difference in differences), start=sa.literal(0.0))


def _value_distance(field: InstrumentedAttribute[Any], value: str | None) -> Distance:
    if not value:
        return sa.literal(UNKNOWN_DISTANCE)
    return case((field == value, 0.0), (field.is_(None), UNKNOWN_DISTANCE), else_=1.0)


def _scale_distance(name: str, value: str | None) -> Distance:
    """Return the distance on an ordered scale whose ends are 1 apart."""
    if value is None:
        return sa.literal(UNKNOWN_DISTANCE)
    field, scale = SCALES[name]
    position = scale.index(value)
    max_steps = len(scale) - 1
    distances = {str(other): abs(i - position) / max_steps for i, other in enumerate(scale)}
    return case(distances, value=field, else_=UNKNOWN_DISTANCE)

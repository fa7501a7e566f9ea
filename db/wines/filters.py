"""The conditions of a search: one for every filter that is set, and the match of its text."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Float,
    Select,
    Subquery,
    and_,
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

from agent.sommelier.synonyms import key, names
from agent.sommelier.wine import WineQuery, in_euros
from agent.text import stop_words, words
from db.models import FULL_TEXT, WineAllergenRow, WineFoodRow, WineGrapeRow, WineRow, storable

Condition = ColumnElement[bool]
Filters = Mapping[str, Condition]

MAX_TERMS: Final = 32


def filters(query: WineQuery) -> Filters:
    """Return a condition for every filter that is set, under the name that `relax` uses for it."""
    return {**_wanted(query), **_unwanted(query), **_ranges(query)}


def _wanted(query: WineQuery) -> Filters:
    countries = [key("countries", name) for name in query.countries]
    asked: dict[str, tuple[object, Condition]] = {
        "styles": (query.styles, WineRow.style.in_(query.styles)),
        "colours": (query.colours, WineRow.colour.in_(query.colours)),
        "sweetness": (query.sweetness, WineRow.sweetness.in_(query.sweetness)),
        "bodies": (query.bodies, WineRow.body.in_(query.bodies)),
        "tannins": (query.tannins, WineRow.tannin.in_(query.tannins)),
        "acidities": (query.acidities, WineRow.acidity.in_(query.acidities)),
        "countries": (countries, WineRow.country_key.in_(countries)),
        "foods": (query.foods, WineRow.id.in_(_suited_to(query.foods))),
        "grapes": (query.grapes, WineRow.id.in_(_made_of(query.grapes))),
        "regions": (query.regions, _lies_in(query.regions)),
        "in_stock_only": (query.in_stock_only, WineRow.in_stock.is_(True)),
    }
    return {name: condition for name, (values, condition) in asked.items() if values}


def _unwanted(query: WineQuery) -> Filters:
    """What a wine must not be. Only what is known of it counts: an unknown colour is no red."""
    found: dict[str, Condition] = {}
    if query.not_ids:
        found["not_ids"] = WineRow.id.not_in([storable(each) for each in query.not_ids])
    if allergens := query.without_allergens:
        contain = select(WineAllergenRow.wine_id).where(WineAllergenRow.allergen.in_(allergens))
        found["without_allergens"] = WineRow.id.not_in(contain)
    if styles := query.without_styles:
        colour = func.coalesce(WineRow.colour, "")
        found["without_styles"] = and_(WineRow.style.not_in(styles), colour.not_in(styles))
    if grapes := query.without_grapes:
        found["without_grapes"] = not_(or_(WineRow.id.in_(_made_of(grapes)), _hints_at(grapes)))
    for name in ("without_countries", "without_regions"):
        if origins := getattr(query, name):
            countries = [key("countries", each) for each in origins]
            from_one = or_(WineRow.country_key.in_(countries), _lies_in(origins))
            found[name] = not_(from_one)
    return found


def _ranges(query: WineQuery) -> Filters:
    found: dict[str, Condition] = {}
    price = WineRow.price_in_euros
    limits: list[Condition] = []
    if query.min_price is not None:
        limits = [price >= in_euros(query.min_price, query.currency)]
    if query.max_price is not None:
        limits.append(price <= in_euros(query.max_price, query.currency))
    if limits:
        found["price"] = and_(*limits)
    if query.min_abv is not None:
        found["min_abv"] = WineRow.abv >= query.min_abv
    if query.max_abv is not None:
        found["max_abv"] = WineRow.abv <= query.max_abv
    return found


def _suited_to(foods: Sequence[str]) -> Select[Any]:
    return select(WineFoodRow.wine_id).where(WineFoodRow.food.in_(foods))


def _made_of(grapes: Sequence[str]) -> Select[Any]:
    keys = [key("grapes", name) for name in grapes]
    return select(WineGrapeRow.wine_id).where(WineGrapeRow.grape_key.in_(keys))


def _lies_in(regions: Sequence[str]) -> Condition:
    phrases = (phrase for name in regions for phrase in names("regions", name))
    return or_(false(), *(WineRow.places.contains(f" {phrase} ") for phrase in phrases))


def _hints_at(grapes: Sequence[str]) -> Condition:
    """Whether a wine of unknown grapes is said to be of one of these: "Riesling Réserve"."""
    text = literal(" ").concat(WineRow.search_text).concat(" ")
    phrases = (phrase for name in grapes for phrase in names("grapes", name))
    named = or_(false(), *(text.contains(f" {phrase} ") for phrase in phrases))
    return and_(named, WineRow.id.not_in(select(WineGrapeRow.wine_id)))


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
    file = Path(__file__).with_suffix(".toml")
    return frozenset(tomllib.loads(file.read_text("utf-8"))["says_nothing"].split())


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

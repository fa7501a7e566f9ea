"""Wines of the X-Wines data set (R. X. de Azambuja et al., 2023), mapped to our vocabulary.

The set knows type, body, acidity, grapes and pairings. Colour and sweetness are read from the
name where that is safe and left unknown where it is not; tannin is known to be none in whites and
roses only; there are no prices, and sulphites are assumed in all. The mapping is data, in
`xwines.toml`.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

from agent.sommelier.synonyms import folded
from agent.sommelier.wine import Allergen, Body, Colour, Food, Level, Style, Sweetness, Wine
from db.wines.csv_files import Format, Reader, Values, number, one_of

HEADER: Final = tuple(
    "WineID,WineName,Type,Elaborate,Grapes,Harmonize,ABV,Body,Acidity,Code,Country,RegionID,"
    "RegionName,WineryID,WineryName,Website,Vintages".split(",")
)
NEWEST_VINTAGE: Final = 2022
"""The set was published then."""
OLDEST_VINTAGE: Final = 1900
STRONGEST_WINE: Final = 23.0
"""% vol; what is stronger is a spirit, of which the set has a few."""
FORTIFIED_FROM: Final = 15.0
DRY_FROM: Final = 11.5
"""A still wine weaker than this may well be off-dry, so nothing is claimed."""


class _Mapping(BaseModel):
    """What `xwines.toml` holds; the first word of sweetness that is in a name counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    types: dict[str, Style]
    bodies: dict[str, Body]
    acidities: dict[str, Level]
    foods: dict[str, Food]
    white_grapes: frozenset[str]
    colour_words: dict[Colour, tuple[str, ...]]
    sweetness_words: dict[str, Sweetness]


@cache
def _mapping() -> _Mapping:
    file = Path(__file__).with_suffix(".toml")
    return _Mapping.model_validate(tomllib.loads(file.read_text("utf-8")))


def _wine(values: Values) -> Wine:
    name, abv = values["WineName"], values.get("ABV")
    grapes = tuple(dict.fromkeys(grape.split("/")[0] for grape in values.get("Grapes", ())))
    style = _style(values["Type"], name, abv)
    colour = _colour(style, name, grapes)
    spirit, known = _is_spirit(values), _mapping().foods
    dishes = () if spirit else values.get("Harmonize", ())
    return Wine(
        id=f"xw-{values['WineID']}",
        producer=values["WineryName"],
        name=name,
        vintage=_vintage(values.get("Vintages", ())),
        country=values["Country"],
        region=values.get("RegionName", ""),
        grapes=grapes,
        style=style,
        colour=colour,
        sweetness=_sweetness(style, name, abv),
        body=values["Body"],
        acidity=values["Acidity"],
        tannin=Level.NONE if colour in (Colour.WHITE, Colour.ROSE) else None,
        abv=abv,
        foods=tuple(dict.fromkeys(known[dish] for dish in dishes if dish in known)),
        allergens=(Allergen.SULPHITES,),
        notes="A spirit, not a wine." if spirit else "",
    )


def _left_out(values: Values) -> Iterator[tuple[str, str]]:
    if _is_spirit(values):
        yield "Harmonize", "a spirit is not paired with dishes"
        return
    for dish in values.get("Harmonize", ()):
        if dish not in _mapping().foods:
            yield "Harmonize", f"'{dish}' has no canonical food"


def _is_spirit(values: Values) -> bool:
    return float(values.get("ABV", 0)) > STRONGEST_WINE


def _vintage(years: list[str]) -> int | None:
    """The newest plausible year; None where the set says that the wine has none."""
    if "N.V." in years:
        return None
    plausible = (int(year) for year in years if year.isascii() and year.isdigit())
    return max((y for y in plausible if OLDEST_VINTAGE <= y <= NEWEST_VINTAGE), default=None)


def _style(kind: Style, name: str, abv: float | None) -> Style:
    if kind is Style.SWEET and (abv or 0) >= FORTIFIED_FROM and not _has(name, "vin santo"):
        return Style.FORTIFIED
    return kind


def _colour(style: Style, name: str, grapes: tuple[str, ...]) -> Colour | None:
    if style in (Style.RED, Style.WHITE, Style.ROSE):
        return Colour(style.value)
    for colour, words in _mapping().colour_words.items():
        if any(_has(name, word) for word in words):
            return colour
    white = bool(grapes) and all(folded(each) in _mapping().white_grapes for each in grapes)
    if white or style is Style.SPARKLING:
        return Colour.WHITE
    return Colour.RED if _has(name, "port") or _has(name, "porto") else None


def _sweetness(style: Style, name: str, abv: float | None) -> Sweetness | None:
    for words, level in _mapping().sweetness_words.items():
        if _has(name, words):
            return level
    if style is Style.SWEET:
        return Sweetness.SWEET
    still = style in (Style.RED, Style.WHITE, Style.ROSE)
    return Sweetness.DRY if still and (abv or 0) >= DRY_FROM else None


def _has(name: str, words: str) -> bool:
    return f" {words} " in f" {folded(name)} "


_LIST: Final = TypeAdapter(list[str], config=ConfigDict(coerce_numbers_to_str=True))


def _list(text: str) -> list[str]:
    """A Python list literal, as the set writes them."""
    try:
        return _LIST.validate_python(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("is not a list like ['Merlot']") from None


_MAY_BE_EMPTY: Final = {"Grapes", "Harmonize", "ABV", "RegionName", "Vintages"}


@cache
def x_wines() -> Format:
    """Return the format of the set's files, as published."""
    columns: Mapping[str, Reader] = {
        "WineID": str,
        "WineName": str,
        "Type": one_of(_mapping().types),
        "Grapes": _list,
        "Harmonize": _list,
        "ABV": number(0, 75),
        "Body": one_of(_mapping().bodies),
        "Acidity": one_of(_mapping().acidities),
        "Country": str,
        "RegionName": str,
        "WineryName": str,
        "Vintages": _list,
    }
    return Format(columns, columns.keys() - _MAY_BE_EMPTY, _wine, _left_out)

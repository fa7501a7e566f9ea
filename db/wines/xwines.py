"""Wines of the X-Wines data set (R. X. de Azambuja et al., 2023), mapped to our vocabulary.

The set knows type, body, acidity, grapes and pairings. Colour and sweetness are read from the
name where that is safe and left unknown where it is not; tannin is known to be none in whites and
roses only; there are no prices, and sulphites are assumed in all. The mapping is data, in
`xwines.toml`.
"""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from agent.sommelier.synonyms import folded
from agent.sommelier.wine import Allergen, Body, Colour, Food, Level, Style, Sweetness, Wine
from db.wines.csv_files import FileRow

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


def _one_of(name: str) -> BeforeValidator:
    """Read a word of the set as ours."""

    def read(text: str) -> object:
        known: dict[str, object] = getattr(_mapping(), name)
        if text not in known:
            raise ValueError(f"'{text}' is not one of: {', '.join(known)}")
        return known[text]

    return BeforeValidator(read)


def _list(text: str) -> list[str]:
    """A Python list literal, as the set writes them."""
    try:
        return _LIST.validate_python(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("is not a list like ['Merlot']") from None


_LIST: Final = TypeAdapter(list[str], config=ConfigDict(coerce_numbers_to_str=True))
_Listed = Annotated[tuple[str, ...], BeforeValidator(_list)]


class XWinesRow(FileRow):
    """A row of the set's files, as published."""

    number: str = Field(alias="WineID")
    name: str = Field(alias="WineName")
    kind: Annotated[Style, _one_of("types")] = Field(alias="Type")
    blend: _Listed = Field((), alias="Grapes")
    dishes: _Listed = Field((), alias="Harmonize")
    abv: float | None = Field(None, alias="ABV", ge=0, le=75)
    body: Annotated[Body, _one_of("bodies")] = Field(alias="Body")
    acidity: Annotated[Level, _one_of("acidities")] = Field(alias="Acidity")
    country: str = Field(alias="Country")
    region: str = Field("", alias="RegionName")
    producer: str = Field(alias="WineryName")
    years: _Listed = Field((), alias="Vintages")

    def wine(self) -> Wine:
        """Make the wine of the row."""
        name, abv, known = self.name, self.abv, _mapping().foods
        grapes = tuple(dict.fromkeys(grape.split("/")[0] for grape in self.blend))
        style = _style(self.kind, name, abv)
        colour = _colour(style, name, grapes)
        dishes = () if self._is_spirit else self.dishes
        return Wine(
            id=f"xw-{self.number}",
            producer=self.producer,
            name=name,
            vintage=_vintage(self.years),
            country=self.country,
            region=self.region,
            grapes=grapes,
            style=style,
            colour=colour,
            sweetness=_sweetness(style, name, abv),
            body=self.body,
            acidity=self.acidity,
            tannin=Level.NONE if colour in (Colour.WHITE, Colour.ROSE) else None,
            abv=abv,
            foods=tuple(dict.fromkeys(known[dish] for dish in dishes if dish in known)),
            allergens=(Allergen.SULPHITES,),
            notes="A spirit, not a wine." if self._is_spirit else "",
        )

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Name the dishes that have no food of ours."""
        if self._is_spirit:
            yield "Harmonize", "a spirit is not paired with dishes"
            return
        for dish in self.dishes:
            if dish not in _mapping().foods:
                yield "Harmonize", f"'{dish}' has no canonical food"

    @property
    def _is_spirit(self) -> bool:
        return (self.abv or 0) > STRONGEST_WINE


def _vintage(years: Sequence[str]) -> int | None:
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

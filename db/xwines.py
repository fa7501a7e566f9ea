"""Wines of the X-Wines data set (R. X. de Azambuja et al., 2023), mapped to our vocabulary.

The set knows type, body, acidity, grapes and pairings. Colour and sweetness are read from the
name where that is safe and left unknown where it is not; tannin is known to be none in whites and
roses only; there are no prices, and sulphites are assumed in all.
"""

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from agent.sommelier.wine import Allergen, Body, Colour, Food, Level, Style, Sweetness, Wine
from db.csv_rows import Fields
from db.search_text import fold

E = TypeVar("E", Style, Body, Level)

HEADER: Final = (
    "WineID,WineName,Type,Elaborate,Grapes,Harmonize,ABV,Body,Acidity,Code,Country,RegionID,"
    "RegionName,WineryID,WineryName,Website,Vintages"
)
COLUMNS: Final = tuple(HEADER.split(","))
PUBLISHED: Final = 2022
"""No vintage of the set is newer."""
OLDEST_VINTAGE: Final = 1900
STRONGEST_WINE: Final = 23.0
"""% vol; what is stronger is a spirit, of which the set has a few."""
FORTIFIED_FROM: Final = 15.0

TYPES: Final[Mapping[str, Style]] = MappingProxyType(
    {
        "Red": Style.RED,
        "White": Style.WHITE,
        "Rosé": Style.ROSE,
        "Sparkling": Style.SPARKLING,
        "Dessert": Style.SWEET,
        "Dessert/Port": Style.FORTIFIED,
    }
)
BODIES: Final[Mapping[str, Body]] = MappingProxyType(
    {
        "Very light-bodied": Body.LIGHT,
        "Light-bodied": Body.MEDIUM_LIGHT,
        "Medium-bodied": Body.MEDIUM,
        "Full-bodied": Body.MEDIUM_FULL,
        "Very full-bodied": Body.FULL,
    }
)
ACIDITIES: Final[Mapping[str, Level]] = MappingProxyType(
    {"Low": Level.LOW, "Medium": Level.MEDIUM, "High": Level.HIGH}
)
FOODS: Final[Mapping[str, Food]] = MappingProxyType(
    {
        "Aperitif": Food.APERITIF,
        "Appetizer": Food.APERITIF,
        "Asian Food": Food.ASIAN,
        "Barbecue": Food.BARBECUE,
        "Beef": Food.BEEF,
        "Blue Cheese": Food.BLUE_CHEESE,
        "Cake": Food.CREAMY_DESSERT,
        "Cheese": Food.HARD_CHEESE,
        "Chicken": Food.POULTRY,
        "Chocolate": Food.CHOCOLATE,
        "Codfish": Food.FISH,
        "Cold Cuts": Food.CHARCUTERIE,
        "Cream": Food.CREAMY_DESSERT,
        "Cured Meat": Food.CHARCUTERIE,
        "Curry Chicken": Food.CURRY,
        "Dessert": Food.CREAMY_DESSERT,
        "Duck": Food.DUCK,
        "Eggs": Food.EGGS,
        "Fish": Food.FISH,
        "Fruit": Food.FRUIT_DESSERT,
        "Fruit Dessert": Food.FRUIT_DESSERT,
        "Game Meat": Food.GAME,
        "Goat Cheese": Food.GOAT_CHEESE,
        "Grilled": Food.BARBECUE,
        "Ham": Food.CHARCUTERIE,
        "Hard Cheese": Food.HARD_CHEESE,
        "Lamb": Food.LAMB,
        "Lean Fish": Food.FISH,
        "Light Stews": Food.STEW,
        "Maturated Cheese": Food.HARD_CHEESE,
        "Mild Cheese": Food.SOFT_CHEESE,
        "Mushrooms": Food.MUSHROOMS,
        "Nuts": Food.NUTS,
        "Pasta": Food.PASTA,
        "Pizza": Food.PIZZA,
        "Pork": Food.PORK,
        "Poultry": Food.POULTRY,
        "Rich Fish": Food.OILY_FISH,
        "Risotto": Food.RISOTTO,
        "Salad": Food.SALAD,
        "Seafood": Food.SHELLFISH,
        "Shellfish": Food.SHELLFISH,
        "Snack": Food.APERITIF,
        "Soft Cheese": Food.SOFT_CHEESE,
        "Soufflé": Food.EGGS,
        "Spicy Food": Food.SPICY,
        "Sushi": Food.SUSHI,
        "Sweet Dessert": Food.CREAMY_DESSERT,
        "Tomato Dishes": Food.TOMATO,
        "Veal": Food.VEAL,
        "Vegetarian": Food.VEGETABLES,
    }
)

_COLOUR_WORDS: Final = (
    (Colour.ROSE, {"rose", "rosado", "rosato"}),
    (Colour.RED, {"rosso", "tinto", "red", "rouge", "ruby", "tawny", "lambrusco", "brachetto"}),
    (Colour.WHITE, {"white", "branco", "blanco", "bianco", "blanc", "prosecco", "cava", "moscato"}),
)
_WHITE_GRAPE_LIST: Final = (
    "riesling;semillon;sauvignon blanc;muscadelle;furmint;pedro ximenez;palomino;vidal blanc;"
    "chenin blanc;petit manseng;viognier;gewurztraminer;malvasia;trebbiano;chardonnay;picolit;"
    "muscat;moscato;muscat blanc;muscatel;glera;macabeo;xarel lo;parellada"
)
_WHITE_GRAPES: Final = frozenset(_WHITE_GRAPE_LIST.split(";"))
# The first that is found in the name counts, so the longer come before the shorter.
_SWEETNESS_WORDS: Final = (
    ("demi sec", Sweetness.MEDIUM),
    ("meio seco", Sweetness.MEDIUM),
    ("medium dry", Sweetness.MEDIUM),
    ("medium sweet", Sweetness.MEDIUM),
    ("extra dry", Sweetness.OFF_DRY),
    ("extra brut", Sweetness.BONE_DRY),
    ("nature", Sweetness.BONE_DRY),
    ("brut", Sweetness.DRY),
    ("bruto", Sweetness.DRY),
    ("trocken", Sweetness.DRY),
    ("beerenauslese", Sweetness.LUSCIOUS),
    ("trockenbeerenauslese", Sweetness.LUSCIOUS),
    ("eiswein", Sweetness.LUSCIOUS),
    ("icewine", Sweetness.LUSCIOUS),
    ("aszu", Sweetness.LUSCIOUS),
    ("auslese", Sweetness.SWEET),
    ("spatlese", Sweetness.MEDIUM),
    ("feinherb", Sweetness.OFF_DRY),
    ("halbtrocken", Sweetness.OFF_DRY),
    ("kabinett", Sweetness.OFF_DRY),
    ("fino", Sweetness.BONE_DRY),
    ("moscatel", Sweetness.SWEET),
    ("moscato", Sweetness.SWEET),
    ("brachetto", Sweetness.SWEET),
    ("dolce", Sweetness.SWEET),
    ("doce", Sweetness.SWEET),
    ("sweet", Sweetness.SWEET),
    ("suave", Sweetness.MEDIUM),
    ("port", Sweetness.SWEET),
    ("porto", Sweetness.SWEET),
    ("cream", Sweetness.SWEET),
    ("pedro ximenez", Sweetness.LUSCIOUS),
)
_DRY_FROM_ABV: Final = 11.5
"""A still wine weaker than this may well be off-dry, so nothing is claimed."""


def read_wine(fields: Fields) -> Wine | None:
    """The wine of a row; None when `fields` has noted something wrong with it."""
    name, winery = fields.required("WineName"), fields.required("WineryName")
    country, number = fields.required("Country"), fields.required("WineID")
    kind = _mapped(fields, "Type", TYPES)
    abv = fields.number("ABV", 0, 75)
    body, acidity = _mapped(fields, "Body", BODIES), _mapped(fields, "Acidity", ACIDITIES)
    grapes = tuple(dict.fromkeys(grape.split("/")[0] for grape in _list(fields, "Grapes")))
    spirit = abv is not None and abv > STRONGEST_WINE
    foods = _foods(fields, spirit=spirit)
    vintage = _vintage(_list(fields, "Vintages"))
    if kind is None or fields.problems:
        return None
    style = _style(kind, name, abv)
    colour = _colour(style, name, grapes)
    return Wine(
        id=f"xw-{number}",
        producer=winery,
        name=name,
        vintage=vintage,
        country=country,
        region=fields.text("RegionName"),
        grapes=grapes,
        style=style,
        colour=colour,
        sweetness=_sweetness(style, name, abv),
        body=body,
        acidity=acidity,
        tannin=Level.NONE if colour in (Colour.WHITE, Colour.ROSE) else None,
        abv=abv,
        foods=foods,
        allergens=(Allergen.SULPHITES,),
        notes="A spirit, not a wine." if spirit else "",
    )


def _mapped(fields: Fields, column: str, canonical: Mapping[str, E]) -> E | None:
    value = fields.required(column)
    if value and value not in canonical:
        fields.wrong(column, f"'{value}' is not one of: {', '.join(canonical)}")
    return canonical.get(value)


def _list(fields: Fields, column: str) -> list[str]:
    """A Python list literal, as the set writes them."""
    try:
        values = ast.literal_eval(fields.text(column) or "[]")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = None
    if not isinstance(values, list):
        fields.wrong(column, "is not a list like ['Merlot']")
        return []
    return [str(value) for value in values]


def _foods(fields: Fields, *, spirit: bool) -> tuple[Food, ...]:
    dishes = _list(fields, "Harmonize")
    if spirit:
        fields.leave_out("Harmonize", "a spirit is not paired with dishes")
        return ()
    for dish in dishes:
        if dish not in FOODS:
            fields.leave_out("Harmonize", f"'{dish}' has no canonical food")
    return tuple(dict.fromkeys(FOODS[dish] for dish in dishes if dish in FOODS))


def _vintage(years: list[str]) -> int | None:
    """The newest plausible year; None where the set says that the wine has none."""
    if "N.V." in years:
        return None
    plausible = (int(year) for year in years if year.isascii() and year.isdigit())
    return max((year for year in plausible if OLDEST_VINTAGE <= year <= PUBLISHED), default=None)


def _style(kind: Style, name: str, abv: float | None) -> Style:
    if kind is Style.SWEET and (abv or 0) >= FORTIFIED_FROM and not _has(name, "vin santo"):
        return Style.FORTIFIED
    return kind


def _colour(style: Style, name: str, grapes: tuple[str, ...]) -> Colour | None:
    if style in (Style.RED, Style.WHITE, Style.ROSE):
        return Colour(style.value)
    named = (colour for colour, words in _COLOUR_WORDS if words & set(fold(name).split()))
    by_name = next(named, None)
    if by_name or style is Style.SPARKLING:
        return by_name or Colour.WHITE
    white = bool(grapes) and all(fold(grape) in _WHITE_GRAPES for grape in grapes)
    if white:
        return Colour.WHITE
    return Colour.RED if _has(name, "port") or _has(name, "porto") else None


def _sweetness(style: Style, name: str, abv: float | None) -> Sweetness | None:
    named = (level for word, level in _SWEETNESS_WORDS if _has(name, word))
    found = next(named, None)
    if found or style is Style.SWEET:
        return found or Sweetness.SWEET
    still = style in (Style.RED, Style.WHITE, Style.ROSE)
    return Sweetness.DRY if still and (abv or 0) >= _DRY_FROM_ABV else None


def _has(name: str, words: str) -> bool:
    return f" {words} " in f" {fold(name)} "

"""The project's own CSV of wines; `docs/wines.md` describes every column for people."""

from datetime import UTC, datetime
from typing import Final

from agent.sommelier.money import Currency
from agent.sommelier.wine import Allergen, Body, Colour, Food, Level, Style, Sweetness, Wine
from db.csv_rows import Fields
from db.search_text import slug

HEADER: Final = (
    "id,producer,name,vintage,country,region,appellation,grapes,style,colour,sweetness,body,"
    "acidity,tannin,abv,price,currency,foods,allergens,notes,in_stock"
)
COLUMNS: Final = tuple(HEADER.split(","))
REQUIRED: Final = frozenset({"producer", "name", "country", "style"})

MAX_ID: Final = 100
MAX_ABV: Final = 75.0
MAX_PRICE: Final = 1_000_000.0
OLDEST_VINTAGE: Final = 1780
_ID_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")


def read_wine(fields: Fields) -> Wine | None:
    """The wine of a row; None when `fields` has noted something wrong with it.

    Empty means: no vintage (NV), price in EUR, in stock, the style's own colour, an id made of
    producer, name and vintage.
    """
    producer, name = fields.required("producer"), fields.required("name")
    country = fields.required("country")
    fields.required("style")
    vintage = _vintage(fields)
    style = fields.choice("style", Style)
    wine_id = _id(fields, producer, name, vintage)
    values = {
        "region": fields.text("region"),
        "appellation": fields.text("appellation"),
        "grapes": fields.items("grapes"),
        "colour": fields.choice("colour", Colour) or _own_colour(style),
        "sweetness": fields.choice("sweetness", Sweetness),
        "body": fields.choice("body", Body),
        "acidity": fields.choice("acidity", Level),
        "tannin": fields.choice("tannin", Level),
        "abv": fields.number("abv", 0, MAX_ABV),
        "price": fields.number("price", 0.01, MAX_PRICE),
        "currency": fields.choice("currency", Currency) or Currency.EUR,
        "foods": fields.choices("foods", Food),
        "allergens": fields.choices("allergens", Allergen),
        "notes": fields.text("notes"),
        "in_stock": fields.flag("in_stock", default=True),
    }
    if fields.problems or style is None:
        return None
    own = {"id": wine_id, "producer": producer, "name": name, "vintage": vintage}
    return Wine.model_validate({**own, "country": country, "style": style, **values})


def _vintage(fields: Fields) -> int | None:
    value = fields.text("vintage")
    if value.upper().replace(".", "") in {"", "NV"}:
        return None
    newest = datetime.now(UTC).year
    if not value.isascii() or not value.isdigit() or not OLDEST_VINTAGE <= int(value) <= newest:
        fields.wrong(
            "vintage", f"'{value}' is not a year from {OLDEST_VINTAGE} to {newest}, empty or NV"
        )
        return None
    return int(value)


def _id(fields: Fields, producer: str, name: str, vintage: int | None) -> str:
    given = fields.text("id")
    wine_id = given or slug(producer, name, str(vintage or "nv"))
    if not producer or not name:
        return wine_id
    if set(given) - _ID_CHARACTERS or (not given and not slug(producer, name)):
        fields.wrong("id", "needs an id of the letters a-z, digits, '-', '.' and '_'")
    elif len(wine_id) > MAX_ID:
        fields.wrong("id", f"'{wine_id}' has more than {MAX_ID} characters")
    return wine_id


def _own_colour(style: Style | None) -> Colour | None:
    if style in (Style.RED, Style.WHITE, Style.ROSE, Style.ORANGE):
        return Colour(style.value)
    return None

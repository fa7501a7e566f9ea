"""Check the cells of a listed wine, and say what is wrong with them."""

import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from agent.sommelier.offers import Offer
from agent.sommelier.vocabulary import Colour, Currency, normalize
from agent.sommelier.wine import Wine
from agent.text import pattern
from db.wines.lists.cells import (
    find_currency,
    make_slug,
    read_cell,
    read_colour,
    read_count,
    read_number,
    read_stock,
)
from db.wines.lists.listed import Cells, ListedWine, OfferCells
from db.wines.lists.problems import Problem
from db.wines.lists.words import load_words
from db.wines.years import OLDEST_VINTAGE, is_year

ID: Final = pattern(r"\A[a-z0-9._-]{1,100}\z")
"""The id of a wine, such as "trimbach-riesling-2021"."""
PLACEHOLDERS: Final = {"name": "a", "producer": "a", "country": "a", "style": "red"}
"""Valid cells that complete a row, to try whether one other cell can be read."""
OFFER_COLUMNS: Final = frozenset({"price", "currency", "in_stock"})
"""Columns that are about an offer of the wine, not about the wine."""
OfferFields = dict[str, object]
"""The values of an offer by the fields of `Offer`, as yet unchecked."""


def _check_id(text: str) -> str:
    if not ID.match(text):
        raise ValueError(
            "needs an id of the letters a-z, digits, '-', '.' and '_', at most 100"
        )
    return text


def _read_vintage(text: str) -> int | None:
    """Return the vintage in a cell, or None if the wine has none."""
    if normalize(text) in load_words()["words"]["no_vintage"]:
        return None
    year = text.removesuffix(".0")
    if not is_year(year):
        newest = datetime.now(UTC).year
        raise ValueError(
            f"is not a year from {OLDEST_VINTAGE} to {newest}, empty or NV"
        )
    return int(year)


class ListedOffer(Offer):
    """An offer in a wine list, where no wine is free of charge."""

    model_config = ConfigDict(allow_inf_nan=False)

    price: float | None = Field(None, ge=0.01, le=1_000_000)


class ListRow(Wine):
    """A row of a wine list, validated from its cells. Empty cells get the defaults of `Wine`."""

    model_config = ConfigDict(allow_inf_nan=False)

    id: Annotated[str, AfterValidator(_check_id)]
    vintage: Annotated[int | None, BeforeValidator(_read_vintage)] = None
    abv: float | None = Field(None, ge=0, le=75)
    offers: tuple[ListedOffer, ...] = (ListedOffer(),)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, cells: dict[str, Any]) -> dict[str, object]:
        """Read each cell. Make an id if there is none, and take the colour from the style."""
        values: dict[str, object] = {}
        for field, cell in cells.items():
            if isinstance(cell, str) and field in Wine.model_fields:
                values[field] = read_cell(field, cell)
            else:
                # Offers come read already.
                values[field] = cell
        if "id" not in values:
            values["id"] = make_id(cells)
        colour_cell = cells.get("colour") or cells.get("style", "")
        colour = read_colour(colour_cell)
        # An unknown word in the column of colours is kept, so that it is reported as a problem.
        if "colour" in cells or colour in set(Colour):
            values["colour"] = colour
        return values


def make_id(cells: Cells) -> str:
    """Return an id made of producer, name and vintage, such as `trimbach-riesling-2021`.

    An id has only Latin letters. If the title has others, the id contains its checksum, too.
    Return "" if the cells have no title.
    """
    producer = cells.get("producer", "")
    name = cells.get("name", "")
    title = normalize(f"{producer} {name}")
    if not title:
        return ""
    parts: list[str] = []
    slug = make_slug(title)
    if slug:
        parts.append(slug)
    if not title.isascii():
        checksum = zlib.crc32(title.encode())
        parts.append(f"{checksum:08x}")
    year = cells.get("vintage", "").removesuffix(".0")
    if year.isdecimal():
        parts.append(year)
    else:
        parts.append("nv")
    return "-".join(parts)


def check_listed(
    listed: ListedWine,
    cells: Cells,
    currency: Currency | None,
) -> Wine:
    """Return the wine of a row. `cells` are its cells, with what was derived.

    `currency` is the currency of prices that name none, or None if it is not known.

    Raises:
        ValidationError: a cell is unreadable, or the name is missing.
    """
    offers = [read_offer(offer, currency) for offer in listed.offers]
    return parse_cells(cells, offers)


def parse_cells(
    cells: Cells,
    offers: Sequence[OfferFields],
) -> Wine:
    """Return the wine of a row. `cells` are by field, `offers` are its offers as already read.

    Without offers, the wine is sold as a bottle of unknown price.

    Raises:
        ValidationError: a cell is unreadable, or the name is missing.
    """
    values: dict[str, object] = {"producer": "", "country": ""}
    for field, cell in cells.items():
        if field not in OFFER_COLUMNS:
            values[field] = cell
    values["offers"] = list(offers) or [{}]
    row = ListRow.model_validate(values)
    return Wine.model_validate(row.model_dump())


def read_offer(offer: OfferCells, currency: Currency | None = None) -> OfferFields:
    """Return the fields of an offer. Those that the file does not state are left out.

    `currency` is the currency of prices that name none, or None if it is not known.
    """
    fields: OfferFields = {"kind": offer.kind, "size_ml": offer.size_ml}
    stated_currency = find_currency(offer.price) or find_currency(offer.currency)
    known_currency = stated_currency or currency
    if known_currency:
        fields["currency"] = known_currency
    elif offer.currency:
        # An unknown currency is kept, so that it is reported as a problem.
        fields["currency"] = offer.currency.upper()
    if offer.price:
        fields["price"] = read_number(offer.price)
    if offer.stock:
        fields["in_stock"] = read_stock(offer.stock)
        count = read_count(offer.stock)
        if count is not None and count >= 0:
            fields["stock"] = count
    if offer.in_stock is not None:
        fields["in_stock"] = offer.in_stock
    return fields


def is_readable(field: str, cell: str) -> bool:
    """Return whether a cell can be read as a field of a wine or of its offer."""
    cells = dict(PLACEHOLDERS)
    offer = OfferCells()
    match field:
        case "price":
            offer = OfferCells(price=cell)
        case "currency":
            offer = OfferCells(currency=cell)
        case "in_stock":
            offer = OfferCells(stock=cell)
        case _:
            cells[field] = cell
    try:
        parse_cells(cells, [read_offer(offer)])
    except ValidationError:
        return False
    return True


def find_problems(line: int, error: ValidationError) -> Iterator[Problem]:
    """Yield what is wrong with the cells of a row."""
    for detail in error.errors(include_url=False):
        column = ""
        # The place of an error is a path such as ("offers", 0, "price"): the last name counts.
        for part in detail["loc"]:
            if isinstance(part, str):
                column = part
        if detail["type"] == "missing":
            yield Problem("is empty", line, column)
        else:
            value = str(detail["input"])
            yield Problem(_kind_of_problem(detail), line, column, value)


def _kind_of_problem(detail: Any) -> str:
    """Return what is wrong with a cell, in the words of a report."""
    message = str(detail["msg"])
    if detail["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return message.removeprefix("Input ")

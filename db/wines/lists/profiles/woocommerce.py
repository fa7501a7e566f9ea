"""Read the export of products of WooCommerce, with the English or the German column names.

A variable product is followed by its variations, which name it as their parent: by its article
number, or as `id:42`. A variation is an offer of the wine, or a vintage of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final

from agent.text import pattern
from db.wines.lists.cells import read_count, translate_word
from db.wines.lists.listed import LeftOut, ListedWine, OfferCells, Reading
from db.wines.lists.packing import Packing, read_packing
from db.wines.lists.profiles.shops import (
    ShopWine,
    fact_field,
    find_columns,
    find_reason_not_wine,
    html_to_text,
    list_vintages,
    make_note,
    make_offer,
    name_columns,
    read_cells,
    read_facts,
    shop_profiles,
    split_facts,
)
from db.wines.lists.tables import Table
from db.wines.lists.titles import split_title, take_vintage

ATTRIBUTE_NAME: Final = pattern(r"(?i)\A(?:attribute|attribut) (\d+) name\z")
ATTRIBUTE_VALUE: Final = pattern(
    r"(?i)\A(?:attribute|attribut) (\d+) (?:value\(s\)|wert\(e\))\z"
)
ISO_DATE: Final = pattern(r"\A(\d{4})-(\d{2})-(\d{2})")
UNPUBLISHED: Final = {"0": "private", "-1": "a draft"}
Cells = Mapping[str, str]
Attributes = Sequence[tuple[str, str]]
"""Names and values."""


class Product:
    """A row of the export, with its attributes and variations."""

    def __init__(self, line: int, cells: Cells, attributes: Attributes) -> None:
        self.line = line
        self.cells = cells
        self.attributes = attributes
        self.variations: list[Product] = []

    @property
    def kinds(self) -> list[str]:
        """Return the types of the product: "simple", "variable", "variation", "virtual" …."""
        return [kind.strip().lower() for kind in self.cells.get("type", "").split(",")]

    @property
    def categories(self) -> list[str]:
        """Return the categories, such as "Wein > Rotwein > Piemont"."""
        categories = self.cells.get("categories", "").split(",")
        return [category.strip() for category in categories if category.strip()]

    def reason_to_leave_out(self) -> str:
        """Return why the product is no wine for sale, or ""."""
        if reason := UNPUBLISHED.get(self.cells.get("published", "")):
            return reason
        if self.cells.get("visibility", "").lower() == "hidden":
            return "hidden in the shop"
        if "grouped" in self.kinds:
            return "a selection of several wines"
        others = [self.cells.get("name", ""), *self.cells.get("tags", "").split(",")]
        if reason := find_reason_not_wine(self.categories, others):
            return reason
        return "a virtual product" if "virtual" in self.kinds else ""


def read_woocommerce(table: Table) -> Reading:
    """Return the wines of an export, and the products that are none."""
    columns = find_columns(table, shop_profiles()["woocommerce"])
    attribute_columns = _find_attributes(table)
    products = [
        Product(
            row.line,
            read_cells(row, columns),
            _read_attributes(row.cells, attribute_columns),
        )
        for row in table.rows
    ]
    left_out: list[LeftOut] = []
    listed: list[ListedWine] = []
    for product in _join_variations(products):
        if reason := product.reason_to_leave_out():
            left_out.append(
                LeftOut(product.line, product.cells.get("name", ""), reason)
            )
        else:
            listed += _list_wine(product)
    named = [index for pair in attribute_columns for index in pair]
    return Reading(
        profile="WooCommerce",
        listed=tuple(listed),
        left_out=tuple(left_out),
        columns=name_columns(table, columns, named),
    )


def _find_attributes(table: Table) -> list[tuple[int, int]]:
    """Return the indices of the columns with the name and the value of each attribute."""
    names: dict[str, int] = {}
    values: dict[str, int] = {}
    for index, title in enumerate(table.titles):
        if name := ATTRIBUTE_NAME.match(title):
            names[name[1]] = index
        if value := ATTRIBUTE_VALUE.match(title):
            values[value[1]] = index
    return [
        (index, values[number]) for number, index in names.items() if number in values
    ]


def _read_attributes(
    cells: Sequence[str], columns: Sequence[tuple[int, int]]
) -> list[tuple[str, str]]:
    pairs = [
        (cells[name], cells[value])
        for name, value in columns
        if max(name, value) < len(cells)
    ]
    return [(name, value) for name, value in pairs if name and value]


def _join_variations(products: Sequence[Product]) -> list[Product]:
    """Return the products with their variations; a variation without a parent is left out."""
    parents: dict[str, Product] = {}
    for product in products:
        if "variation" not in product.kinds:
            parents[product.cells.get("sku", "")] = product
            parents[f"id:{product.cells.get('id', '')}"] = product
    for product in products:
        parent = parents.get(product.cells.get("parent", ""))
        if "variation" in product.kinds and parent:
            parent.variations.append(product)
    return [product for product in products if "variation" not in product.kinds]


def _list_wine(product: Product) -> Iterator[ListedWine]:
    """Yield the wine of a product, or one for each vintage if its variations have several."""
    cells = product.cells
    described, prose = split_facts(html_to_text(cells.get("description", "")))
    _, short = split_facts(html_to_text(cells.get("short_description", "")))
    facts = described | read_facts(_own_attributes(product))
    producer = facts.pop("producer", "") or cells.get("brand", "").partition(",")[0]
    title = split_title(cells.get("name", ""), producer)
    packing = read_packing(facts.pop("size", "")) or read_packing(cells.get("name", ""))
    own = {
        "name": title.name,
        "producer": title.producer,
        "vintage": title.vintage or facts.get("vintage", ""),
        "notes": make_note(short or prose),
        "image": cells.get("image", "").partition(",")[0],
        "link": cells.get("link", ""),
    }
    offers: dict[str, list[OfferCells]] = {}
    for sold in product.variations or [product]:
        vintage = "" if sold is product else _find_vintage(sold)
        offers.setdefault(vintage, []).append(_make_offer(sold, product, packing))
    return list_vintages(
        ShopWine(
            line=product.line,
            id=cells.get("sku") or cells.get("id", ""),
            cells=facts | own,
            offers=offers,
            clues=(*product.categories, cells.get("tags", "")),
            derived=title.derived(producer),
        )
    )


def _own_attributes(product: Product) -> Attributes:
    """Return the attributes with one value; a variable product has all its sizes in one."""
    return [(name, value) for name, value in product.attributes if "|" not in value] + [
        (name, value)
        for name, value in product.attributes
        if fact_field(name) not in ("size", "vintage")
    ]


def _find_vintage(variation: Product) -> str:
    for name, value in variation.attributes:
        if fact_field(name) == "vintage":
            return take_vintage(value)[1]
    return ""


def _make_offer(sold: Product, product: Product, packing: Packing | None) -> OfferCells:
    """Return the offer of a variation, or of a product without any."""
    for name, value in sold.attributes:
        if sold is not product and fact_field(name) != "vintage":
            packing = read_packing(value) or packing
    price, stock = _current_price(sold.cells), sold.cells.get("stock", "")
    return make_offer(packing, price, stock, in_stock=_is_in_stock(sold.cells))


def _current_price(cells: Cells) -> str:
    """Return the sale price within its dates, or else the regular price."""
    sale = cells.get("sale_price", "")
    today = datetime.now(UTC).date()
    starts, ends = (
        _read_date(cells.get("sale_starts")),
        _read_date(cells.get("sale_ends")),
    )
    has_begun = starts is None or starts <= today
    has_ended = ends is not None and ends < today
    return (
        sale if sale and has_begun and not has_ended else cells.get("regular_price", "")
    )


def _read_date(text: str | None) -> date | None:
    found = ISO_DATE.match(text or "")
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def _is_in_stock(cells: Cells) -> bool:
    """Return whether a product can be ordered: it is in stock, or is sold without."""
    is_in_stock = translate_word("words", cells.get("in_stock", "1"))
    sells_on = cells.get("sells_on", "0")
    if is_in_stock == "backorder" or sells_on not in ("0", ""):
        return True
    count = read_count(cells.get("stock", ""))
    has_none = count is not None and count <= 0
    return is_in_stock in ("1", "yes") and not has_none

"""Read the export of products of WooCommerce, with the English or the German column names.

A product may have variations, which are rows of their own. A variation names the product as its
parent, by the article number or as `id:42`. A variation is an offer of the wine, or a vintage of
it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Final

from agent.text import pattern
from db.wines.lists.cells import read_count, translate_word
from db.wines.lists.listed import Cells, LeftOut, ListedWine, OfferCells, Reading
from db.wines.lists.packing import Packing, read_packing
from db.wines.lists.profiles.shops import (
    NamedValue,
    ShopWine,
    find_columns,
    find_fact_field,
    find_reason_not_wine,
    html_to_text,
    list_vintages,
    load_shop_profiles,
    make_note,
    make_offer,
    name_columns,
    read_cells,
    read_facts,
    split_facts,
)
from db.wines.lists.tables import Table
from db.wines.lists.titles import split_title, take_vintage

ATTRIBUTE_NAME: Final = pattern(r"(?i)\A(?:attribute|attribut) (\d+) name\z")
ATTRIBUTE_VALUE: Final = pattern(
    r"(?i)\A(?:attribute|attribut) (\d+) (?:value\(s\)|wert\(e\))\z"
)
"""The columns of the second attribute: "Attribute 2 name" and "Attribut 2 Wert(e)"."""
ISO_DATE: Final = pattern(r"\A(\d{4})-(\d{2})-(\d{2})")
UNPUBLISHED: Final = {"0": "private", "-1": "a draft"}
"""Why a product is left out whose column "published" has one of these values."""
Attributes = Sequence[NamedValue]
"""The attributes of a product."""


class Product:
    """A row of the export, with its attributes and variations."""

    def __init__(
        self,
        line: int,
        cells: Cells,
        attributes: Attributes,
    ) -> None:
        self.line = line
        self.cells = cells
        self.attributes = attributes
        self.variations: list[Product] = []

    @property
    def kinds(self) -> list[str]:
        """Return the types of the product, such as "simple", "variable", "variation", "virtual"."""
        kinds = self.cells.get("type", "").lower().split(",")
        return [kind.strip() for kind in kinds]

    @property
    def categories(self) -> list[str]:
        """Return the categories, such as "Wein > Rotwein > Piemont"."""
        categories: list[str] = []
        for text in self.cells.get("categories", "").split(","):
            category = text.strip()
            if category:
                categories.append(category)
        return categories

    def reason_to_leave_out(self) -> str:
        """Return why the product is not a wine for sale, or "" if it is one."""
        published = self.cells.get("published", "")
        if published in UNPUBLISHED:
            return UNPUBLISHED[published]
        if self.cells.get("visibility", "").lower() == "hidden":
            return "hidden in the shop"
        if "grouped" in self.kinds:
            return "a selection of several wines"
        tags = self.cells.get("tags", "").split(",")
        name = self.cells.get("name", "")
        reason_not_wine = find_reason_not_wine(self.categories, [name, *tags])
        if reason_not_wine:
            return reason_not_wine
        if "virtual" in self.kinds:
            return "a virtual product"
        return ""


def read_woocommerce(table: Table) -> Reading:
    """Return the wines of an export, and the products that are not wines for sale."""
    columns = find_columns(table, load_shop_profiles()["woocommerce"])
    attribute_columns = _find_attributes(table)
    products: list[Product] = []
    for row in table.rows:
        cells = read_cells(row, columns)
        attributes = _read_attributes(row.cells, attribute_columns)
        products.append(Product(row.line, cells, attributes))
    left_out: list[LeftOut] = []
    listed: list[ListedWine] = []
    for product in _join_variations(products):
        reason = product.reason_to_leave_out()
        if reason:
            name = product.cells.get("name", "")
            left_out.append(LeftOut(product.line, name, reason))
        else:
            listed += _list_wine(product)
    return Reading(
        profile="WooCommerce",
        listed=tuple(listed),
        left_out=tuple(left_out),
        columns=name_columns(table, columns, chain(*attribute_columns)),
    )


def _find_attributes(table: Table) -> list[tuple[int, int]]:
    """Return the indices of the columns with the name and the value of each attribute."""
    name_columns: dict[str, int] = {}
    value_columns: dict[str, int] = {}
    for index, title in enumerate(table.titles):
        name = ATTRIBUTE_NAME.match(title)
        if name:
            name_columns[name[1]] = index
        value = ATTRIBUTE_VALUE.match(title)
        if value:
            value_columns[value[1]] = index
    columns: list[tuple[int, int]] = []
    for number, name_index in name_columns.items():
        value_index = value_columns.get(number)
        if value_index is not None:
            columns.append((name_index, value_index))
    return columns


def _read_attributes(
    cells: Sequence[str], columns: Sequence[tuple[int, int]]
) -> list[NamedValue]:
    """Return the names and values of the attributes that a row has."""
    attributes: list[NamedValue] = []
    for name_index, value_index in columns:
        if max(name_index, value_index) >= len(cells):
            continue
        name = cells[name_index]
        value = cells[value_index]
        if name and value:
            attributes.append((name, value))
    return attributes


def _join_variations(products: Sequence[Product]) -> list[Product]:
    """Return the products with their variations. A variation without a parent is left out."""
    variations: list[Product] = []
    parents: list[Product] = []
    for product in products:
        if "variation" in product.kinds:
            variations.append(product)
        else:
            parents.append(product)
    parents_by_name: dict[str, Product] = {}
    for product in parents:
        article_number = product.cells.get("sku", "")
        product_id = product.cells.get("id", "")
        parents_by_name[article_number] = product
        parents_by_name[f"id:{product_id}"] = product
    for variation in variations:
        parent_name = variation.cells.get("parent", "")
        parent = parents_by_name.get(parent_name)
        if parent:
            parent.variations.append(variation)
    return parents


def _list_wine(product: Product) -> Iterator[ListedWine]:
    """Yield the wine of a product, or a wine for each vintage if its variations have several."""
    cells = product.cells
    facts, prose = _read_facts(product)
    first_brand, _, _ = cells.get("brand", "").partition(",")
    producer = facts.pop("producer", "") or first_brand
    name = cells.get("name", "")
    title = split_title(name, producer)
    size = facts.pop("size", "")
    packing = read_packing(size) or read_packing(name)
    first_image, _, _ = cells.get("image", "").partition(",")
    own = {
        "name": title.name,
        "producer": title.producer,
        "vintage": title.vintage or facts.get("vintage", ""),
        "notes": make_note(prose),
        "image": first_image,
        "link": cells.get("link", ""),
    }
    wine = ShopWine(
        line=product.line,
        id=cells.get("sku") or cells.get("id", ""),
        cells=facts | own,
        offers=_list_offers(product, packing),
        clues=(*product.categories, cells.get("tags", "")),
        derived=title.derived_fields(producer),
    )
    return list_vintages(wine)


def _read_facts(product: Product) -> tuple[dict[str, str], str]:
    """Return the facts that a product states, and its prose: the short one if there is one."""
    description = html_to_text(product.cells.get("description", ""))
    described, prose = split_facts(description)
    short_description = html_to_text(product.cells.get("short_description", ""))
    _, short_prose = split_facts(short_description)
    facts = described | read_facts(_own_attributes(product))
    return facts, short_prose or prose


def _list_offers(
    product: Product, packing: Packing | None
) -> dict[str, list[OfferCells]]:
    """Return the offers of each vintage of a product.

    `packing` is what the product says. What an attribute of a variation says counts more.
    """
    if not product.variations:
        return {"": [_make_offer(product, packing)]}
    offers: defaultdict[str, list[OfferCells]] = defaultdict(list)
    for variation in product.variations:
        own_packing = packing
        for name, value in variation.attributes:
            if find_fact_field(name) != "vintage":
                own_packing = read_packing(value) or own_packing
        vintage = _find_vintage(variation)
        offer = _make_offer(variation, own_packing)
        offers[vintage].append(offer)
    return offers


def _own_attributes(product: Product) -> Attributes:
    """Return the attributes that are facts about the product, those with a single value first.

    The sizes and vintages of a product with variations are left out: an attribute has all of them,
    as in "0,75 l | 1,5 l".
    """
    single: list[NamedValue] = []
    several: list[NamedValue] = []
    for name, value in product.attributes:
        if "|" not in value:
            single.append((name, value))
        elif find_fact_field(name) not in ("size", "vintage"):
            several.append((name, value))
    return single + several


def _find_vintage(variation: Product) -> str:
    """Return the vintage that an attribute of a variation names, or ""."""
    for name, value in variation.attributes:
        if find_fact_field(name) == "vintage":
            _, vintage = take_vintage(value)
            return vintage
    return ""


def _make_offer(sold: Product, packing: Packing | None) -> OfferCells:
    """Return the offer of a variation, or of a product without variations."""
    return make_offer(
        packing,
        price=_current_price(sold.cells),
        stock=sold.cells.get("stock", ""),
        in_stock=_is_in_stock(sold.cells),
    )


def _current_price(cells: Cells) -> str:
    """Return the sale price if the sale is on today, or else the regular price."""
    sale_price = cells.get("sale_price", "")
    today = datetime.now(UTC).date()
    first_day = _read_date(cells.get("sale_starts", "")) or today
    last_day = _read_date(cells.get("sale_ends", "")) or today
    if sale_price and first_day <= today <= last_day:
        return sale_price
    return cells.get("regular_price", "")


def _read_date(text: str) -> date | None:
    """Return the date that a text like "2026-11-30 00:00:00" begins with, or None."""
    found = ISO_DATE.match(text)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _is_in_stock(cells: Cells) -> bool:
    """Return whether a product can be ordered: it is in stock, or the shop sells it anyway."""
    stock_word = translate_word("words", cells.get("in_stock", "1"))
    sells_on = cells.get("sells_on", "0") not in ("0", "")
    if stock_word == "backorder" or sells_on:
        return True
    if stock_word not in ("1", "yes"):
        return False
    count = read_count(cells.get("stock", ""))
    return count is None or count > 0

"""Read the export of products of Shopify.

All rows of a product have its handle, which is its id. The first row describes the product. Each
row has a variant, a picture, or both. A variant is an offer of the wine, or a vintage of it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from db.wines.lists.cells import read_count
from db.wines.lists.columns import drop_empty, list_possible_fields
from db.wines.lists.listed import Cells, LeftOut, ListedWine, OfferCells, Reading
from db.wines.lists.packing import Packing, read_packing
from db.wines.lists.profiles.shops import (
    NamedValue,
    ShopWine,
    find_columns,
    find_fact_field,
    find_metafields,
    find_reason_not_wine,
    find_shop_vendor,
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

NOT_FOR_SALE: Final = {
    "draft": "a draft",
    "archived": "archived",
    "unlisted": "not listed in the shop",
}
"""Why a product in one of these states is left out."""
DEFAULT_OPTION: Final = "default title"
"""The value of the option that Shopify writes for a product without options."""
TRUE_WORDS: Final = frozenset({"true", "continue", "yes", "1"})
OPTIONS: Final = (
    ("option_name", "option_value"),
    ("option2_name", "option2_value"),
    ("option3_name", "option3_value"),
)
"""The fields of the columns with the name and the value of each option."""


class Product:
    """The rows of a product: its cells, its metafields, and the cells of its variants.

    Metafields are fields that a shop has added itself.
    """

    def __init__(
        self,
        line: int,
        cells: Cells,
        metafields: Cells,
    ) -> None:
        self.line = line
        self.cells = cells
        self.metafields = metafields
        self.variants: list[Cells] = []

    def reason_to_leave_out(self) -> str:
        """Return why the product is not a wine for sale, or "" if it is one."""
        status = self.cells.get("status", "").lower()
        if status in NOT_FOR_SALE:
            return NOT_FOR_SALE[status]
        if self.cells.get("published", "true").lower() not in TRUE_WORDS:
            return "not published"
        if self.cells.get("is_gift_card", "").lower() in TRUE_WORDS:
            return "a gift card"
        category = self.cells.get("category", "")
        # The innermost category counts: "Wine" of "Food > Wine".
        _, _, innermost = category.rpartition(">")
        kinds = [self.cells.get("type", ""), innermost]
        others = [self.cells.get("title", ""), *self.tags]
        return find_reason_not_wine(kinds, others)

    @property
    def clues(self) -> tuple[str, ...]:
        """Return the texts from which facts of the wine may be derived."""
        kind = self.cells.get("type", "")
        category = self.cells.get("category", "")
        return kind, category, ", ".join(self.tags)

    @property
    def tags(self) -> list[str]:
        """Return the tags, with spaces for underscores. A tag may be a fact: "Region: Mosel"."""
        tags: list[str] = []
        for text in self.cells.get("tags", "").split(","):
            tag = text.replace("_", " ").strip()
            if tag:
                tags.append(tag)
        return tags


def read_shopify(table: Table) -> Reading:
    """Return the wines of an export, and the products that are not wines for sale."""
    columns = find_columns(table, load_shop_profiles()["shopify"])
    metafields = find_metafields(table)
    products = _group_rows(table, columns, metafields)
    vendors = [product.cells.get("vendor", "") for product in products.values()]
    shop = find_shop_vendor(vendors)
    listed: list[ListedWine] = []
    left_out: list[LeftOut] = []
    for handle, product in products.items():
        reason = product.reason_to_leave_out()
        if reason:
            title = product.cells.get("title", handle)
            left_out.append(LeftOut(product.line, title, reason))
        else:
            listed += _list_wine(handle, product, shop)
    return Reading(
        profile="Shopify",
        listed=tuple(listed),
        left_out=tuple(left_out),
        columns=name_columns(table, columns, metafields),
    )


def _group_rows(
    table: Table,
    columns: Mapping[str, int],
    metafields: Mapping[int, str],
) -> dict[str, Product]:
    """Return the products by handle. A row without a price has only a picture, no variant."""
    products: dict[str, Product] = {}
    for row in table.rows:
        cells = read_cells(row, columns)
        handle = cells.get("handle", "")
        if not handle:
            continue
        if handle not in products:
            facts: dict[str, str] = {}
            for index, name in metafields.items():
                facts[name] = row.cells[index]
            products[handle] = Product(row.line, cells, facts)
        has_no_tracker = "tracker" in columns and "tracker" not in cells
        if has_no_tracker:
            # Nobody counts the stock of this variant.
            cells.pop("stock", None)
        if "price" in cells:
            products[handle].variants.append(cells)
    return products


def _list_wine(
    handle: str,
    product: Product,
    shop: str,
) -> Iterator[ListedWine]:
    """Yield the wine of a product, or a wine for each vintage if its variants have several."""
    cells = product.cells
    facts, prose = _read_facts(product)
    vendor = cells.get("vendor", "")
    producer = facts.pop("producer", "")
    if not producer and vendor != shop:
        producer = vendor
    title = split_title(cells.get("title", handle), producer)
    own = {
        "name": title.name,
        "producer": title.producer,
        "notes": make_note(prose),
        "vintage": title.vintage,
        "image": cells.get("image", ""),
    }
    size = facts.pop("size", "")
    packing = read_packing(size) or read_packing(cells.get("title", ""))
    wine = ShopWine(
        line=product.line,
        id=handle,
        cells=facts | drop_empty(own),
        offers=_list_offers(product, packing),
        clues=product.clues,
        derived=title.derived_fields(producer),
    )
    return list_vintages(wine)


def _read_facts(product: Product) -> tuple[dict[str, str], str]:
    """Return the facts that a product states anywhere, and its description without them."""
    description = html_to_text(product.cells.get("description", ""))
    facts, prose = split_facts(description)
    facts |= read_facts(product.metafields.items())
    facts |= _read_tags(product.tags)
    return facts, prose


def _list_offers(
    product: Product, packing: Packing | None
) -> dict[str, list[OfferCells]]:
    """Return the offers of each vintage of a product. `packing` is what the product says."""
    offers: defaultdict[str, list[OfferCells]] = defaultdict(list)
    for variant in product.variants or [product.cells]:
        vintage = _find_vintage(variant, product.cells)
        offer = _make_offer(variant, product, packing)
        offers[vintage].append(offer)
    return offers


def _read_tags(tags: Sequence[str]) -> dict[str, str]:
    """Return the facts in tags like "Region: Mosel"."""
    pairs: list[NamedValue] = []
    for tag in tags:
        name, _, value = tag.partition(":")
        if value:
            pairs.append((name, value.strip()))
    return read_facts(pairs)


def _list_options(variant: Cells, product: Cells) -> Iterator[NamedValue]:
    """Yield the options of a variant, each as a name and a value.

    Only the first row of a product, whose cells are `product`, has the names.
    """
    for name_field, value_field in OPTIONS:
        value = variant.get(value_field, "")
        if value and value.lower() != DEFAULT_OPTION:
            yield product.get(name_field, ""), value


def _find_vintage(variant: Cells, product: Cells) -> str:
    """Return the vintage that an option of a variant names, or ""."""
    for name, value in _list_options(variant, product):
        if "vintage" in list_possible_fields(name):
            _, vintage = take_vintage(value)
            return vintage
    return ""


def _make_offer(
    variant: Cells,
    product: Product,
    packing: Packing | None,
) -> OfferCells:
    """Return the offer of a variant.

    `packing` is what the product says. What an option of the variant says counts more.
    """
    for name, value in _list_options(variant, product.cells):
        if find_fact_field(name) != "vintage":
            packing = read_packing(value) or packing
    stock = variant.get("stock", "")
    count = read_count(stock) or 0
    sells_on = variant.get("sells_on", "").lower() in TRUE_WORDS
    return make_offer(
        packing,
        price=variant.get("price", ""),
        stock=stock,
        in_stock=count > 0 or sells_on or not stock,
    )

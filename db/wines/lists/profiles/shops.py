"""The common parts of the exports of shop programs.

Their columns have fixed names, descriptions are in HTML, and not all products are wines.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from agent.language import truncate_at_boundary
from agent.sommelier.vocabulary import OfferKind, normalize
from agent.tables import StrictModel, read_toml
from agent.text import pattern
from db.wines.lists.columns import drop_empty, list_possible_fields
from db.wines.lists.derive import find_facts
from db.wines.lists.listed import Cells, ListedWine, NamedColumn, OfferCells
from db.wines.lists.packing import Packing
from db.wines.lists.tables import Row, Table
from db.wines.lists.words import load_words

NamedValue = tuple[str, str]
"""A fact as a shop writes it, by its name and its value: ("Rebsorte", "Riesling")."""

MAX_NOTE_CHARS: Final = 600
MAX_LABEL_CHARS: Final = 40
"""A longer text before a colon is not the name of a fact."""
MAX_FACT_CHARS: Final = 200
BLOCK_TAGS: Final = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section".split()
)
HIDDEN_TAGS: Final = frozenset({"script", "style", "head", "template"})
NAMED_FACTS: Final = frozenset(
    "producer vintage country region appellation grapes style colour sweetness abv foods allergens "
    "size".split()
)
"""The fields that an option, an attribute, a metafield or a line of a description may have."""
ADDRESS_FIELDS: Final = frozenset({"link", "image"})
METAFIELD: Final = pattern(
    r"(?i)\A(.*?)\s*\(product\.metafields\.[^)]*\)\z|\Ametafield:\s*(.*)\z"
)
"""A column name like "Rebsorte (product.metafields.custom.grape)" or "Metafield: wine.grape"."""
WINE_WORDS: Final = frozenset(
    "wine wines wein weine vin vins vino vinos vini wijn wijnen vinho".split()
)
MIN_SHARED_VENDORS: Final = 10
"""In an export with fewer products, no vendor is taken for the shop itself."""
SHARED_VENDOR_SHARE: Final = 0.8
"""A vendor with a larger share of all products is the shop itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopWine:
    """A wine of a shop, which may be for sale in several vintages.

    `cells` has the cell of each field, except the id. `offers` has the offers of each vintage. The
    vintage is "" if the shop does not state it.
    """

    line: int
    id: str
    cells: Cells
    offers: Mapping[str, Sequence[OfferCells]]
    clues: Sequence[str]
    derived: tuple[str, ...]


def list_vintages(wine: ShopWine) -> Iterator[ListedWine]:
    """Yield the wine. If it is for sale in several vintages, yield one for each.

    The ids of these end with the year.
    """
    has_several = len(wine.offers) > 1
    for vintage, offers in wine.offers.items():
        cells = dict(wine.cells)
        cells["id"] = wine.id
        if has_several:
            year = vintage or "nv"
            cells["id"] = f"{wine.id}-{year}"
        if vintage:
            cells["vintage"] = vintage
        yield ListedWine(
            line=wine.line,
            cells=drop_empty(cells),
            offers=tuple(offers),
            clues=tuple(filter(None, wine.clues)),
            derived=wine.derived,
        )


def make_offer(
    packing: Packing | None,
    price: str,
    stock: str,
    *,
    in_stock: bool,
) -> OfferCells:
    """Return the offer of a variant. The offer is a bottle if `packing` is None."""
    packing = packing or Packing(OfferKind.BOTTLE)
    return OfferCells(
        kind=packing.kind,
        size_ml=packing.size_ml,
        price=price,
        stock=stock,
        in_stock=in_stock,
    )


class ShopProfile(StrictModel):
    """The names of the columns in the exports of a shop program. `profiles.toml` explains them."""

    signature: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]


@cache
def load_shop_profiles() -> Mapping[str, ShopProfile]:
    """Return the profiles of shop programs by the names of the programs."""
    file = Path(__file__).with_name("profiles.toml")
    return read_toml(dict[str, ShopProfile], file)


def find_columns(table: Table, profile: ShopProfile) -> dict[str, int]:
    """Return the index of each field's column in a table."""
    titles = [normalize(title) for title in table.titles]
    found: dict[str, int] = {}
    for field, names in profile.columns.items():
        for name in names:
            if name in titles:
                found[field] = titles.index(name)
                break
    return found


def is_export_of(table: Table, profile: ShopProfile) -> bool:
    """Return whether a table has the columns that the exports of a program have."""
    columns = find_columns(table, profile)
    return all(field in columns for field in profile.signature)


def read_cells(row: Row, columns: Mapping[str, int]) -> dict[str, str]:
    """Return the filled cells of a row by field, without addresses that are not https."""
    filled: dict[str, str] = {}
    for field, index in columns.items():
        # A row may have fewer cells than the header.
        if index >= len(row.cells) or not row.cells[index]:
            continue
        cell = row.cells[index]
        # Some old shops have http addresses. Their wines are listed without pictures and links.
        is_usable = field not in ADDRESS_FIELDS or cell.startswith("https://")
        if is_usable:
            filled[field] = cell
    return filled


def name_columns(
    table: Table,
    columns: Mapping[str, int],
    named: Iterable[int],
) -> tuple[NamedColumn, ...]:
    """Return the name of each column, with what it is read as.

    `named` are the indices of columns that are read by their own names, such as metafields.
    """
    meanings = [""] * len(table.titles)
    for field, index in columns.items():
        meanings[index] = field
    for index in named:
        meanings[index] = "a fact of the wine"
    return tuple(zip(table.titles, meanings, strict=True))


def find_metafields(table: Table) -> dict[int, str]:
    """Return the names of the facts in metafields, by the indices of their columns."""
    found: dict[int, str] = {}
    for index, title in enumerate(table.titles):
        metafield = METAFIELD.match(title)
        if metafield is None:
            continue
        full_name = metafield[1] or metafield[2]
        # The name of "wine.grape" is "grape".
        _, _, name = full_name.rpartition(".")
        if find_fact_field(name):
            found[index] = name
    return found


def find_fact_field(name: str) -> str:
    """Return the field for which a name such as "Rebsorte" stands, or ""."""
    for field in list_possible_fields(name):
        if field in NAMED_FACTS:
            return field
    return ""


def read_facts(pairs: Iterable[NamedValue]) -> dict[str, str]:
    """Return the facts in pairs of a name and a value, by field.

    If a field has several values, the first one counts.
    """
    facts: dict[str, str] = {}
    for name, value in pairs:
        field = find_fact_field(name)
        if field and value:
            facts.setdefault(field, value)
    return facts


def split_facts(text: str) -> tuple[dict[str, str], str]:
    """Return the facts in lines like "Rebsorte: Riesling", and the other lines as prose."""
    facts: list[NamedValue] = []
    prose: list[str] = []
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        is_short = len(name) <= MAX_LABEL_CHARS and len(value) <= MAX_FACT_CHARS
        if colon and is_short and find_fact_field(name):
            facts.append((name, value.strip()))
        else:
            prose.append(line)
    words = " ".join(prose).split()
    return read_facts(facts), " ".join(words)


def make_note(prose: str) -> str:
    """Return the beginning of a description, cut at the end of a sentence."""
    return truncate_at_boundary(prose, MAX_NOTE_CHARS)


def html_to_text(html: str) -> str:
    """Return the text of a description in HTML, with a line for each block."""
    if "<" not in html and "&" not in html:
        return html
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    text = "".join(parser.parts)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "\n".join(filter(None, lines))


class _TextParser(HTMLParser):
    """Collects the visible text of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0
        """The number of hidden tags that are open."""

    def handle_starttag(
        self, tag: str, attrs: Sequence[tuple[str, str | None]]
    ) -> None:
        """Begin a line if a block begins. Collect nothing within scripts."""
        if tag in HIDDEN_TAGS:
            self._hidden += 1
        if tag in BLOCK_TAGS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End the line of a block."""
        if tag in HIDDEN_TAGS:
            self._hidden = max(0, self._hidden - 1)
        if tag in BLOCK_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Collect visible text."""
        if not self._hidden:
            self.parts.append(data)


def find_reason_not_wine(kinds: Sequence[str], others: Sequence[str]) -> str:
    """Return what a product is instead of a wine, such as "a gift card", or "" for a wine.

    `kinds` are its type and its categories, and `others` its title and its tags. If a kind names
    wine, the product is one, whatever the title says.
    """
    for kind in kinds:
        other_goods = _find_other_goods(kind)
        if other_goods:
            return other_goods
        if _is_of_wine(kind):
            return ""
    for text in others:
        other_goods = _find_other_goods(text)
        if other_goods:
            return other_goods
    return ""


def _is_of_wine(kind: str) -> bool:
    """Return whether a type or a category names wine, or a style, a place or a grape."""
    if not WINE_WORDS.isdisjoint(normalize(kind).split()):
        return True
    return any(fact.style or fact.place or fact.grape for fact in find_facts(kind))


def _find_other_goods(text: str) -> str:
    """Return which goods that are not wine a text names, or ""."""
    padded = f" {normalize(text)} "
    for goods, names in load_words()["not_wine"].items():
        for name in names:
            if f" {name} " in padded:
                return goods
    return ""


def find_shop_vendor(vendors: Sequence[str]) -> str:
    """Return the vendor of nearly all products, or "".

    This vendor is the shop, not a producer of wine.
    """
    if len(vendors) < MIN_SHARED_VENDORS:
        return ""
    [(commonest, count)] = Counter(vendors).most_common(1)
    if count > SHARED_VENDOR_SHARE * len(vendors):
        return commonest
    return ""

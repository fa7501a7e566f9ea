"""What the exports of shop programs have in common: columns by name, HTML, what is no wine."""

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
from db.wines.lists.columns import possible_fields
from db.wines.lists.derive import find_facts
from db.wines.lists.listed import ListedWine, OfferCells
from db.wines.lists.packing import Packing
from db.wines.lists.tables import Row, Table
from db.wines.lists.words import load_words

MAX_NOTE_CHARS: Final = 600
MAX_LABEL_CHARS: Final = 40
"""A longer text before a colon is no name of a fact."""
MAX_FACT_CHARS: Final = 200
BLOCK_TAGS: Final = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section".split()
)
HIDDEN_TAGS: Final = frozenset({"script", "style", "head", "template"})
NAMED_FACTS: Final = frozenset(
    "producer vintage country region appellation grapes style colour sweetness abv foods allergens "
    "size".split()
)
"""The fields that an option, an attribute, a metafield or a line of a description may tell."""
ADDRESS_FIELDS: Final = frozenset({"link", "image"})
METAFIELD: Final = pattern(
    r"(?i)\A(.*?)\s*\(product\.metafields\.[^)]*\)\z|\Ametafield:\s*(.*)\z"
)
WINE_WORDS: Final = frozenset(
    "wine wines wein weine vin vins vino vinos vini wijn wijnen vinho".split()
)
MIN_SHARED_VENDORS: Final = 10
"""From so many products on, a vendor of nearly all of them is the shop itself."""
SHARED_VENDOR_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopWine:
    """A wine of a shop, which may be on sale in several vintages.

    `cells` are by field of a wine, without its id. `offers` are by vintage, "" if none is told.
    """

    line: int
    id: str
    cells: Mapping[str, str]
    offers: Mapping[str, Sequence[OfferCells]]
    clues: Sequence[str]
    derived: tuple[str, ...]


def list_vintages(wine: ShopWine) -> Iterator[ListedWine]:
    """Yield the wine, or one for each vintage if there are several; their ids have the year."""
    for vintage, offers in wine.offers.items():
        is_only = len(wine.offers) == 1
        wine_id = wine.id if is_only else f"{wine.id}-{vintage or 'nv'}"
        own = {"id": wine_id, "vintage": vintage or wine.cells.get("vintage", "")}
        cells = {**wine.cells, **own}
        yield ListedWine(
            line=wine.line,
            cells={field: cell for field, cell in cells.items() if cell},
            offers=tuple(offers),
            clues=tuple(clue for clue in wine.clues if clue),
            derived=wine.derived,
        )


def make_offer(
    packing: Packing | None, price: str, stock: str, *, in_stock: bool
) -> OfferCells:
    """Return the offer of a variant; a bottle, if nothing tells what is sold."""
    packing = packing or Packing(OfferKind.BOTTLE)
    return OfferCells(
        kind=packing.kind,
        size_ml=packing.size_ml,
        price=price,
        stock=stock,
        in_stock=in_stock,
    )


class ShopProfile(StrictModel):
    """The columns of a shop program, as `profiles.toml` explains them."""

    signature: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]


@cache
def shop_profiles() -> Mapping[str, ShopProfile]:
    """Return the profiles of shop programs by name."""
    return read_toml(dict[str, ShopProfile], Path(__file__).with_name("profiles.toml"))


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
    return set(profile.signature) <= find_columns(table, profile).keys()


def read_cells(row: Row, columns: Mapping[str, int]) -> dict[str, str]:
    """Return the filled cells of a row by field, without addresses that are not https."""
    filled = {
        field: row.cells[index]
        for field, index in columns.items()
        if index < len(row.cells)
    }
    for field in ADDRESS_FIELDS & filled.keys():
        if not filled[field].startswith("https://"):
            # As in old shops: the wine is for sale without its picture.
            del filled[field]
    return {field: cell for field, cell in filled.items() if cell}


def name_columns(
    table: Table, columns: Mapping[str, int], named: Iterable[int]
) -> tuple[tuple[str, str], ...]:
    """Return what each column is read as; `named` are those whose names are facts."""
    fields = {index: field for field, index in columns.items()}
    fields |= dict.fromkeys(named, "a fact of the wine")
    return tuple(
        (title, fields.get(index, "")) for index, title in enumerate(table.titles)
    )


def find_metafields(table: Table) -> dict[int, str]:
    """Return the names of the facts that metafields hold, by the index of the column."""
    found: dict[int, str] = {}
    for index, title in enumerate(table.titles):
        metafield = METAFIELD.match(title)
        name = (metafield[1] or metafield[2]) if metafield else ""
        if name and fact_field(name.rpartition(".")[2]):
            found[index] = name.rpartition(".")[2]
    return found


def fact_field(name: str) -> str:
    """Return the field of a wine that a name like "Rebsorte" stands for, or ""."""
    fields = (field for field in possible_fields(name) if field in NAMED_FACTS)
    return next(fields, "")


def read_facts(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return cells by field from names and values; the first value of a field counts."""
    facts: dict[str, str] = {}
    for name, value in pairs:
        field = fact_field(name)
        if field and value:
            facts.setdefault(field, value)
    return facts


def split_facts(text: str) -> tuple[dict[str, str], str]:
    """Return the facts in lines like "Rebsorte: Riesling", and the other lines as prose."""
    facts: list[tuple[str, str]] = []
    prose: list[str] = []
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        is_short = len(name) <= MAX_LABEL_CHARS and len(value) <= MAX_FACT_CHARS
        if colon and is_short and fact_field(name):
            facts.append((name, value.strip()))
        else:
            prose.append(line)
    return read_facts(facts), " ".join(" ".join(prose).split())


def make_note(prose: str) -> str:
    """Return the beginning of a description, cut at the end of a sentence."""
    return truncate_at_boundary(prose, MAX_NOTE_CHARS)


def html_to_text(html: str) -> str:
    """Return the text of a description in HTML, a line for each block."""
    if "<" not in html and "&" not in html:
        return html
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _TextParser(HTMLParser):
    """Collects the visible text of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(
        self, tag: str, attrs: Sequence[tuple[str, str | None]]
    ) -> None:
        """Begin a line at a block; hide scripts."""
        self._hidden += tag in HIDDEN_TAGS
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
    """Return what a product is if it is no wine, else "".

    `kinds` are its type and categories, which decide if they name wine or a style; `others` are
    its title and tags.
    """
    for kind in kinds:
        if reason := _find_other_goods(kind):
            return reason
        if _names_wine(kind):
            return ""
    return next(filter(None, map(_find_other_goods, others)), "")


def _names_wine(kind: str) -> bool:
    names_style = any(
        fact.style or fact.place or fact.grape for fact in find_facts(kind)
    )
    return names_style or not WINE_WORDS.isdisjoint(normalize(kind).split())


def _find_other_goods(text: str) -> str:
    """Return what other goods a text names, or ""."""
    padded = f" {normalize(text)} "
    for reason, names in load_words()["not_wine"].items():
        if any(f" {name} " in padded for name in names):
            return reason
    return ""


def find_shop_vendor(vendors: Sequence[str]) -> str:
    """Return the vendor that nearly all products share: the shop, which makes no wine."""
    if len(vendors) < MIN_SHARED_VENDORS:
        return ""
    commonest = max(set(vendors), key=vendors.count)
    return (
        commonest
        if vendors.count(commonest) > SHARED_VENDOR_SHARE * len(vendors)
        else ""
    )

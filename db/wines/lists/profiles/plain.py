"""Read a plain list, a workbook of a restaurant, and the exports of CellarTracker and Vivino.

A column has a field of the wines, or the prices of an offer: "Glas 0,1l", "Flasche". Headings
within the list and the names of sheets say the style or the place of the wines below them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from agent.sommelier.vocabulary import OfferKind, normalize
from agent.sommelier.wine import wine_fields
from db.wines.lists.cells import ABSENT, find_currency, is_number
from db.wines.lists.columns import (
    Rows,
    drop_empty,
    match_columns,
    sample_column,
    select_filled,
)
from db.wines.lists.derive import find_facts
from db.wines.lists.listed import (
    NO_LIST,
    Cells,
    LeftOut,
    ListedWine,
    NamedColumn,
    OfferCells,
    Reading,
)
from db.wines.lists.packing import LITRES, SIZE, Packing, read_packing
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.rows import is_readable, make_id
from db.wines.lists.tables import Row, Table
from db.wines.lists.titles import split_title
from db.wines.lists.words import load_words

CELLAR_PROGRAMS: Final = {"iwine": "CellarTracker", "regional wine style": "Vivino"}
"""The cellar programs by a name of a column that only their exports have."""
MIN_PRICE_SHARE: Final = 0.5
"""The share of a column's cells that must be prices if its name is that of an offer."""
MORE_OF_NAME: Final = "more of the name"
"""Stands for the field of a second column with words but without a title."""
BOTTLE: Final = Packing(OfferKind.BOTTLE)


@dataclass(frozen=True, slots=True)
class Columns:
    """The meaning of the columns of a table."""

    fields: tuple[str, ...]
    """The field of each column, "" for a column without one."""
    offers: Mapping[int, Packing]
    """The offers whose prices a column has, by the index of the column."""
    currency: str = ""
    """The currency that the name of a column with prices states."""


def read_plain(tables: Sequence[Table]) -> Reading:
    """Return the wines of all tables.

    Raises:
        CatalogueFileError: no table has a column with the names of wines.
    """
    read = _ReadTables()
    for table in tables:
        columns = _find_columns(table)
        if "name" in columns.fields:
            read.add(table, columns)
        else:
            read.left_out.append(LeftOut(0, table.name, NO_LIST))
    if not read.columns:
        known = ", ".join(_column_fields())
        reason = f"no column for: name. Columns may be called: {known}"
        raise CatalogueFileError(Problem(reason, line=1))
    return Reading(
        profile=_find_program(tables),
        listed=tuple(_join_sizes(read.listed)),
        left_out=tuple(read.left_out),
        problems=tuple(read.problems),
        columns=tuple(dict.fromkeys(read.columns)),
        headings=tuple(dict.fromkeys(filter(None, read.headings))),
    )


@dataclass(slots=True)
class _ReadTables:
    """The wines of the tables that were read, and what else was found in them."""

    listed: list[ListedWine] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    columns: list[NamedColumn] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)

    def add(self, table: Table, columns: Columns) -> None:
        """Read the rows of a table."""
        self.columns += _name_columns(table, columns)
        self.headings.append(table.name)
        for row, clues in _rows_with_clues(table, columns):
            self.headings += row.headings
            problem = _check_length(row, table)
            if problem:
                self.problems.append(problem)
            else:
                wine = _list_wine(row, columns, clues)
                self.listed.append(wine)


def _find_program(tables: Sequence[Table]) -> str:
    """Return the name of the program that has made a list, or "a list"."""
    for table in tables:
        for title in table.titles:
            program = CELLAR_PROGRAMS.get(normalize(title))
            if program:
                return program
    return "a list"


def _find_columns(table: Table) -> Columns:
    """Return what the columns of a table hold.

    If no column is called "name", the names are in a column that is called like a style. Lists of
    restaurants have such columns: "Weißweine | Jahrgang | Glas | Flasche".
    """
    rows = [row.cells for row in table.rows]
    offers = _find_offer_columns(table, rows)
    titles = list(table.titles)
    for index in offers:
        # A column of prices has no field.
        titles[index] = ""
    possible = [*_column_fields(), "size"]
    matched = match_columns(titles, rows, possible, is_readable)
    if "name" not in matched:
        _match_named_like_style(matched, titles)
    if "name" not in matched and offers:
        _match_untitled(matched, titles, rows)
    currency = ""
    for index, title in enumerate(table.titles):
        has_prices = matched[index] == "price" or index in offers
        if has_prices and not currency:
            currency = find_currency(title) or ""
    return Columns(tuple(matched), offers, currency)


def _match_named_like_style(matched: list[str], titles: Sequence[str]) -> None:
    """Set the column of names in `matched`, if its name is that of a style: "Weißweine"."""
    for index, title in enumerate(titles):
        is_unused = not matched[index]
        if is_unused and find_facts(title):
            matched[index] = "name"
            return


def _match_untitled(
    matched: list[str],
    titles: Sequence[str],
    rows: Rows,
) -> None:
    """Set the columns of names in `matched`, if the table is like "| | 0,1 l | 0,75 l".

    Here the columns with words but without a title have the names.
    """
    for index, title in enumerate(titles):
        if title or matched[index]:
            continue
        all_cells = "".join(sample_column(rows, index))
        has_letters = any(map(str.isalpha, all_cells))
        if has_letters and "name" in matched:
            matched[index] = MORE_OF_NAME
        elif has_letters:
            matched[index] = "name"


def _column_fields() -> list[str]:
    """Return the fields of a wine for which a list may have a column."""
    return [name for name, field in wine_fields().items() if field.has_column]


def _find_offer_columns(table: Table, rows: Rows) -> dict[int, Packing]:
    """Return the offers whose prices a column has: "Glas 0,1l (EUR)", by the column's index."""
    found: dict[int, Packing] = {}
    for index, title in enumerate(table.titles):
        packing = read_packing(title, is_served=True)
        if packing is None or not _names_only_packing(title):
            continue
        cells = sample_column(rows, index)
        offered = [cell for cell in cells if cell.lower() not in ABSENT]
        prices = [cell for cell in offered if is_number(cell)]
        if prices and len(prices) >= MIN_PRICE_SHARE * len(offered):
            found[index] = packing
    return found


def _names_only_packing(title: str) -> bool:
    """Return whether the name of a column has only a size and a kind such as "Glas"."""
    words = load_words()
    ignored = words["ignored"]["words"] | words["ignored"]["price_words"]
    without_units = SIZE.sub(" ", title)
    without_size = LITRES.sub(" ", without_units)
    telling: list[str] = []
    for word in normalize(without_size).split():
        if word not in ignored:
            telling.append(word)
    if not telling:
        return True
    kind = " ".join(telling)
    return any(kind in names for names in words["kinds"].values())


def _name_columns(table: Table, columns: Columns) -> Iterator[NamedColumn]:
    """Yield the name of each column, with what it is read as."""
    for index, title in enumerate(table.titles):
        packing = columns.offers.get(index)
        if packing is not None:
            yield title, f"price: {packing.kind}"
        elif title:
            yield title, columns.fields[index]


def _check_length(row: Row, table: Table) -> Problem | None:
    """Return a problem if a row of a CSV file has more or fewer cells than the header."""
    width = len(table.titles)
    is_short = len(row.cells) < width and not table.name
    if is_short or any(row.cells[width:]):
        return Problem(f"has not as many fields as the header: {width}", row.line)
    return None


def _rows_with_clues(
    table: Table, columns: Columns
) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """Yield the rows, each with the headings that it stands below, the innermost first."""
    nesting = _Nesting([table.name, *_title_of_names(table, columns)])
    previous: tuple[str, ...] = ()
    for row in table.rows:
        if row.headings != previous:
            nesting.enter(row.headings)
            previous = row.headings
        yield row, nesting.current


def _title_of_names(table: Table, columns: Columns) -> list[str]:
    """Return the title of the column of names, if it names a style or a place."""
    name_index = columns.fields.index("name")
    title = table.titles[name_index]
    if find_facts(title):
        return [title]
    return []


class _Nesting:
    """The headings above a row. There is one of each kind, such as a style and a place.

    In some lists the styles are within places, in others the places are within styles.
    """

    def __init__(self, outer: Sequence[str]) -> None:
        self._outer = [text for text in outer if text]
        self._inner: dict[str, str] = {}

    def enter(self, headings: Sequence[str]) -> None:
        """Add headings. Each replaces the heading of its kind, and all headings within that."""
        for heading in headings:
            kind = _kind_of_heading(heading)
            if kind in self._inner:
                kinds = list(self._inner)
                start = kinds.index(kind)
                for replaced in kinds[start:]:
                    del self._inner[replaced]
            self._inner[kind] = heading

    @property
    def current(self) -> tuple[str, ...]:
        """Return the headings above the current row, the innermost first."""
        return (*reversed(self._inner.values()), *reversed(self._outer))


def _kind_of_heading(heading: str) -> str:
    """Return what a heading within the list names: a style, a place, a grape or something else.

    If it names several, the first of these counts.
    """
    kinds: set[str] = set()
    for fact in find_facts(heading):
        if fact.style:
            kinds.add("style")
        if fact.place or fact.country:
            kinds.add("place")
        if fact.grape:
            kinds.add("grape")
    for kind in ("style", "place", "grape"):
        if kind in kinds:
            return kind
    return "other"


def _list_wine(
    row: Row,
    columns: Columns,
    clues: Sequence[str],
) -> ListedWine:
    """Return the wine of a row. `clues` are the headings above it."""
    fields = list(columns.fields)
    for index in columns.offers:
        fields[index] = ""
    cells = select_filled(fields, row.cells)
    size = cells.pop("size", "")
    name_parts = [cells.get("name", ""), cells.pop(MORE_OF_NAME, "")]
    full_name = " - ".join(filter(None, name_parts))
    offers = _read_offers(row, columns, cells, size)
    given_producer = cells.get("producer", "")
    title = split_title(full_name, given_producer)
    own = {
        "name": title.name,
        "vintage": cells.get("vintage") or title.vintage,
    }
    derived: tuple[str, ...] = ()
    if "producer" not in columns.fields:
        own["producer"] = title.producer
        derived = title.derived_fields(given_producer)
    return ListedWine(
        line=row.line,
        cells=cells | drop_empty(own),
        offers=tuple(offers),
        clues=tuple(clues),
        derived=derived,
        tells_allergens="allergens" in columns.fields,
    )


def _read_offers(
    row: Row,
    columns: Columns,
    cells: Cells,
    size: str,
) -> Iterator[OfferCells]:
    """Yield the offers of a wine: those of columns with their prices, or else one.

    The size of a single offer is in `size` or in the name of the wine. Without any, it is a bottle.
    """
    stock = cells.get("in_stock", "")
    currency = cells.get("currency", "") or columns.currency
    packed_prices: list[tuple[Packing, str]] = []
    for index, packing in columns.offers.items():
        # A row may have fewer cells than the header.
        if index < len(row.cells) and row.cells[index].lower() not in ABSENT:
            packed_prices.append((packing, row.cells[index]))
    price = cells.get("price", "")
    if price or not packed_prices:
        packing = read_packing(size) or read_packing(cells.get("name", "")) or BOTTLE
        packed_prices.append((packing, price))
    for packing, price in packed_prices:
        yield OfferCells(
            kind=packing.kind,
            size_ml=packing.size_ml,
            price=_known_price(price),
            currency=currency,
            stock=stock,
        )


def _known_price(cell: str) -> str:
    """Return the cell of a price, or "" if it says that the price is given on request."""
    if normalize(cell) in load_words()["prices"]["on_request"]:
        return ""
    return cell


def _join_sizes(listed: Sequence[ListedWine]) -> list[ListedWine]:
    """Return the wines. Rows of one wine that offer it in different sizes are joined."""
    joined: dict[tuple[str, str], ListedWine] = {}
    for wine in listed:
        wine_id = wine.cells.get("id") or make_id(wine.cells)
        vintage = wine.cells.get("vintage", "")
        key = (wine_id, vintage)
        first = joined.get(key)
        if first is None:
            joined[key] = wine
        elif _sold_sizes(first).isdisjoint(_sold_sizes(wine)):
            offers = (*first.offers, *wine.offers)
            joined[key] = replace(first, offers=offers)
        else:
            # The wine is in the list twice. Both stay, so that the check of the wines reports it.
            key_of_copy = (f"{wine_id} at line {wine.line}", vintage)
            joined[key_of_copy] = wine
    return list(joined.values())


def _sold_sizes(wine: ListedWine) -> set[tuple[str, int | None]]:
    return {(offer.kind, offer.size_ml) for offer in wine.offers}

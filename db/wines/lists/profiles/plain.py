"""Read a plain list, a workbook of a restaurant, and the exports of CellarTracker and Vivino.

A column may be of a field of a wine, or of what is sold: "Glas 0,1l", "Flasche". Headings within
the list and the names of sheets tell the style or the place of the wines below them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.sommelier.vocabulary import normalize
from agent.sommelier.wine import wine_fields
from db.wines.lists.cells import ABSENT, find_currency, is_number
from db.wines.lists.columns import (
    drop_empty,
    filled_cells,
    match_columns,
    sample_column,
)
from db.wines.lists.derive import find_facts
from db.wines.lists.listed import NO_LIST, LeftOut, ListedWine, OfferCells, Reading
from db.wines.lists.packing import LITRES, SIZE, Packing, read_packing
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.rows import is_readable, make_id
from db.wines.lists.tables import Row, Table
from db.wines.lists.titles import split_title
from db.wines.lists.words import load_words

CELLAR_PROGRAMS: Final = {"iwine": "CellarTracker", "regional wine style": "Vivino"}
"""Column names by which the exports of cellar programs are known."""
MIN_PRICE_SHARE: Final = 0.5
MORE_OF_NAME: Final = "more of the name"
"""What a further column of words without a title holds."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Says what the columns of a table hold: fields of a wine, or the prices of what is sold."""

    fields: tuple[str, ...]
    offers: Mapping[int, Packing]
    currency: str = ""


def read_plain(tables: Sequence[Table]) -> Reading:
    """Return the wines of all tables.

    Raises:
        CatalogueFileError: no table has a column with the names of wines.
    """
    listed: list[ListedWine] = []
    problems: list[Problem] = []
    named: list[tuple[str, str]] = []
    headings: list[str] = []
    left_out: list[LeftOut] = []
    for table in tables:
        columns = _match(table)
        if "name" not in columns.fields:
            left_out.append(LeftOut(0, table.name, NO_LIST))
            continue
        named += _name_columns(table, columns)
        headings.append(table.name)
        for row, clues in _rows_with_clues(table, columns):
            headings += row.headings
            problem = _check_length(row, table)
            if problem:
                problems.append(problem)
            else:
                listed.append(_list_wine(row, columns, clues))
    if not named:
        known = ", ".join(_column_fields())
        reason = f"no column for: name. Columns may be called: {known}"
        raise CatalogueFileError(Problem(reason, line=1))
    return Reading(
        profile=_find_program(tables),
        listed=tuple(_join_sizes(listed)),
        left_out=tuple(left_out),
        problems=tuple(problems),
        columns=tuple(dict.fromkeys(named)),
        headings=tuple(dict.fromkeys(filter(None, headings))),
    )


def _find_program(tables: Sequence[Table]) -> str:
    """Return the name of the program that made a list, as its column names tell."""
    for table in tables:
        for title in table.titles:
            program = CELLAR_PROGRAMS.get(normalize(title))
            if program:
                return program
    return "a list"


def _match(table: Table) -> Columns:
    """Return what the columns hold. Without a name column, one called like a style has the names.

    Restaurants call it so: "Weißweine | Jahrgang | Glas | Flasche".
    """
    rows = [row.cells for row in table.rows]
    offers = _find_offer_columns(table, rows)
    titles = list(table.titles)
    for index in offers:
        titles[index] = ""
    matched = match_columns(titles, rows, [*_column_fields(), "size"], is_readable)
    if "name" not in matched:
        for index, title in enumerate(titles):
            if not matched[index] and find_facts(title):
                matched[index] = "name"
                break
    if "name" not in matched and offers:
        _match_untitled(matched, titles, rows)
    currency = ""
    for index, title in enumerate(table.titles):
        has_prices = matched[index] == "price" or index in offers
        if has_prices and not currency:
            currency = find_currency(title) or ""
    return Columns(tuple(matched), offers, currency)


def _match_untitled(
    matched: list[str], titles: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Take the columns of words without a title for the names, as in "| | 0,1 l | 0,75 l"."""
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
    """Return the fields of a wine that a column may tell."""
    return [name for name, field in wine_fields().items() if field.has_column]


def _find_offer_columns(
    table: Table, rows: Sequence[Sequence[str]]
) -> dict[int, Packing]:
    """Return what is sold at the prices of each column that names it: "Glas 0,1l (EUR)"."""
    found: dict[int, Packing] = {}
    for index, title in enumerate(table.titles):
        packing = read_packing(title, is_served=True)
        if packing is None or not _names_only_packing(title):
            continue
        cells: list[str] = []
        for cell in sample_column(rows, index):
            if cell.lower() not in ABSENT:
                cells.append(cell)
        price_count = sum(map(is_number, cells))
        if price_count and price_count >= MIN_PRICE_SHARE * len(cells):
            found[index] = packing
    return found


def _names_only_packing(title: str) -> bool:
    """Return whether a column name consists of a size and a kind such as "Glas" or "Flasche"."""
    ignored = load_words()["ignored"]
    without_size = LITRES.sub(" ", SIZE.sub(" ", title))
    telling: list[str] = []
    for word in normalize(without_size).split():
        if word not in ignored["words"] and word not in ignored["price_words"]:
            telling.append(word)
    if not telling:
        return True
    kind = " ".join(telling)
    return any(kind in names for names in load_words()["kinds"].values())


def _name_columns(table: Table, columns: Columns) -> Iterator[tuple[str, str]]:
    for index, title in enumerate(table.titles):
        if index in columns.offers:
            yield title, f"price: {columns.offers[index].kind}"
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
    """Yield the rows with the headings that hold for them, the innermost first."""
    nest = _Nest([table.name, *_name_title(table, columns)])
    previous: tuple[str, ...] = ()
    for row in table.rows:
        if row.headings != previous:
            nest.enter(row.headings)
            previous = row.headings
        yield row, nest.current


def _name_title(table: Table, columns: Columns) -> list[str]:
    """Return the title of the column of names, if it is called like a style or a place."""
    title = table.titles[columns.fields.index("name")]
    if find_facts(title):
        return [title]
    return []


class _Nest:
    """The headings that hold at a row: one of a style and one of a place, whichever is outer."""

    def __init__(self, outer: Sequence[str]) -> None:
        self._outer = [text for text in outer if text]
        self._inner: dict[str, str] = {}

    def enter(self, headings: Sequence[str]) -> None:
        """Let headings take the place of those of the same kind, and of those within these."""
        for heading in headings:
            kind = _kind_of_heading(heading)
            if kind in self._inner:
                kinds = list(self._inner)
                for inner in kinds[kinds.index(kind) :]:
                    del self._inner[inner]
            self._inner[kind] = heading

    @property
    def current(self) -> tuple[str, ...]:
        """Return the headings, the innermost first."""
        return (*reversed(self._inner.values()), *reversed(self._outer))


def _kind_of_heading(heading: str) -> str:
    facts = find_facts(heading)
    if any(fact.style for fact in facts):
        return "style"
    if any(fact.place or fact.country for fact in facts):
        return "place"
    if any(fact.grape for fact in facts):
        return "grape"
    return "other"


def _list_wine(row: Row, columns: Columns, clues: Sequence[str]) -> ListedWine:
    """Return the wine of a row."""
    fields = list(columns.fields)
    for index in columns.offers:
        fields[index] = ""
    cells = filled_cells(fields, row.cells)
    size = cells.pop("size", "")
    offers = list(_read_offers(row, columns, cells, size))
    full_name = cells.get("name", "")
    more = cells.pop(MORE_OF_NAME, "")
    if full_name and more:
        full_name = f"{full_name} - {more}"
    given_producer = cells.get("producer", "")
    title = split_title(full_name or more, given_producer)
    own = {"name": title.name, "vintage": cells.get("vintage") or title.vintage}
    derived: tuple[str, ...] = ()
    if "producer" not in columns.fields:
        own["producer"] = title.producer
        derived = title.derived(given_producer)
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
    cells: Mapping[str, str],
    size: str,
) -> Iterator[OfferCells]:
    """Yield what is sold: by the columns that name it, or else one bottle of the given size."""
    stock = cells.get("in_stock", "")
    currency = cells.get("currency", "") or columns.currency
    has_offer = False
    for index, packing in columns.offers.items():
        if index >= len(row.cells) or row.cells[index].lower() in ABSENT:
            continue
        has_offer = True
        yield OfferCells(
            kind=packing.kind,
            size_ml=packing.size_ml,
            price=_known_price(row.cells[index]),
            currency=currency,
            stock=stock,
        )
    price = cells.get("price", "")
    if has_offer and not price:
        return
    offer = OfferCells(price=_known_price(price), currency=currency, stock=stock)
    sold = read_packing(size) or read_packing(cells.get("name", ""))
    if sold:
        offer = replace(offer, kind=sold.kind, size_ml=sold.size_ml)
    yield offer


def _known_price(cell: str) -> str:
    """Return the cell of a price; "" for an unknown one, which is told to those who ask."""
    if normalize(cell) in load_words()["prices"]["on_request"]:
        return ""
    return cell


def _join_sizes(listed: Sequence[ListedWine]) -> list[ListedWine]:
    """Return the wines, with the rows of one joined that differ in what is sold."""
    joined: dict[tuple[str, str], ListedWine] = {}
    for wine in listed:
        wine_id = wine.cells.get("id") or make_id(wine.cells)
        vintage = wine.cells.get("vintage", "")
        first = joined.get((wine_id, vintage))
        if first is None:
            joined[wine_id, vintage] = wine
        elif _sold_sizes(first).isdisjoint(_sold_sizes(wine)):
            offers = (*first.offers, *wine.offers)
            joined[wine_id, vintage] = replace(first, offers=offers)
        else:  # the same wine twice, which the check of the wines says
            joined[f"{wine_id} at line {wine.line}", vintage] = wine
    return list(joined.values())


def _sold_sizes(wine: ListedWine) -> set[tuple[str, int | None]]:
    return {(offer.kind, offer.size_ml) for offer in wine.offers}

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
from db.wines.lists.columns import filled_cells, match_columns, sample_column
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
        headings += [
            table.name,
            *(heading for row in table.rows for heading in row.headings),
        ]
        for row, clues in _rows_with_clues(table, columns):
            if problem := _check_length(row, table):
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
    titles = {normalize(title) for table in tables for title in table.titles}
    programs = (
        program for title, program in CELLAR_PROGRAMS.items() if title in titles
    )
    return next(programs, "a list")


def _match(table: Table) -> Columns:
    """Return what the columns hold. Without a name column, one called like a style has the names.

    Restaurants call it so: "Weißweine | Jahrgang | Glas | Flasche".
    """
    rows = [row.cells for row in table.rows]
    offers = _find_offer_columns(table, rows)
    titles = [
        "" if index in offers else title for index, title in enumerate(table.titles)
    ]
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
        if matched[index] == "price" or index in offers:
            currency = currency or (find_currency(title) or "")
    return Columns(tuple(matched), offers, currency)


def _match_untitled(
    matched: list[str], titles: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Take the columns of words without a title for the names, as in "| | 0,1 l | 0,75 l"."""
    for index, title in enumerate(titles):
        is_free = not title and not matched[index]
        if is_free and any(map(_has_letters, sample_column(rows, index))):
            matched[index] = MORE_OF_NAME if "name" in matched else "name"


def _has_letters(cell: str) -> bool:
    return any(map(str.isalpha, cell))


def _column_fields() -> list[str]:
    """Return the fields of a wine that a column may tell."""
    return [name for name, field in wine_fields().items() if field.has_column]


def _find_offer_columns(
    table: Table, rows: Sequence[Sequence[str]]
) -> dict[int, Packing]:
    """Return what is sold at the prices of each column that names it: "Glas 0,1l (EUR)"."""
    ignored = load_words()["ignored"]["words"] | load_words()["ignored"]["price_words"]
    names = {name for kind in load_words()["kinds"].values() for name in kind}
    found: dict[int, Packing] = {}
    for index, title in enumerate(table.titles):
        bare = normalize(LITRES.sub(" ", SIZE.sub(" ", title)))
        rest = " ".join(word for word in bare.split() if word not in ignored)
        packing = read_packing(title, is_served=True)
        cells = [
            cell for cell in sample_column(rows, index) if cell.lower() not in ABSENT
        ]
        prices = sum(map(is_number, cells))
        if (
            packing
            and rest in {"", *names}
            and prices
            and prices >= MIN_PRICE_SHARE * len(cells)
        ):
            found[index] = packing
    return found


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
    return [title] if find_facts(title) else []


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
    return "grape" if any(fact.grape for fact in facts) else "other"


def _list_wine(row: Row, columns: Columns, clues: Sequence[str]) -> ListedWine:
    """Return the wine of a row."""
    fields = [
        "" if index in columns.offers else field
        for index, field in enumerate(columns.fields)
    ]
    cells = filled_cells(fields, row.cells)
    size = cells.pop("size", "")
    offers = list(_read_offers(row, columns, cells, size))
    given_producer = cells.get("producer", "")
    has_producer_column = "producer" in columns.fields
    more = cells.pop(MORE_OF_NAME, "")
    full_name = " - ".join(filter(None, (cells.get("name", ""), more)))
    title = split_title(full_name, given_producer)
    own = {"name": title.name, "vintage": cells.get("vintage") or title.vintage}
    if not has_producer_column:
        own["producer"] = title.producer
    cells |= {field: cell for field, cell in own.items() if cell}
    return ListedWine(
        line=row.line,
        cells=cells,
        offers=tuple(offers),
        clues=tuple(clues),
        derived=() if has_producer_column else title.derived(given_producer),
        tells_allergens="allergens" in columns.fields,
    )


def _read_offers(
    row: Row, columns: Columns, cells: Mapping[str, str], size: str
) -> Iterator[OfferCells]:
    """Yield what is sold: by the columns that name it, or else one bottle of the given size."""
    stock = cells.get("in_stock", "")
    currency = cells.get("currency", "") or columns.currency
    has_offer = False
    for index, packing in columns.offers.items():
        price = row.cells[index] if index < len(row.cells) else ""
        if price.lower() not in ABSENT:
            price = "" if _is_on_request(price) else price
            has_offer = True
            yield OfferCells(
                kind=packing.kind,
                size_ml=packing.size_ml,
                price=price,
                currency=currency,
                stock=stock,
            )
    price = cells.get("price", "")
    if has_offer and not price:
        return
    if _is_on_request(price):
        price = ""
    offer = OfferCells(price=price, currency=currency, stock=stock)
    if sold := read_packing(size) or read_packing(cells.get("name", "")):
        offer = replace(offer, kind=sold.kind, size_ml=sold.size_ml)
    yield offer


def _is_on_request(price: str) -> bool:
    """Return whether a cell says that a price is told to those who ask; it is unknown then."""
    return normalize(price) in load_words()["prices"]["on_request"]


def _join_sizes(listed: Sequence[ListedWine]) -> list[ListedWine]:
    """Return the wines, with the rows of one joined that differ in what is sold."""
    joined: dict[tuple[str, str], ListedWine] = {}
    for wine in listed:
        key = (
            wine.cells.get("id") or make_id(wine.cells),
            wine.cells.get("vintage", ""),
        )
        first = joined.get(key)
        sizes = (
            {(offer.kind, offer.size_ml) for offer in first.offers} if first else set()
        )
        is_new = all((offer.kind, offer.size_ml) not in sizes for offer in wine.offers)
        if first is None:
            joined[key] = wine
        elif is_new:
            joined[key] = replace(first, offers=(*first.offers, *wine.offers))
        else:
            joined[(f"{key[0]} at line {wine.line}", key[1])] = wine
    return list(joined.values())

"""Read a file into tables: find its encoding, its delimiter, its sheets and their headers."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.files import Unreadable
from agent.markdown import strip_invisible
from agent.sommelier.vocabulary import normalize
from agent.text import sanitize
from db.tables import decode, limit_rows, read_sheets
from db.wines.lists.columns import count_known_titles, count_offers
from db.wines.lists.problems import CUT_OFF, CatalogueFileError, Problem

DELIMITERS: Final = ",;\t|"
HEADER_SEARCH_ROWS: Final = 20
"""The number of first rows among which the header is looked for.

Above the header there may be a title, a date, an address, or the `sep=;` of a spreadsheet.
"""
HEADER_SEARCH_CHARS: Final = 50_000
MAX_CELL_CHARS: Final = 20_000
"""The rest of a longer cell is not read. Descriptions in HTML have some thousands of characters."""
MIN_SECTION_COLUMNS: Final = 3
"""In a table with fewer columns, a row with a single filled cell is not a heading."""
WORKBOOK_SIGNATURE: Final = b"PK\x03\x04"
"""The first bytes of a workbook, which is a ZIP file."""
PAGES_REASON: Final = (
    "which holds the look of a page and no table. Export the list as CSV or as a workbook from the "
    "program that made it, or set VISION_MODEL, which reads it"
)
REFUSED_SIGNATURES: Final = {
    b"%PDF": f"is a PDF, {PAGES_REASON}",
    b"\xff\xd8\xff": f"is a picture, {PAGES_REASON}",
    b"\x89PNG": f"is a picture, {PAGES_REASON}",
    b"RIFF": f"is a picture, {PAGES_REASON}",
    b"\xd0\xcf\x11\xe0": "is a workbook of the old kind (.xls); save it as .xlsx or CSV",
}
OLD_SHEETS: Final = frozenset(
    "alt old archiv archive ancien viejo vecchio vorlage template".split()
)
"""Words in the name of a sheet that does not hold the current list."""
MAX_HEADING_CHARS: Final = 80
NumberedRows = Sequence[tuple[int, Sequence[str]]]
"""The rows of a file, each as its line number and its cells."""


@dataclass(frozen=True, slots=True)
class Header:
    """The row with the names of the columns, and how many of these are known."""

    index: int = 0
    cells: Sequence[str] = ()
    known: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    `headings` are the headings that stand directly below each other, last above the line.
    """

    line: int
    cells: tuple[str, ...]
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The names of columns, and the rows below them. `name` is the sheet's, or "" in a CSV file."""

    titles: tuple[str, ...]
    rows: tuple[Row, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReadTables:
    """The tables of a file.

    `read_as` is the encoding of the file, or "a workbook". `other_sheets` are the names of sheets
    without a table.
    """

    tables: Sequence[Table]
    read_as: str
    other_sheets: Sequence[str] = ()


def read_tables(data: bytes) -> ReadTables:
    """Return the tables of a CSV file or workbook.

    A table begins at the row with the most known names of columns. A sheet without such a row is
    left out.

    Raises:
        CatalogueFileError: the file cannot be read.
    """
    for signature, reason in REFUSED_SIGNATURES.items():
        if data.startswith(signature):
            raise CatalogueFileError(Problem(reason))
    try:
        if data.startswith(WORKBOOK_SIGNATURE):
            return _read_workbook(data)
        text, encoding = decode(data)
        delimiter = _find_delimiter(text)
        rows = _parse_csv(text, delimiter)
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    table = _make_table("", rows)
    return ReadTables([table], encoding)


def _read_workbook(data: bytes) -> ReadTables:
    """Return the tables of the sheets that hold the current list.

    Such a sheet has at least half as many known columns as the sheet with the most, or at least two
    columns that name an offer, such as "Bottle" and "Glass".
    """
    sheets: dict[str, NumberedRows] = {}
    headers: dict[str, Header] = {}
    for name, rows in read_sheets(data).items():
        numbered_rows: NumberedRows = list(enumerate(rows, start=1))
        sheets[name] = numbered_rows
        headers[name] = _find_header(numbered_rows)
    known_counts = [header.known for header in headers.values()]
    most_known = max(known_counts, default=0)
    tables: list[Table] = []
    other_sheets: list[str] = []
    for name, numbered_rows in sheets.items():
        header = headers[name]
        is_current = OLD_SHEETS.isdisjoint(normalize(name).split())
        is_like_best = header.known > 1 and 2 * header.known >= most_known
        has_offers = count_offers(header.cells) > 1
        if is_current and (is_like_best or has_offers):
            table = _make_table(name, numbered_rows)
            tables.append(table)
        elif any(any(cells) for _, cells in numbered_rows):
            other_sheets.append(name)
    return ReadTables(tables, "a workbook", other_sheets)


def _find_delimiter(text: str) -> str:
    """Return the delimiter for which the header has the most known columns."""
    start = text[:HEADER_SEARCH_CHARS]

    def count_known(delimiter: str) -> int:
        rows = csv.reader(io.StringIO(start), delimiter=delimiter)
        header = _find_header(enumerate(rows, start=1))
        return header.known

    return max(DELIMITERS, key=count_known)


def _parse_csv(text: str, delimiter: str) -> NumberedRows:
    """Return the rows of a CSV file. The number of a row is that of its last line."""
    # The reader of CSV must see the line ends as they are, because a cell may contain some.
    file = io.StringIO(text, newline="")
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    rows: list[tuple[int, Sequence[str]]] = []
    try:
        for row in limit_rows(reader):
            rows.append((reader.line_num, row))
    except csv.Error as error:
        problem = Problem(f"is not CSV: {error}", reader.line_num)
        # The file ends within quotation marks.
        if "unexpected end of data" in str(error):
            problem = Problem(CUT_OFF)
        raise CatalogueFileError(problem) from None
    return rows


def _find_header(rows: Iterable[tuple[int, Sequence[str]]]) -> Header:
    """Return the first row with the most known column names, among the first rows."""
    header: Header | None = None
    first_rows = islice(rows, HEADER_SEARCH_ROWS)
    for index, (_, cells) in enumerate(first_rows):
        known = count_known_titles(cells)
        if header is None or known > header.known:
            header = Header(index, cells, known)
    if header is None:
        return Header()
    return header


def _make_table(name: str, rows: NumberedRows) -> Table:
    """Return the table that begins at the header, without blank rows and repeated headers."""
    if not rows:
        return Table((), (), name)
    header = _find_header(rows)
    titles = _clean(header.cells)
    headings = _find_heading_above(rows, header.index)
    is_after_heading = bool(headings)
    table_rows: list[Row] = []
    rows_below = rows[header.index + 1 :]
    for line, cells in rows_below:
        cleaned = _clean(cells)
        if not any(cleaned) or cleaned == titles:
            continue
        heading = _read_heading(cleaned, titles)
        if not heading:
            table_rows.append(Row(line, cleaned, headings))
        elif is_after_heading:
            headings = (*headings, heading)
        else:
            headings = (heading,)
        is_after_heading = bool(heading)
    return Table(titles, tuple(table_rows), name)


def _find_heading_above(rows: NumberedRows, header: int) -> tuple[str, ...]:
    """Return the heading directly above the names of columns, or () if there is none."""
    if header == 0:
        return ()
    _, cells = rows[header - 1]
    filled = tuple(filter(None, _clean(cells)))
    if len(filled) != 1:
        return ()
    (heading,) = filled
    if len(heading) > MAX_HEADING_CHARS:
        return ()
    return (heading,)


def _read_heading(cells: Sequence[str], titles: Sequence[str]) -> str:
    """Return the heading that a row holds, or "" for a row of the list.

    A heading stands alone in its row, or together with the names of the columns, which some lists
    repeat for each section.
    """
    filled = [cell for cell in cells if cell]
    other_than_titles = [cell for cell in filled if cell not in titles]
    if len(other_than_titles) != 1:
        return ""
    (heading,) = other_than_titles
    if len(filled) == 1:
        column_count = sum(map(bool, titles))
    else:
        # All other cells repeat the names of the columns.
        column_count = len(filled)
    if column_count < MIN_SECTION_COLUMNS or len(heading) > MAX_HEADING_CHARS:
        return ""
    if not any(map(str.isalpha, heading)):
        return ""
    return heading


def _clean(cells: Iterable[str]) -> tuple[str, ...]:
    """Return the cells, each on one line, without invisible characters, and cut if it is long."""
    cleaned: list[str] = []
    for cell in cells:
        shortened = sanitize(cell, MAX_CELL_CHARS)
        visible = strip_invisible(shortened)
        # A byte order mark stands before the first cell of many files.
        words = visible.strip("\ufeff \t").split()
        cleaned.append(" ".join(words))
    return tuple(cleaned)

"""Read any file into tables: find the encoding, the delimiter, the sheets and the headers."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.files import Unreadable
from agent.markdown import strip_invisible
from agent.sommelier.vocabulary import normalize
from agent.text import cut
from db.tables import decode, read_sheets, take_rows
from db.wines.lists.columns import count_known_titles, count_offers
from db.wines.lists.problems import CUT_OFF, CatalogueFileError, Problem

DELIMITERS: Final = ",;\t|"
HEADER_SEARCH_ROWS: Final = 20
"""The header may follow a title, a date, an address, or the `sep=;` of a spreadsheet."""
HEADER_SEARCH_CHARS: Final = 50_000
MAX_CELL_CHARS: Final = 20_000
"""A description of a product in HTML may have some thousands of characters."""
MIN_SECTION_COLUMNS: Final = 3
"""In a table with fewer columns, a row with a single cell is no heading."""
WORKBOOK_SIGNATURE: Final = b"PK\x03\x04"
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
"""Words in the names of sheets that do not hold the current list."""
MAX_HEADING_CHARS: Final = 80
NumberedRows = Sequence[tuple[int, Sequence[str]]]
"""Line numbers and cells."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table; `headings` are the last ones above it, one below the other."""

    line: int
    cells: tuple[str, ...]
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A header and its rows; `name` is that of the sheet, blank in a CSV file."""

    titles: tuple[str, ...]
    rows: tuple[Row, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReadTables:
    """The tables of a file, how it was read, and the names of sheets without a table."""

    tables: Sequence[Table]
    read_as: str
    other_sheets: Sequence[str] = ()


def read_tables(data: bytes) -> ReadTables:
    """Return the tables of a CSV file or workbook.

    A table begins at the row with the most known column names. A sheet without any is left out.

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
        rows = _parse_csv(text, _find_delimiter(text))
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    return ReadTables([_make_table("", rows)], encoding)


def _read_workbook(data: bytes) -> ReadTables:
    """Return the tables of the current sheets.

    They have as many known columns as half the best, or two for the prices of what is sold.
    """
    sheets = {
        name: list(enumerate(rows, start=1)) for name, rows in read_sheets(data).items()
    }
    headers = {name: _find_header(rows) for name, rows in sheets.items()}
    best = max((count for count, _ in headers.values()), default=0)
    tables: list[Table] = []
    other_sheets: list[str] = []
    for name, rows in sheets.items():
        count, header = headers[name]
        is_current = OLD_SHEETS.isdisjoint(normalize(name).split())
        is_like_best = count > 1 and 2 * count >= best
        if is_current and (is_like_best or _has_offers(rows, header)):
            tables.append(_make_table(name, rows))
        elif any(any(cells) for _, cells in rows):
            other_sheets.append(name)
    return ReadTables(tables, "a workbook", other_sheets)


def _has_offers(rows: NumberedRows, header: int) -> bool:
    """Return whether a header names at least two things that are sold."""
    return bool(rows) and count_offers(rows[header][1]) > 1


def _find_delimiter(text: str) -> str:
    """Return the delimiter for which the header has the most known columns."""
    start = text[:HEADER_SEARCH_CHARS]

    def count(delimiter: str) -> int:
        reader = csv.reader(io.StringIO(start), delimiter=delimiter)
        return _find_header(enumerate(reader, start=1))[0]

    return max(DELIMITERS, key=count)


def _parse_csv(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file with the numbers of their last lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in take_rows(reader)]
    except csv.Error as error:
        if "unexpected end of data" in str(error):  # within quotation marks
            raise CatalogueFileError(Problem(CUT_OFF)) from None
        raise CatalogueFileError(
            Problem(f"is not CSV: {error}", reader.line_num)
        ) from None


def _find_header(rows: Iterable[tuple[int, Sequence[str]]]) -> tuple[int, int]:
    """Return the number of known columns in the likeliest header, and its index."""
    counts = [
        count_known_titles(cells) for _, cells in islice(rows, HEADER_SEARCH_ROWS)
    ] or [0]
    return max(counts), counts.index(max(counts))


def _make_table(name: str, rows: NumberedRows) -> Table:
    """Return the table that begins at the header, without blank rows and repeated headers."""
    if not rows:
        return Table((), (), name)
    _, header = _find_header(rows)
    titles = tuple(_clean(title) for title in rows[header][1])
    headings = _find_heading_above(rows, header)
    is_after_heading = bool(headings)
    table_rows: list[Row] = []
    for line, cells in rows[header + 1 :]:
        cleaned = tuple(_clean(cell) for cell in cells)
        if not any(cleaned) or cleaned == titles:
            continue
        heading = _read_heading(cleaned, titles)
        if heading:
            headings = (*headings, heading) if is_after_heading else (heading,)
        else:
            table_rows.append(Row(line, cleaned, headings))
        is_after_heading = bool(heading)
    return Table(titles, tuple(table_rows), name)


def _find_heading_above(rows: NumberedRows, header: int) -> tuple[str, ...]:
    """Return the heading that stands right above the column names, or none."""
    if header == 0:
        return ()
    filled = [cell for cell in map(_clean, rows[header - 1][1]) if cell]
    is_heading = len(filled) == 1 and len(filled[0]) <= MAX_HEADING_CHARS
    return (filled[0],) if is_heading else ()


def _read_heading(cells: Sequence[str], titles: Sequence[str]) -> str:
    """Return the heading that a row consists of, or "" for a row of the list.

    A heading stands alone, or before the column names, which it repeats.
    """
    filled = [cell for cell in cells if cell]
    own = [cell for cell in filled if cell not in titles]
    is_alone = len(filled) == 1 and sum(map(bool, titles)) >= MIN_SECTION_COLUMNS
    repeats_titles = len(own) == 1 and len(filled) >= MIN_SECTION_COLUMNS
    if not (is_alone or repeats_titles) or not own:
        return ""
    is_text = any(map(str.isalpha, own[0])) and len(own[0]) <= MAX_HEADING_CHARS
    return own[0] if is_text else ""


def _clean(cell: str) -> str:
    """Return the text of a cell, cut and on one line, without invisible characters."""
    visible = strip_invisible(cut(cell, MAX_CELL_CHARS)).strip("\ufeff \t")
    return " ".join(visible.split())

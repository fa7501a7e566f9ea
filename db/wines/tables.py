"""Read the tables of wine lists: CSV files and workbooks, with lines above the header."""

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.markdown import visible
from db.decoding import Undecodable, decode

SHOWN_PROBLEMS: Final = 20
DELIMITERS: Final = ",;\t|"
LINES_ABOVE_HEADER: Final = 10
"""A title, a date, or the `sep=;` of a spreadsheet may stand above the header."""
PEEK: Final = 50_000
"""Characters in which the header is looked for."""
WORKBOOK: Final = b"PK\x03\x04"

CountKnown = Callable[[Sequence[str]], int]
"""Counts the names of columns that are known."""
Row = tuple[int, list[str]]
"""The line in which a row begins, and its cells."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file; line 0 is the file as a whole."""

    line: int
    column: str
    reason: str


class CatalogueFileError(Exception):
    """Nothing of a file was imported; `problems` are the reasons, row by row."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.reason for problem in problems[:SHOWN_PROBLEMS]))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Table:
    """The names of a table's columns, its rows that are not blank, and what it was read as."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    read_as: str


def read_table(data: bytes, count_known: CountKnown) -> Table:
    """Return the table of a file; most columns are known by its delimiter, or of its sheet.

    Raises:
        CatalogueFileError: it is no CSV and no workbook, or a damaged one.
    """
    if data.startswith(WORKBOOK):
        read_as, sheets = "a workbook", _sheets(data)
        known = [_find_header((cells for _, cells in sheet), count_known)[0] for sheet in sheets]
        rows = sheets[known.index(max(known))]
    else:
        text, read_as = _decode(data)
        peek = text[:PEEK]
        readers = {sign: csv.reader(io.StringIO(peek), delimiter=sign) for sign in DELIMITERS}
        counts = {sign: _find_header(readers[sign], count_known)[0] for sign in readers}
        rows = list(_csv_rows(text, max(counts, key=lambda sign: counts[sign])))
    _, above = _find_header((cells for _, cells in rows), count_known)
    names = tuple(name.strip("\ufeff \t") for name in rows[above][1]) if rows else ()
    tidy = (
        (line, [" ".join(visible(cell).split()) for cell in cells])
        for line, cells in rows[above + 1 :]
        if any(cell.strip() for cell in cells)
    )
    return Table(names, tuple(tidy), read_as)


def _find_header(rows: Iterable[Sequence[str]], count_known: CountKnown) -> tuple[int, int]:
    """Return the number of known columns in the header, and the number of rows above it."""
    counts = [count_known(row) for row in islice(rows, LINES_ABOVE_HEADER)] or [0]
    return max(counts), counts.index(max(counts))


def _decode(data: bytes) -> tuple[str, str]:
    try:
        return decode(data)
    except Undecodable as error:
        raise CatalogueFileError(Problem(0, "", str(error))) from None


def _csv_rows(text: str, delimiter: str) -> Iterator[Row]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 0
    try:
        for row in rows:
            yield line + 1, row
            line = rows.line_num
    except csv.Error as error:
        raise CatalogueFileError(Problem(line + 1, "", f"is not CSV: {error}")) from None


def _sheets(data: bytes) -> list[list[Row]]:
    """Return the rows of every sheet of a workbook."""
    from openpyxl import load_workbook  # noqa: PLC0415 - heavy

    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = [sheet.iter_rows(values_only=True) for sheet in book.worksheets]
        cells = [[[*map(_cell_text, row)] for row in rows] for rows in sheets] or [[]]
        return [list(enumerate(rows, 1)) for rows in cells]
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        reason = f"is damaged, or no workbook ({type(error).__name__})"
        raise CatalogueFileError(Problem(0, "", reason)) from None


def _cell_text(cell: object) -> str:
    """Return the text of a cell of a workbook; a number as people write it."""
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() else f"{cell:.2f}"
    return "" if cell is None else str(cell)

"""Read the tables of wine lists: CSV files and workbooks, with lines above the header."""

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from agent.markdown import visible

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

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        place += [self.column] if self.column else []
        return f"{', '.join(place)}: {self.reason}" if place else self.reason


class CatalogueFileError(Exception):
    """Nothing of a file was imported; `problems` are the reasons, row by row."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Table:
    """The names of a table's columns, and its rows that are not blank."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]


def csv_table(text: str, known: CountKnown) -> Table:
    """Return the table of a CSV text; the delimiter is the one by which most columns are known.

    Raises:
        CatalogueFileError: the text is not CSV.
    """
    starts = {
        delimiter: _count_header(csv.reader(io.StringIO(text[:PEEK]), delimiter=delimiter), known)
        for delimiter in DELIMITERS
    }
    delimiter = max(starts, key=lambda delimiter: starts[delimiter][0])
    return _table(_csv_rows(text, delimiter), starts[delimiter][1])


def _csv_rows(text: str, delimiter: str) -> Iterator[Row]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 0
    try:
        for row in rows:
            yield line + 1, row
            line = rows.line_num
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None


def workbook_table(data: bytes, known: CountKnown) -> Table:
    """Return the table of that sheet of a workbook by which most columns are known.

    Raises:
        CatalogueFileError: it is no workbook, or a damaged one.
    """
    from openpyxl import load_workbook  # noqa: PLC0415 - heavy

    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = [
            [[_cell_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
            for sheet in book.worksheets
        ]
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        reason = f"is damaged, or no workbook ({type(error).__name__})"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    rows = max(sheets, key=lambda sheet: _count_header(iter(sheet), known)[0], default=[])
    return _table(enumerate(rows, 1), _count_header(iter(rows), known)[1])


def _cell_text(cell: object) -> str:
    """Return the text of a cell of a workbook; a number as people write it."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() else f"{cell:.2f}"
    return str(cell)


def _count_header(rows: Iterator[Sequence[str]], known: CountKnown) -> tuple[int, int]:
    """Return the most known columns of any of the first rows, and the number of rows above it."""
    best = 0, 0
    for above, row in enumerate(islice(_until_error(rows), LINES_ABOVE_HEADER)):
        if (count := known(row)) > best[0]:
            best = count, above
    return best


def _until_error(rows: Iterator[Sequence[str]]) -> Iterator[Sequence[str]]:
    try:
        yield from rows
    except csv.Error:
        return


def _table(rows: Iterable[Row], above: int) -> Table:
    """Return the table whose header has so many rows above it."""
    names: tuple[str, ...] = ()
    found: list[Row] = []
    for number, (line, row) in enumerate(rows):
        if number == above:
            names = tuple(name.strip("\ufeff \t") for name in row)
        elif number > above and any(cell.strip() for cell in row):
            found.append((line, [" ".join(visible(cell).split()) for cell in row]))
    return Table(names, tuple(found))

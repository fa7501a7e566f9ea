"""CSV files as they come: encoding, delimiter and header found, all that is wrong collected."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.sommelier.wine import Wine

SHOWN_PROBLEMS: Final = 20
DELIMITERS: Final = ",;\t|"
LINES_BEFORE_HEADER: Final = 10
"""A title, a date, or the `sep=;` of a spreadsheet may stand above the header."""
PEEK: Final = 50_000
"""Characters in which the header is looked for."""
BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

Row = tuple[int, list[str]]
"""The line that a row begins in, and its cells."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a file; the header is in line 1 as a rule, line 0 the file as a whole."""

    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        place += [self.column] if self.column else []
        return f"{', '.join(place)}: {self.reason}" if place else self.reason


class CatalogueFileError(Exception):
    """Nothing of a file was imported; `problems` says why, row by row."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file: the names of its columns, and its rows that hold anything."""

    delimiter: str
    names: tuple[str, ...]
    rows: tuple[Row, ...]


class FileRow(BaseModel):
    """A row of a kind of file: its fields are the columns, and tell how they are read."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    def wine(self) -> Wine:
        """Make the wine of the row."""
        raise NotImplementedError

    def left_out(self) -> Iterable[tuple[str, str]]:
        """Name what the wine is imported without, and why."""
        return ()

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the columns."""
        return [each.alias or name for name, each in cls.model_fields.items()]


@dataclass(slots=True)
class ReadRow:
    """What a row came to: a wine, or problems."""

    line: int
    wine: Wine | None = None
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)


def decoded(content: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Return a file's text and its encoding: UTF-8, UTF-16 with a mark, else Windows-1252.

    Raises:
        UnicodeDecodeError: it is in none of them, or not in the one that is named.
        LookupError: there is no such encoding.
    """
    if encoding is not None:
        return content.decode(encoding), encoding
    if content.startswith(BYTE_ORDER_MARKS):
        return content.decode("utf-16"), "utf-16"
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252"), "cp1252"


def read_table(content: str, known: Callable[[Sequence[str]], int]) -> Table:
    """Return what a CSV text holds; `known` counts the names of columns that it knows.

    Raises:
        CatalogueFileError: it is not CSV.
    """
    delimiter, above = _header(content[:PEEK], known)
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    found: list[Row] = []
    names: tuple[str, ...] = ()
    line = 0
    try:
        for number, row in enumerate(rows):
            start, line = line + 1, rows.line_num
            if number == above:
                names = tuple(name.strip("\ufeff \t") for name in row)
            elif number > above and any(cell.strip() for cell in row):
                found.append((start, [" ".join(cell.replace("\x00", "").split()) for cell in row]))
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None
    return Table(delimiter, names, tuple(found))


def _header(start: str, known: Callable[[Sequence[str]], int]) -> tuple[str, int]:
    """The delimiter by which most columns are known, and how many rows are above their names."""
    best, found = 0, (DELIMITERS[0], 0)
    for delimiter in DELIMITERS:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        for above, row in enumerate(islice(_readable(rows), LINES_BEFORE_HEADER)):
            if (count := known(row)) > best:
                best, found = count, (delimiter, above)
    return found


def _readable(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from rows
    except csv.Error:
        return


def read_rows(
    table: Table, columns: Sequence[str], kind: type[FileRow], everywhere: Mapping[str, str]
) -> Iterator[ReadRow]:
    """Yield what the rows come to; `columns` names the field of each column, "" for none.

    `everywhere` holds what is so in every row that does not say otherwise.
    """
    for line, cells in table.rows:
        surplus = cells[len(columns) :]
        if len(cells) < len(columns) or any(surplus):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            yield ReadRow(line, problems=[Problem(line, "", reason)])
        else:
            filled = zip(columns, cells, strict=False)
            said = {name: text for name, text in filled if name and text}
            yield _read_row(line, {**everywhere, **said}, kind)


def _read_row(line: int, cells: dict[str, str], kind: type[FileRow]) -> ReadRow:
    try:
        read = kind.model_validate(cells)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        return ReadRow(line, problems=[_problem(line, each) for each in problems])
    left_out = [Problem(line, *each) for each in read.left_out()]
    return ReadRow(line, read.wine(), left_out=left_out)


def _problem(line: int, error: Any) -> Problem:
    column = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "missing":
        return Problem(line, column, "is empty")
    if error["type"] == "value_error":
        return Problem(line, column, error["msg"].removeprefix("Value error, "))
    return Problem(line, column, f"'{error['input']}' {error['msg'].removeprefix('Input ')}")

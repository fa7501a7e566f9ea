"""Reading wines from a CSV file field by field, collecting everything that is wrong with it.

A reader makes a value of a field's text, and raises ValueError with the reason why it cannot.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from agent.sommelier.wine import Wine

Reader = Callable[[str], Any]
Values = Mapping[str, Any]
"""What a row holds, by column; empty fields are not in it."""

SHOWN_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a file. Line 1 is the header, line 0 the file as a whole."""

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


class FieldError(ValueError):
    """A row whose fields can be read but do not go together."""

    def __init__(self, column: str, reason: str) -> None:
        self.column = column
        super().__init__(reason)


@dataclass(frozen=True)
class Format:
    """A kind of file: its columns and those that may not be empty, and how a row makes a wine.

    `make` raises FieldError; `left_out` names what a wine is imported without, and why.
    """

    columns: Mapping[str, Reader]
    required: Set[str]
    make: Callable[[Values], Wine]
    left_out: Callable[[Values], Iterable[tuple[str, str]]] = lambda _: ()


@dataclass(slots=True)
class ReadRow:
    """What a row came to: a wine, or problems."""

    line: int
    wine: Wine | None = None
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)


def read_rows(content: str, format_of: Callable[[list[str]], Format]) -> Iterator[ReadRow]:
    """Yield the rows of a CSV text; `format_of` tells the format by the names of the columns.

    Raises:
        CatalogueFileError: it is not CSV, or `format_of` knows no such header.
    """
    rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    line = 0
    try:
        names = [name.strip() for name in next(rows, [])]
        known = format_of(names)
        by_folded = {name.lower(): name for name in known.columns}
        columns = [by_folded.get(name.lower(), "") for name in names]
        line = rows.line_num
        for row in rows:
            start, line = line + 1, rows.line_num
            if any(value.strip() for value in row):
                yield _read_row(start, columns, row, known)
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None


def _read_row(line: int, columns: Sequence[str], row: Sequence[str], known: Format) -> ReadRow:
    read = ReadRow(line)
    if len(row) != len(columns):
        reason = f"has {len(row)} fields, the header has {len(columns)}"
        read.problems.append(Problem(line, "", reason))
        return read
    cells = [" ".join(text.replace("\x00", "").split()) for text in row]
    texts = dict(zip(columns, cells, strict=True))
    values: dict[str, Any] = {}
    for name, reader in known.columns.items():
        try:
            if text := texts.get(name):
                values[name] = reader(text)
        except ValueError as error:
            read.problems.append(Problem(line, name, str(error)))
        if not text and name in known.required:
            read.problems.append(Problem(line, name, "is empty"))
    if not read.problems:
        try:
            read.wine = known.make(values)
            read.left_out = [Problem(line, *each) for each in known.left_out(values)]
        except FieldError as error:
            read.problems.append(Problem(line, error.column, str(error)))
    return read


def number(low: float, high: float) -> Reader:
    """Return a reader of plain numbers from `low` to `high`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"'{text}' is not a number (write 12.5)")
        if not low <= value <= high:
            raise ValueError(f"{text} is not between {low:g} and {high:g}")
        return value

    return read


def one_of(kind: type[StrEnum] | Mapping[str, Any]) -> Reader:
    """Return a reader of a mapping's keys, or of canonical values whatever their case."""
    names = list(kind) if isinstance(kind, Mapping) else [member.value for member in kind]
    known = kind if isinstance(kind, Mapping) else {each.value.lower(): each for each in kind}

    def read(text: str) -> Any:
        found = known.get(text if known is kind else text.lower())
        if found is None:
            raise ValueError(f"'{text}' is not one of: {', '.join(names)}")
        return found

    return read


def list_of(read: Reader) -> Reader:
    """Return a reader of `;`-separated lists, without blanks and doubles, in order."""
    return lambda text: tuple(dict.fromkeys(read(p.strip()) for p in text.split(";") if p.strip()))


def flag(text: str) -> bool:
    """Read true or false (yes/no, 1/0)."""
    if text.lower() in {"true", "yes", "1"}:
        return True
    if text.lower() in {"false", "no", "0"}:
        return False
    raise ValueError(f"'{text}' is neither true nor false")

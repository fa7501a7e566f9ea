"""Reading wines from a CSV file, collecting everything that is wrong with it."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.sommelier.wine import Wine

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


def read_rows(content: str, kind_of: Callable[[list[str]], type[FileRow]]) -> Iterator[ReadRow]:
    """Yield the rows of a CSV text; `kind_of` tells their kind by the names of the columns.

    Raises:
        CatalogueFileError: it is not CSV, or `kind_of` knows no such header.
    """
    rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    line = 0
    try:
        names = [name.strip() for name in next(rows, [])]
        kind = kind_of(names)
        by_folded = {name.lower(): name for name in kind.columns()}
        columns = [by_folded.get(name.lower(), "") for name in names]
        line = rows.line_num
        for row in rows:
            start, line = line + 1, rows.line_num
            if any(value.strip() for value in row):
                yield _read_row(start, columns, row, kind)
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None


def _read_row(
    line: int, columns: Sequence[str], row: Sequence[str], kind: type[FileRow]
) -> ReadRow:
    """A row as a wine; empty fields are not there, and columns of other names are ignored."""
    if len(row) != len(columns):
        reason = f"has {len(row)} fields, the header has {len(columns)}"
        return ReadRow(line, problems=[Problem(line, "", reason)])
    cells = [" ".join(text.replace("\x00", "").split()) for text in row]
    try:
        read = kind.model_validate(
            {name: text for name, text in zip(columns, cells, strict=True) if name and text}
        )
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        return ReadRow(line, problems=[_problem(line, each) for each in problems])
    left_out = [Problem(line, *each) for each in read.left_out()]
    return ReadRow(line, read.wine(), left_out=left_out)


def _problem(line: int, error: Any) -> Problem:
    column = str(error["loc"][0])
    if error["type"] == "missing":
        return Problem(line, column, "is empty")
    if error["type"] == "value_error":
        return Problem(line, column, error["msg"].removeprefix("Value error, "))
    return Problem(line, column, f"'{error['input']}' {error['msg'].removeprefix('Input ')}")

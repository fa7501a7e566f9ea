"""Reading one CSV row field by field, collecting everything that is wrong with it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

SHOWN_PROBLEMS: Final = 20

E = TypeVar("E", bound=StrEnum)


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

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))


class Fields:
    """One row. A field that cannot be read is noted and read as empty."""

    def __init__(self, row: Mapping[str, str], line: int) -> None:
        self._row = row
        self.line = line
        self.problems: list[Problem] = []
        self.left_out: list[Problem] = []

    def wrong(self, column: str, reason: str) -> None:
        """Note what makes the row unusable."""
        self.problems.append(Problem(self.line, column, reason))

    def leave_out(self, column: str, reason: str) -> None:
        """Note what is left out of a row that is imported all the same."""
        self.left_out.append(Problem(self.line, column, reason))

    def text(self, column: str) -> str:
        """The field with white space collapsed; empty when the column is missing."""
        return " ".join(self._row.get(column, "").replace("\x00", "").split())

    def required(self, column: str) -> str:
        """The field, which may not be empty."""
        value = self.text(column)
        if not value:
            self.wrong(column, "is empty")
        return value

    def number(self, column: str, low: float, high: float) -> float | None:
        """A plain number from `low` to `high`; None when the field is empty."""
        value = self.text(column)
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.wrong(column, f"'{value}' is not a number (write 12.5)")
            return None
        if not low <= number <= high:
            self.wrong(column, f"{value} is not between {low:g} and {high:g}")
            return None
        return number

    def flag(self, column: str, default: bool) -> bool:
        """true or false (yes/no, 1/0); `default` when the field is empty."""
        value = self.text(column).lower()
        if not value:
            return default
        if value not in {"true", "yes", "1", "false", "no", "0"}:
            self.wrong(column, f"'{value}' is neither true nor false")
        return value in {"true", "yes", "1"}

    def items(self, column: str) -> tuple[str, ...]:
        """The parts of a `;`-separated list, without blanks and doubles, in order."""
        parts = (part.strip() for part in self.text(column).split(";"))
        return tuple(dict.fromkeys(part for part in parts if part))

    def choice(self, column: str, kind: type[E]) -> E | None:
        """A canonical value of `kind`; None when the field is empty."""
        value = self.text(column)
        return self._canonical(column, kind, value) if value else None

    def choices(self, column: str, kind: type[E]) -> tuple[E, ...]:
        """A `;`-separated list of canonical values."""
        values = (self._canonical(column, kind, item) for item in self.items(column))
        return tuple(dict.fromkeys(value for value in values if value is not None))

    def _canonical(self, column: str, kind: type[E], value: str) -> E | None:
        known = {member.value.lower(): member for member in kind}
        found = known.get(value.lower())
        if found is None:
            expected = ", ".join(member.value for member in kind)
            self.wrong(column, f"'{value}' is not one of: {expected}")
        return found

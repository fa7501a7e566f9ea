"""What the database room raises.

Exception
├── DatabaseUnavailable   the database cannot be opened or reached
└── CatalogueFileError    a file of wines cannot be imported; lists a `db.csv_rows.Problem` each
"""

from collections.abc import Sequence

from db.csv_rows import Problem

SHOWN_PROBLEMS = 20


class DatabaseUnavailable(Exception):
    """The database cannot be opened or reached. The message holds no password."""


class CatalogueFileError(Exception):
    """Nothing of a file was imported; `problems` says why, row by row."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))

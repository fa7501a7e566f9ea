"""The problems that a wine list may have."""

from dataclasses import dataclass
from typing import Final

from agent.files import Unreadable

CUT_OFF: Final = (
    "ends within a row: it was probably cut off; if not, end it with a line break"
)
"""The problem of a file whose end is missing."""
MAX_NAMED_PROBLEMS: Final = 20
"""The most problems that the message of an error names."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file. Line 0 stands for the whole file.

    `kind` says what is wrong in words that are the same for every line that has this problem, such
    as "should be a valid number".
    """

    kind: str
    line: int = 0
    column: str = ""
    value: str = ""

    @property
    def reason(self) -> str:
        """Return what is wrong, with the value: "'cheap' should be a valid number"."""
        if not self.value:
            return self.kind
        return f"'{self.value}' {self.kind}"


class CatalogueFileError(Unreadable):
    """A file cannot be imported. `problems` are the reasons."""

    def __init__(self, *problems: Problem) -> None:
        reasons = [problem.reason for problem in problems[:MAX_NAMED_PROBLEMS]]
        super().__init__("; ".join(reasons))
        self.problems = problems

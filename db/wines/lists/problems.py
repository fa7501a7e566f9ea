"""What may be wrong with a wine list."""

from dataclasses import dataclass
from typing import Final

from agent.files import Unreadable

CUT_OFF: Final = (
    "ends within a row: it was probably cut off; if not, end it with a line break"
)
"""What is wrong with a file that was not written to its end."""
MAX_NAMED_PROBLEMS: Final = 20
"""The most problems that the message of an error names."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file; line 0 stands for the whole file.

    `kind` says what is wrong, for all lines alike: "should be a valid number".
    """

    kind: str
    line: int = 0
    column: str = ""
    value: str = ""

    @property
    def reason(self) -> str:
        """Return what is wrong with the value: "'cheap' should be a valid number"."""
        return f"'{self.value}' {self.kind}" if self.value else self.kind


class CatalogueFileError(Unreadable):
    """A file that was not imported; `problems` are the reasons."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(
            "; ".join(problem.reason for problem in problems[:MAX_NAMED_PROBLEMS])
        )
        self.problems = problems

"""What the command line shows of wines and imports, as tables for a terminal."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from rich.table import Table
from rich.text import Text

from agent.sommelier.contract import price_text
from agent.sommelier.wine import Wine


class Problem(Protocol):
    """What is wrong with a line of a file."""

    @property
    def line(self) -> int:
        """The line's number; 0 for the file as a whole."""
        ...

    @property
    def column(self) -> str:
        """The column's name, empty for the whole line."""
        ...

    @property
    def reason(self) -> str:
        """What is wrong."""
        ...


class Document(Protocol):
    """What the library knows of a document."""

    @property
    def path(self) -> str:
        """What a citation names."""
        ...

    @property
    def title(self) -> str:
        """What it is called."""
        ...

    @property
    def kind(self) -> str:
        """markdown, text, html or pdf."""
        ...

    @property
    def parts(self) -> int:
        """The number of its chunks."""
        ...

    @property
    def added_at(self) -> datetime:
        """When it was indexed as it is."""
        ...


def wine_table(wines: Iterable[Wine]) -> Table:
    """One wine a row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("Wine", "Style", "From", "Price"):
        table.add_column(name, overflow="fold")
    table.add_column("Id", overflow="fold", style="dim")
    for wine in wines:
        origin = ", ".join(part for part in (wine.region, wine.country) if part)
        table.add_row(wine.label, wine.style.value, origin, price_text(wine), wine.id)
    return table


def document_table(documents: Iterable[Document]) -> Table:
    """One document a row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("Path", "Title", "Kind"):
        table.add_column(name, overflow="fold")
    table.add_column("Parts", justify="right")
    table.add_column("Added")
    for each in documents:
        added = each.added_at.strftime("%Y-%m-%d")
        table.add_row(Text(each.path), Text(each.title), each.kind, str(each.parts), added)
    return table


def problem_table(problems: Iterable[Problem]) -> Table:
    """One problem a row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Line", justify="right")
    table.add_column("Column")
    table.add_column("What is wrong", overflow="fold")
    for problem in problems:
        table.add_row(str(problem.line or "–"), problem.column, problem.reason)
    return table

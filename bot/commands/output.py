"""How commands talk to a terminal or a pipe."""

# ruff: noqa: PLC0415

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from rich.table import Table

WIDTH_IN_A_PIPE = 400


def show(table: "Table", *, error: bool = False) -> None:
    """Print a table; in a pipe its cells are not wrapped."""
    from rich.console import Console

    console = Console(stderr=error)
    if not console.is_terminal:
        console.width = WIDTH_IN_A_PIPE
    console.print(table)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, moved by what is done and what there is in all; nothing in a pipe."""
    from rich.console import Console
    from rich.progress import Progress

    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def printable(text: str) -> str:
    """A text without characters that a terminal would obey."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the command with one line on standard error."""
    typer.echo(f"sommelier: {printable(reason)}", err=True)
    raise typer.Exit(status)

"""Helpers of the commands: settings, the database, output to a terminal or a pipe."""

# ruff: noqa: PLC0415

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from config import Settings
    from db.engine import Sessions

T = TypeVar("T")

WIDTH_IN_A_PIPE: Final = 400
LOUD: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "telegram", "alembic", "openai")
"""Loggers that say too much at INFO; those of HTTP clients write whole URLs, tokens included."""


def open_settings(log_level: str | None = "WARNING") -> "Settings":
    """Return the settings, and set up logging: at `log_level` unless LOG_LEVEL is DEBUG.

    Raises:
        SettingsError: a value is wrong.
    """
    from config import load_settings

    settings = load_settings()
    level = log_level if log_level and settings.log_level != "DEBUG" else settings.log_level
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(settings.secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in LOUD:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    return settings


class RedactingFormatter(logging.Formatter):
    """Hides the given secrets as traces do, in messages and tracebacks alike."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        from agent.tracing.masking import Masking

        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._masking = Masking("full", tuple(secrets))

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole record as text, without what must not be read."""
        return self._masking.text(super().format(record))


def with_database(settings: "Settings", work: "Callable[[Sessions], Awaitable[T]]") -> T:
    """Return what `work` returns for the database at this version's schema.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
    """
    from bot.resources import open_database

    async def run() -> T:
        async with open_database(settings) as sessions:
            return await work(sessions)

    return asyncio.run(run())


def table(columns: Iterable[str | Column], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table; its cells are shown as text, neither markup nor obeyed by a terminal."""
    made = [
        Column(column, overflow="fold") if isinstance(column, str) else column for column in columns
    ]
    found = Table(*made, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        found.add_row(*(Text(one_line(cell)) for cell in row))
    return found


def show(renderable: RenderableType, *, error: bool = False) -> None:
    """Print a table or a tree; in a pipe its cells are not wrapped."""
    console = Console(stderr=error)
    if not console.is_terminal:
        console.width = WIDTH_IN_A_PIPE
    console.print(renderable)


def printable(text: str) -> str:
    """Return a text without characters that a terminal would obey."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def one_line(text: str) -> str:
    """Return a text without line breaks and characters that a terminal would obey."""
    return printable(" ".join(text.splitlines())).replace("\t", " ")


def fail(reason: str, status: int = 1) -> NoReturn:
    """End the command with one line on standard error."""
    typer.echo(f"sommelier: {printable(reason)}", err=True)
    raise typer.Exit(status)


def write_file(file: Path, text: str) -> None:
    """Write a text; a failure ends the command."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror or error}")

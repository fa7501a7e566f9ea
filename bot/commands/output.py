"""What all commands share: read the settings, open the database, print to a terminal or a pipe."""

# ruff: noqa: PLC0415

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from config import Settings
    from db.engine import Sessions

T = TypeVar("T")
WithoutAsking = Annotated[
    bool, typer.Option("--yes", help="Store what can be, without asking.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")]
UserId = Annotated[
    int, typer.Argument(help="The user's id in Telegram, which `/trace` and logs show.")
]

PIPE_WIDTH: Final = 400
"""The width of a table in a pipe, in characters. It is large, so that no cell is wrapped."""
WRONG_USE_STATUS: Final = 2
"""The exit status if a setting or an argument is missing or wrong."""
NOISY_LOGGERS: Final = (
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "telegram",
    "alembic",
    "openai",
)
"""Loggers that log nothing below WARNING. Those of HTTP clients would log URLs with tokens."""


def open_settings(log_level: str | None = "WARNING") -> "Settings":
    """Return the settings, and set up logging.

    The log level is `log_level`, or the setting LOG_LEVEL if `log_level` is None or LOG_LEVEL is
    DEBUG.

    Raises:
        SettingsError: a value is invalid.
    """
    from config import load_settings

    settings = load_settings()
    level: str = settings.log_level
    if log_level and level != "DEBUG":
        level = log_level
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(settings.secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    level_number = logging.getLogger().level
    for name in NOISY_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, level_number))
    return settings


class RedactingFormatter(logging.Formatter):
    """A log formatter that masks secrets in messages and tracebacks."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        from agent.tracing.masking import Masking

        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._masking = Masking("full", tuple(secrets))

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, without secrets."""
        return self._masking.mask_text(super().format(record))


def run_with_database(
    settings: "Settings", function: "Callable[[Sessions], Awaitable[T]]"
) -> T:
    """Open the database, call a function with its sessions, and return the result.

    Raises:
        DatabaseUnusable: there is no connection, or a Postgres database has an old schema.
    """
    from bot.resources import open_database

    async def run() -> T:
        async with open_database(settings) as sessions:
            return await function(sessions)

    return asyncio.run(run())


def show_status(text: str) -> Status:
    """Return a status line, which a terminal shows until the end of its `with` block.

    The method `update` changes the text. In a pipe nothing is shown.
    """
    return Console(stderr=True).status(Text(text))


def build_table(
    columns: Iterable[str | Column], rows: Iterable[Iterable[str]]
) -> Table:
    """Return a table. Its cells appear literally, without markup and control characters."""
    from agent.text import to_one_line

    table_columns = [_to_column(column) for column in columns]
    table = Table(*table_columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        cells = [Text(to_one_line(cell)) for cell in row]
        table.add_row(*cells)
    return table


def _to_column(column: str | Column) -> Column:
    """Return a column with this heading, or the given column."""
    if isinstance(column, Column):
        return column
    return Column(column, overflow="fold")


def print_table(table: Table, *, error: bool = False) -> None:
    """Print a table to standard output, or to standard error if `error` is true."""
    console = Console(stderr=error)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(table)


def print_text(text: str, *, error: bool = False) -> None:
    """Print a text, without characters that control a terminal."""
    from agent.text import strip_control_chars

    typer.echo(strip_control_chars(text), err=error)


def fail(reason: str, status: int = 1) -> NoReturn:
    """Print one line to standard error, and end the command with an exit status."""
    print_text(f"sommelier: {reason}", error=True)
    raise typer.Exit(status)


def write_file(file: Path, text: str) -> None:
    """Write a text to a file. If that fails, end the command."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror or error}")

"""The command line. What a command needs is imported when it runs: `--help` is to be quick."""

# ruff: noqa: PLC0415

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from bot.tables import Problem
    from config import Settings

WIDTH_IN_A_PIPE = 400

app = typer.Typer(
    help="A sommelier that recommends wines from your cellar, in Telegram or in this terminal.",
    epilog="New here? `sommelier chat` works with nothing configured. "
    "Settings are read from the environment and .env; `sommelier doctor` checks them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="Create and upgrade the database.", no_args_is_help=True)
wines = typer.Typer(help="Fill the catalogue and search it.", no_args_is_help=True)
app.add_typer(database, name="db")
app.add_typer(wines, name="wines")


def main() -> None:
    """Run the command line; an expected error is one line, exit status 2 for a wrong setting."""
    try:
        app()
    except Exception as error:
        status = _status(error)
        if status is None:
            raise
        typer.echo(f"sommelier: {error}", err=True)
        sys.exit(status)


def _status(error: Exception) -> int | None:
    """The exit status of an expected error, None for any other."""
    from bot.polling import TokenRejected
    from config import SettingsError
    from db.errors import CatalogueFileError, DatabaseUnavailable

    if isinstance(error, SettingsError | TokenRejected):
        return 2
    return 1 if isinstance(error, CatalogueFileError | DatabaseUnavailable) else None


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sommelier {version('sommelier')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options that come before a command."""


@app.command()
def chat() -> None:
    """Talk to the sommelier here. Lines piped in are answered one by one."""
    settings = _settings("WARNING")
    from bot import console
    from bot.app import open_app

    console.chat(lambda telegram: open_app(settings, telegram), has_model=settings.has_model)


@app.command()
def run() -> None:
    """Answer people in Telegram, until stopped. Needs TELEGRAM_BOT_TOKEN."""
    settings = _settings()
    from bot.app import run_polling

    asyncio.run(run_polling(settings))


@app.command()
def doctor() -> None:
    """Check settings, database, model, Telegram and Langfuse, and say what to do about each."""
    from config import SettingsError

    try:
        settings = _settings("ERROR")
    except SettingsError as error:
        typer.echo(f"✗ settings: {error}")
        raise typer.Exit(1) from None
    typer.echo("✓ settings: every value is well-formed")
    from bot.app import diagnose

    findings = asyncio.run(diagnose(settings))
    for finding in findings:
        typer.echo(str(finding))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


@database.command("upgrade")
def db_upgrade() -> None:
    """Bring the database to this version's schema."""
    settings = _settings("WARNING")
    from bot.app import open_engine
    from db import migrate

    async def upgrade() -> None:
        async with open_engine(settings) as engine:
            before = await migrate.current(engine)
            await migrate.upgrade(engine)
        done = "was up to date" if before == migrate.head() else f"upgraded from {before or 'none'}"
        typer.echo(f"The database is at {migrate.head()}; it {done}.")

    asyncio.run(upgrade())


@database.command("status")
def db_status() -> None:
    """Show the database's schema version. Exit status 1 if it needs an upgrade."""
    settings = _settings("WARNING")
    from bot.app import open_engine
    from db import migrate

    async def status() -> str | None:
        async with open_engine(settings) as engine:
            return await migrate.current(engine)

    revision = asyncio.run(status())
    typer.echo(f"The database is at {revision or 'none'}, this version's schema {migrate.head()}.")
    if revision != migrate.head():
        typer.echo("Run `sommelier db upgrade`.", err=True)
        raise typer.Exit(1)


@wines.command("import")
def wines_import(
    file: Annotated[Path, typer.Argument(help="A CSV file; docs/wines.md describes it.")],
) -> None:
    """Add the wines of a CSV file, all or none. Wines that are there already are updated."""
    settings = _settings("WARNING")
    from rich.console import Console
    from rich.progress import Progress

    from bot.app import open_database
    from db.catalogue import ImportReport, import_catalogue
    from db.errors import CatalogueFileError

    errors = Console(stderr=True)

    async def load() -> ImportReport:
        async with open_database(settings) as sessions:
            with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
                task = bar.add_task("Importing", total=None)

                def progress(done: int, total: int) -> None:
                    bar.update(task, completed=done, total=total)

                return await import_catalogue(sessions, file, progress)

    try:
        report = asyncio.run(load())
    except CatalogueFileError as error:
        typer.echo(f"sommelier: nothing was imported from {file}", err=True)
        _show_problems(error.problems, error=True)
        raise typer.Exit(1) from None
    typer.echo(f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged.")
    if report.problems:
        typer.echo("Imported without these details:")
        _show_problems(report.problems)


@wines.command("search")
def wines_search(
    text: Annotated[str, typer.Argument(help='For example "red for lamb under 25 euros".')],
) -> None:
    """Show the wines that a text asks for."""
    settings = _settings("WARNING")
    from agent.house_sommelier.understanding import understand
    from agent.wine import WineSearchResult
    from bot.app import open_database
    from bot.tables import wine_table
    from db.repositories.wines import SqlCatalogue

    async def search() -> WineSearchResult:
        async with open_database(settings) as sessions:
            return await SqlCatalogue(sessions).search(understand(text).query)

    found = asyncio.run(search())
    if not found.wines:
        relax = "; ".join(f"without {name} there are {n}" for name, n in found.relax.items())
        typer.echo(f"No wine fits{': ' + relax if relax else ''}.")
        return
    _show(wine_table(found.wines))
    if found.total > len(found.wines):
        typer.echo(f"{len(found.wines)} of {found.total} wines.")


@wines.command("count")
def wines_count() -> None:
    """Show how many wines the catalogue holds."""
    settings = _settings("WARNING")
    from bot.app import open_database
    from db.repositories.wines import SqlCatalogue

    async def count() -> int:
        async with open_database(settings) as sessions:
            return await SqlCatalogue(sessions).count()

    typer.echo(asyncio.run(count()))


def _settings(log_level: str | None = None) -> "Settings":
    """The settings, with logging set up: at `log_level` unless LOG_LEVEL asks for more."""
    from bot.logs import configure_logging
    from config import load_settings

    settings = load_settings()
    level = log_level if log_level and settings.log_level != "DEBUG" else settings.log_level
    keys = (settings.telegram_bot_token, settings.openai_api_key, settings.langfuse_secret_key)
    configure_logging(level, [key.get_secret_value() for key in keys if key])
    return settings


def _show_problems(problems: "Iterable[Problem]", *, error: bool = False) -> None:
    from bot.tables import problem_table

    _show(problem_table(problems), error=error)


def _show(table: "Table", *, error: bool = False) -> None:
    from rich.console import Console

    console = Console(stderr=error)
    if not console.is_terminal:
        console.width = WIDTH_IN_A_PIPE
    console.print(table)


if __name__ == "__main__":
    main()

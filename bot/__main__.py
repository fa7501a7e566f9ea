"""The command line. What a command needs is imported when it runs: `--help` is to be quick."""

# ruff: noqa: PLC0415

import asyncio
import os
import signal
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from bot.commands import database, evaluate, library, prompts, research, traces
from bot.commands.output import open_settings

app = typer.Typer(
    help="A sommelier that recommends wines from your cellar, in Telegram or in this terminal.",
    epilog="New here? `sommelier chat` works with nothing configured. "
    "Settings are read from the environment and .env; `sommelier doctor` checks them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(database.db_app, name="db")
app.add_typer(library.wines_app, name="wines")
app.add_typer(library.documents_app, name="documents")
app.add_typer(database.updates_app, name="updates")
app.add_typer(evaluate.app, name="eval")
app.add_typer(prompts.app, name="prompts")
app.add_typer(traces.app, name="traces")


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
    finally:
        # All is closed: a second Ctrl-C must not make a kill of the interpreter's last moments.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _status(error: Exception) -> int | None:
    """The exit status of an expected error, None for any other."""
    from bot.http.server import CannotListen
    from bot.updates.accept import AlreadyRunning, TokenRejected
    from config import SettingsError
    from db.engine import DatabaseUnavailable
    from db.wines.csv_files import CatalogueFileError

    if isinstance(error, SettingsError | TokenRejected):
        return 2
    expected = AlreadyRunning | CannotListen | CatalogueFileError | DatabaseUnavailable
    return 1 if isinstance(error, expected) else None


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
    # Databases, exports, reports: they hold people's words, whichever command writes them.
    os.umask(0o077)


@app.command()
def chat() -> None:
    """Talk to the sommelier here. Lines piped in are answered one by one."""
    settings = open_settings()
    from bot import console
    from bot.app import open_chat

    console.chat(lambda telegram: open_chat(settings, telegram), has_model=settings.model.is_set)


@app.command()
def run() -> None:
    """Answer people in Telegram, until stopped. Needs TELEGRAM_BOT_TOKEN."""
    settings = open_settings(None)
    from bot.app import run_bot

    asyncio.run(run_bot(settings))


app.command()(research.ask)
app.command()(research.quotes)
app.command()(research.find)


@app.command()
def doctor() -> None:
    """Check the settings and everything they name, and say what to do about each."""
    from config import SettingsError

    try:
        settings = open_settings("ERROR")
    except SettingsError as error:
        typer.echo(f"✗ settings: {error}")
        raise typer.Exit(1) from None
    typer.echo("✓ settings: every value is well-formed")
    from bot.commands.doctor import examine

    findings = asyncio.run(examine(settings))
    for finding in findings:
        typer.echo(str(finding))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


if __name__ == "__main__":
    main()

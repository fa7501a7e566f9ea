"""The command line. The module of a command is imported when it is called: `--help` stays quick."""

# ruff: noqa: PLC0415

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from bot.commands.output import open_settings

COMMANDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "model": (
        "local_models",
        "model",
        "Find a model server on this machine and use its model.",
    ),
    "ask": ("research", "ask", "Answer a question from the documents, with sources."),
    "quotes": ("research", "quotes", "Show passages of the documents word for word."),
    "find": (
        "research",
        "find",
        "Find places for people who love wine: shops, bars, wineries …",
    ),
    "admin": ("maintenance", "admin", "Show usage, cost and failures in a browser."),
    "doctor": ("doctor", "doctor", "Check the settings and everything they name."),
    "db": ("database", "app", "Create, upgrade, back up and restore the database."),
    "wines": ("wines", "wines_app", "Fill the catalogue."),
    "cellar": ("cellar", "cellar_app", "Fill the cellars of users."),
    "documents": ("library", "documents_app", "Fill the library and search it."),
    "people": ("people", "people_app", "See, delete and import the data of a user."),
    "updates": (
        "maintenance",
        "updates_app",
        "See messages that could not be answered.",
    ),
    "eval": ("evaluate", "eval_app", "Measure how well a model works here."),
    "prompts": ("prompts", "prompts_app", "Manage prompts in Langfuse."),
    "traces": ("traces", "app", "See what happened in each turn, and why."),
}
"""The commands of other modules, by their names.

Each has a module of `bot.commands`, the function or the typer app in it, and a help text.
"""


class LazyCommands(TyperGroup):
    """A group of commands that imports those in `COMMANDS` when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the called command if it is in `COMMANDS`, then resolve it as usual."""
        name = args[0]
        if name in COMMANDS:
            self.commands[name] = _import_command(name)
        return super().resolve_command(ctx, args)


def _import_command(name: str) -> Any:
    """Import the module of a command, and return the command with its name and help text."""
    module_name, attribute, help_text = COMMANDS[name]
    module = import_module(f"bot.commands.{module_name}")
    imported = getattr(module, attribute)
    if isinstance(imported, typer.Typer):
        command_app = imported
    else:
        # A single function becomes the only command of an app.
        command_app = typer.Typer(add_completion=False)
        command_app.command()(imported)
    command = typer.main.get_command(command_app)
    command.name = name
    command.help = command.help or help_text
    return command


app = typer.Typer(
    cls=LazyCommands,
    help="A sommelier that recommends wines from your cellar, in Telegram or in this terminal.",
    epilog="New here? `sommelier chat` works with nothing configured. "
    "Settings are read from the environment and .env; `sommelier doctor` checks them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _, _help) in COMMANDS.items():
    # An empty app that `--help` lists. `LazyCommands` replaces it by the command.
    app.add_typer(typer.Typer(help=_help), name=_name)


def main() -> None:
    """Run the command line. Print an expected error on one line, without a traceback."""
    try:
        app()
    except Exception as error:
        status = _exit_status(error)
        if status is None:
            raise
        typer.echo(f"sommelier: {error}", err=True)
        sys.exit(status)
    finally:
        # Everything is closed: a second Ctrl-C must not kill the interpreter while it exits.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit_status(error: Exception) -> int | None:
    """Return 2 for a wrong setting, 1 for another expected error, and None for all others."""
    from bot.http.server import CannotListen
    from bot.telegram.connection import TokenRejected
    from bot.updates.locks import AlreadyRunning
    from config import SettingsError
    from db.engine import DatabaseUnusable
    from db.wines.lists.problems import CatalogueFileError

    if isinstance(error, SettingsError | TokenRejected):
        return 2
    expected = AlreadyRunning | CannotListen | CatalogueFileError | DatabaseUnusable
    if isinstance(error, expected):
        return 1
    return None


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"sommelier {version('sommelier')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Make new files readable by their owner only: they contain messages of users."""
    os.umask(0o077)


@app.command()
def chat() -> None:
    """Talk to the sommelier here. Piped lines are answered one by one."""
    settings = open_settings()
    from bot import console

    if not settings.server and console.is_terminal():
        from bot.commands.local_models import offer_local_model

        settings = offer_local_model(settings)
    console.chat(settings)


@app.command()
def run() -> None:
    """Answer people in Telegram, until stopped. Needs TELEGRAM_BOT_TOKEN."""
    settings = open_settings(None)
    from bot.app import run_bot

    asyncio.run(run_bot(settings))


@app.command()
def mcp() -> None:
    """Serve wines and documents to an external agent over standard input and output."""
    settings = open_settings()
    from bot.mcp_server import serve_stdio
    from bot.resources import open_resources

    async def serve() -> None:
        async with open_resources(settings) as resources:
            await serve_stdio(resources)

    asyncio.run(serve())


if __name__ == "__main__":
    main()

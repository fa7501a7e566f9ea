"""The command line. The module of a command is imported when it runs: `--help` is to be quick."""

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

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "model": ("local_models:model", "Find a model server on this machine and use its model."),
    "ask": ("research:ask", "Answer a question from the documents, with sources."),
    "quotes": ("research:quotes", "Show passages of the documents word for word."),
    "find": ("research:find", "Find places for people who love wine: shops, bars, wineries …"),
    "admin": ("maintenance:admin", "Show what happened and what it cost, in a browser."),
    "doctor": ("doctor:doctor", "Check the settings and everything they name."),
    "db": ("maintenance:db_app", "Create and upgrade the database."),
    "wines": ("library:wines_app", "Fill the catalogue."),
    "documents": ("library:documents_app", "Fill the library and search it."),
    "people": ("maintenance:people_app", "See and delete the data of a user."),
    "updates": ("maintenance:updates_app", "See messages that could not be answered."),
    "eval": ("evaluate:eval_app", "Measure how well a model works here."),
    "prompts": ("evaluate:prompts_app", "Manage prompts in Langfuse."),
    "traces": ("traces:app", "See what happened in each turn, and why."),
}
"""The module and the function or group of each command of `bot.commands`, and its help text."""


class LateCommands(TyperGroup):
    """Commands, of which those in `COMMANDS` are imported when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called."""
        name = args[0]
        if name in COMMANDS:
            place, help_text = COMMANDS[name]
            module, _, attribute = place.partition(":")
            found = getattr(import_module(f"bot.commands.{module}"), attribute)
            if not isinstance(found, typer.Typer):
                function, found = found, typer.Typer(add_completion=False)
                found.command()(function)
            command = typer.main.get_command(found)
            command.name, command.help = name, command.help or help_text
            self.commands[name] = command
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=LateCommands,
    help="A sommelier that recommends wines from your cellar, in Telegram or in this terminal.",
    epilog="New here? `sommelier chat` works with nothing configured. "
    "Settings are read from the environment and .env; `sommelier doctor` checks them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _help) in COMMANDS.items():
    app.add_typer(typer.Typer(help=_help), name=_name)


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
    """Return the exit status of an expected error, None for any other."""
    from bot.http.server import CannotListen
    from bot.telegram.connection import TokenRejected
    from bot.updates.locks import AlreadyRunning
    from config import SettingsError
    from db.engine import DatabaseUnavailable
    from db.wines.lists import CatalogueFileError

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
    """Let only their owner read the files that a command writes: they hold people's words."""
    os.umask(0o077)


@app.command()
def chat() -> None:
    """Talk to the sommelier here. Lines piped in are answered one by one."""
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
    """Serve wines and documents to another program's agent, over standard input and output."""
    settings = open_settings()
    from bot.mcp_server import serve_stdio
    from bot.resources import open_resources

    async def serve() -> None:
        async with open_resources(settings) as resources:
            await serve_stdio(resources)

    asyncio.run(serve())


if __name__ == "__main__":
    main()

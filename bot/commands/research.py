"""`sommelier ask`, `quotes` and `find`: answer a single question."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent.turn import Reply
from bot.commands.output import fail, open_settings, print_text, write_file
from bot.console import to_rich_text
from bot.look_ups import CommandName, parse_look_up
from bot.resources import open_resources, stores_of
from bot.runner import TurnRunner
from bot.safety import SafetyService
from bot.tracing import open_exporter
from bot.turn import Question, Turn
from config import Settings

SESSION: Final = "cli"
"""Stands for the command line in traces, where others have a chat and a user."""


def ask(
    question: Annotated[
        str, typer.Argument(help='For example "What does sur lie mean?".')
    ],
    refine: Annotated[
        bool,
        typer.Option(
            "--refine", help="Have the question rewritten for the search first."
        ),
    ] = False,
) -> None:
    """Answer a question from the documents, with a source for every statement."""
    arguments = question
    if refine:
        arguments = f"--refine {question}"
    _look_up("ask", arguments)


def quotes(
    query: Annotated[str, typer.Argument(help='For example "cork taint".')],
) -> None:
    """Quote passages of the documents word for word, with their sources."""
    _look_up("quotes", query)


def find(
    category: Annotated[
        str, typer.Argument(help="WINE_SHOP, WINE_BAR, WINERY, TASTING …")
    ],
    place: Annotated[str, typer.Argument(help="A town, a district or a region.")],
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Also write the ten queries to a file, one per line."
        ),
    ] = None,
) -> None:
    """Find places for people who love wine: shops, bars, wineries …"""
    places = _look_up("find", f"{category} {place}")
    if save is not None and places is not None:
        lines = [f"{query}\n" for query in places.queries.texts]
        write_file(save, "".join(lines))
        typer.echo(f"Saved the queries to {save}.", err=True)


def _look_up(name: CommandName, arguments: str) -> Any:
    """Run a look-up, print its reply, and return its result.

    Return None if the text is about a crisis, because the reply is then a help text.
    """
    reply = asyncio.run(_run_turn(open_settings(), name, arguments))
    if reply.outcome == "failed":
        fail(reply.text)
    print_text(to_rich_text(reply.full_text).plain)
    return reply.structured_answer


async def _run_turn(settings: Settings, name: CommandName, arguments: str) -> Reply:
    """Run a look-up as a turn, and return its reply. Fail if its arguments are not valid."""
    async with (
        open_resources(settings) as resources,
        open_exporter(settings, resources.sessions),
    ):
        look_up_or_usage = parse_look_up(name, arguments, resources)
        if isinstance(look_up_or_usage, str):
            fail(look_up_or_usage, 2)
        look_up = look_up_or_usage
        runner = TurnRunner(
            base_run=resources.run,
            safety=SafetyService(help=resources.help),
            commits=stores_of(settings, resources.sessions).commits,
        )
        question = Question(text=look_up.history_text, kind=name)
        turn = Turn(trace_session=SESSION, trace_user=SESSION)
        return await runner.run_and_commit(turn, question, look_up.make_reply)

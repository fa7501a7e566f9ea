"""`sommelier ask`, `quotes` and `find`: look something up, one question at a time."""

# ruff: noqa: PLC0415

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bot.commands.output import fail, open_settings, printable, write_file

if TYPE_CHECKING:
    from agent.engine.run import Run
    from agent.turn import Reply
    from bot.question import Kind
    from bot.resources import Resources

SESSION: Final = "cli"


def ask(
    question: Annotated[str, typer.Argument(help='For example "What does sur lie mean?".')],
    refine: Annotated[
        bool, typer.Option("--refine", help="Have the question rewritten for the search first.")
    ] = False,
) -> None:
    """Answer a question from the documents, each statement with its source."""
    from agent.i18n import translate
    from bot import look_ups

    if problem := look_ups.problem_of(question, translate("ask_usage")):
        fail(problem, 2)
    _look_up(
        "ask",
        question,
        lambda run, resources: look_ups.ask(question, run, resources, refine=refine or None),
        lambda answer: [look_ups.answer_text(answer, with_passages=True)],
    )


def quotes(
    query: Annotated[str, typer.Argument(help='For example "cork taint".')],
) -> None:
    """Show passages of the documents word for word, with their sources."""
    from agent.i18n import translate
    from bot import look_ups

    if problem := look_ups.problem_of(query, translate("quotes_usage")):
        fail(problem, 2)
    _look_up(
        "quotes",
        query,
        lambda run, resources: look_ups.quote(query, run, resources),
        look_ups.quote_texts,
    )


def find(
    category: Annotated[str, typer.Argument(help="WINE_SHOP, WINE_BAR, WINERY, TASTING …")],
    place: Annotated[str, typer.Argument(help="A town, a district or a region.")],
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Also write the ten queries to a file, one a line."),
    ] = None,
) -> None:
    """Find places for people who love wine: shops, bars, wineries …"""
    from agent.places.queries import category_named, place_named
    from bot import look_ups

    try:
        name, where = category_named(category), place_named(place)
    except ValueError as error:
        fail(str(error), 2)
    found = _look_up(
        "find",
        f"{name} {where}",
        lambda run, resources: look_ups.find(name, where, run, resources),
        look_ups.place_texts,
    )
    if save is not None and found is not None:
        write_file(save, "".join(f"{query}\n" for query in found.queries.queries))
        typer.echo(f"Saved the queries to {save}.", err=True)


def _look_up(
    kind: "Kind",
    text: str,
    work: "Callable[[Run, Resources], Awaitable[Reply]]",
    texts_of: Callable[[Any], list[str]],
) -> Any:
    """Run a traced turn, print its answer, and return it; None in a crisis."""
    from agent.turn import with_notes
    from bot.care import SafetyService
    from bot.console import rich_text
    from bot.question import Question
    from bot.resources import open_resources
    from bot.tracing import send_traces
    from bot.turn import TurnRunner

    settings = open_settings()

    async def run_turn() -> "Reply":
        async with (
            open_resources(settings) as resources,
            send_traces(settings, resources.sessions),
        ):
            turns = TurnRunner(
                base_run=resources.run,
                safety=SafetyService(help=resources.help),
                store=resources.repositories.turns,
            )
            question = Question(
                text=text, kind=kind, session=SESSION, user=SESSION, in_history=False
            )
            return await turns.run_turn(question, lambda run: work(run, resources))

    reply = asyncio.run(run_turn())
    if reply.outcome == "failed":
        fail(reply.text)
    shown = texts_of(reply.answer) if reply.answer is not None else [reply.text]
    markdown = with_notes("\n\n".join(shown), reply.notes)
    typer.echo(printable(rich_text(markdown).plain))
    return reply.answer

"""`sommelier ask`, `quotes` and `find`: look something up, one question at a time."""

# ruff: noqa: PLC0415

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bot.commands.output import AsJson, fail, open_settings, print_json, printable, write_file

if TYPE_CHECKING:
    from agent.documents.answer import Answer
    from agent.documents.quotes import Quotes
    from agent.engine.run import Run
    from agent.places.find import Places
    from agent.turn import Reply
    from bot.resources import Resources

LookUp = Callable[["Resources", "Run"], Awaitable[Any]]

SESSION: Final = "cli"
NOT_REFINED: Final = {
    "disabled": "refinement is switched off here (ENABLE_QUERY_REFINEMENT)",
    "no_model": "no language model is configured here",
    "refused": "the model declined",
}
NO_REFINEMENT: Final = "the model gave no usable question"


def ask(
    question: Annotated[str, typer.Argument(help='For example "What does sur lie mean?".')],
    refine: Annotated[
        bool, typer.Option("--refine", help="Have the question rewritten for the search first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the documents, each statement with its source."""
    from agent.documents.answer import Answer, answer_question
    from agent.documents.refine import refinement_wanted

    asked = _question(question)

    async def look_up(resources: "Resources", run: "Run") -> Answer:
        wanted = refinement_wanted(resources.refinement, refine or None)
        return await answer_question(asked, documents=resources.documents, refine=wanted, run=run)

    answer = _answer("ask", asked, look_up, partial(Answer.crisis_help, asked), _answer_lines)
    if as_json:
        from bot.http.schemas import AskResponse

        print_json(AskResponse.of(answer))
        return
    reason = answer.refinement.fallback_reason
    if refine and reason:
        why = NOT_REFINED.get(reason, NO_REFINEMENT)
        typer.echo(f"The question was not refined: {why}.", err=True)
    _print(_answer_lines(answer))


def quotes(
    query: Annotated[str, typer.Argument(help='For example "cork taint".')],
    as_json: AsJson = False,
) -> None:
    """Show passages of the documents word for word, with their sources."""
    from agent.documents.quotes import Quotes, find_quotes

    asked = _question(query)

    async def look_up(resources: "Resources", run: "Run") -> Quotes:
        return await find_quotes(asked, documents=resources.documents, run=run)

    found = _answer("quotes", asked, look_up, partial(Quotes.crisis_help, asked), _quotes_lines)
    if as_json:
        from bot.http.schemas import QuotesDocument

        print_json(QuotesDocument.of(found))
    else:
        _print(_quotes_lines(found))


def find(
    category: Annotated[str, typer.Argument(help="WINE_SHOP, WINE_BAR, WINERY, TASTING …")],
    place: Annotated[str, typer.Argument(help="A town, a district or a region.")],
    as_json: AsJson = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Also write the ten queries to a file, one a line."),
    ] = None,
) -> None:
    """Find places for people who love wine: shops, bars, wineries …"""
    from agent.places.categories import category_named
    from agent.places.find import Places, find_places
    from agent.places.queries import Queries, QueryGenerationFailed, place_named

    try:
        name, where = category_named(category), place_named(place)
    except ValueError as error:
        fail(str(error), 2)

    async def look_up(resources: "Resources", run: "Run") -> Places:
        return await find_places(name, where, search=resources.search, run=run)

    def help_places(text: str) -> Places:
        return Places(Queries(category, place, ()), note=text)

    try:
        found = _answer("find", f"{category} {place}", look_up, help_places, _place_lines)
    except QueryGenerationFailed as error:
        fail(str(error))
    if save is not None:
        write_file(save, found.queries.as_text)
        typer.echo(f"Saved the queries to {save}.", err=True)
    if as_json:
        found_here = {"results": found.results, "links": found.links, "note": found.note}
        print_json(asdict(found.queries) | found_here)
    else:
        _print(_place_lines(found))


def _answer(
    kind: str,
    asked: str,
    look_up: LookUp,
    crisis_help: Callable[[str], Any],
    lines: Callable[[Any], Iterable[str]],
) -> Any:
    """Return the answer of a traced turn; in a crisis, what `crisis_help` makes of the help text.

    Raises what kept it from an answer.
    """
    from agent.care.concerns import read_care
    from bot.resources import open_resources
    from bot.tracing import open_exporter

    settings = open_settings()

    async def run() -> Any:
        async with open_resources(settings) as resources:
            care = read_care(asked, resources.help.full_age)
            if instead := resources.help.instead(care):
                return crisis_help(instead)
            async with open_exporter(settings, resources.sessions):
                answer = await _traced(resources, kind, asked, look_up, lines)
        return replace(answer, note=f"{resources.help.beside(care)} {answer.note}".strip())

    return asyncio.run(run())


async def _traced(
    resources: "Resources",
    kind: str,
    asked: str,
    look_up: LookUp,
    lines: Callable[[Any], Iterable[str]],
) -> Any:
    """Return the answer of a traced turn. Raises what kept it from one."""
    from agent.i18n import translate
    from agent.tracing.recorder import Recorder
    from agent.tracing.records import TraceRecord
    from agent.turn import Reply, answer_turn

    raised = list[Exception]()

    async def work(run: "Run") -> "Reply":
        try:
            found = await look_up(resources, run)
        except Exception as error:
            # The command prints it on one line; a log would repeat it.
            raised.append(error)
            failed = type(error).__name__
            return Reply(text=translate("apology"), outcome="failed", error_types=(failed,))
        reply: Reply = found.reply("\n".join(lines(found)))
        return reply

    root = Recorder().turn(TraceRecord("", SESSION, SESSION, name=kind), asked)
    try:
        with root as span:
            reply = await answer_turn(resources.run.for_turn(span=span), work)
    finally:
        await resources.repositories.traces.save([root.trace])
    if raised:
        raise raised[0]
    return reply.answer


def _question(text: str) -> str:
    """Return a question without invisible characters; a blank or too long one ends the command."""
    from agent.documents.passages import LONGEST_QUESTION
    from agent.markdown import visible

    question = visible(text).strip()
    if not any(map(str.isalnum, question)):
        fail("the question has no words in it", 2)
    if len(text) > LONGEST_QUESTION:
        fail(f"the question has more than {LONGEST_QUESTION} characters", 2)
    return question


def _answer_lines(answer: "Answer") -> Iterable[str]:
    if answer.refined_question:
        yield f"Searched for too: {answer.refined_question}\n"
    yield answer.footnoted
    if answer.note:
        yield f"\n{answer.note}"
    for cited in answer.citations:
        yield f"\n[{cited.number}] {cited.title} · {cited.location} ({cited.path})"
        if answer.by_model:
            yield _indented(f"“{cited.passage}”")


def _quotes_lines(found: "Quotes") -> Iterable[str]:
    for number, quote in enumerate(found.quotes, 1):
        source = f"{quote.source_title} · {quote.source_location} ({quote.path})"
        yield f"{number}. “{quote.content}”"
        yield _indented("\n".join(filter(None, [source, _in_model_words(quote.relevance)]))) + "\n"
    summary = _in_model_words(found.summary) if found.by_model else found.summary
    yield " ".join(filter(None, [summary, found.note]))


def _in_model_words(text: str) -> str:
    from agent.i18n import translate

    return translate("model_words", text=text) if text else ""


def _place_lines(found: "Places") -> Iterable[str]:
    if found.note:
        yield f"{found.note}\n"
    for place in found.results:
        yield f"{place.title}\n  {place.url}"
        yield from map(_indented, filter(None, [place.snippet, place.distance]))
        yield f"  found by: {'; '.join(place.queries)}\n"
    if not found.results:
        for link in found.links:
            yield f"{link.query}\n  {link.url}"


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def _print(lines: Iterable[str]) -> None:
    """Print lines that hold text of documents and the web."""
    for line in lines:
        typer.echo(printable(line))

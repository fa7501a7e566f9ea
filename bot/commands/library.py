"""`sommelier wines` and `sommelier documents`: filling the library and searching it."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Column, Table

from agent.documents.passages import best_passage
from agent.house_sommelier import query_for
from agent.sommelier.contract import price_text
from bot.commands.output import (
    AsJson,
    fail,
    open_settings,
    print_json,
    printable,
    progress_bar,
    show,
    table,
    with_database,
)
from bot.resources import open_documents
from config import Settings
from db.documents import indexing
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore
from db.wines.catalogue import SqlCatalogue
from db.wines.csv_files import CatalogueFileError, Problem
from db.wines.importing import ImportReport, import_catalogue

T = TypeVar("T")

BYTES_PER_MB: Final = 1_000_000

wines_app = typer.Typer(no_args_is_help=True, add_completion=False)
documents_app = typer.Typer(no_args_is_help=True, add_completion=False)


@wines_app.command("import")
def import_wines(
    file: Annotated[Path, typer.Argument(help="A CSV file; docs/wines.md describes it.")],
) -> None:
    """Add the wines of a CSV file, all or none. Wines that are there already are updated."""
    settings = open_settings()

    async def add(sessions: Sessions) -> ImportReport:
        with progress_bar("Importing") as progress:
            return await import_catalogue(sessions, file, progress)

    try:
        report = with_database(settings, add)
    except CatalogueFileError as error:
        typer.echo(f"sommelier: nothing was imported from {file}", err=True)
        show(_problem_table(error.problems), error=True)
        raise typer.Exit(1) from None
    typer.echo(f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged.")
    if report.problems:
        typer.echo("Imported without these details:")
        show(_problem_table(report.problems))


@wines_app.command("search")
def search_wines(
    text: Annotated[str, typer.Argument(help='For example "red for lamb under 25 euros".')],
) -> None:
    """Show the wines that a text asks for."""
    settings = open_settings()

    query = query_for(text)
    found = with_database(settings, lambda sessions: SqlCatalogue(sessions).search(query))
    if not found.wines:
        relax = "; ".join(f"without {name} there are {n}" for name, n in found.relax.items())
        typer.echo(f"No wine fits{': ' + relax if relax else ''}.")
        return
    rows = (
        (
            wine.label,
            wine.style.value,
            ", ".join(filter(None, (wine.region, wine.country))),
            price_text(wine),
            wine.id,
        )
        for wine in found.wines
    )
    dim = Column("Id", overflow="fold", style="dim")
    show(table(["Wine", "Style", "From", "Price", dim], rows))
    if found.total > len(found.wines):
        typer.echo(f"{len(found.wines)} of {found.total} wines.")


@wines_app.command("count")
def count_wines() -> None:
    """Show how many wines the catalogue holds."""
    settings = open_settings()

    typer.echo(with_database(settings, lambda sessions: SqlCatalogue(sessions).count()))


@documents_app.command("add")
def add_documents(
    paths: Annotated[list[Path], typer.Argument(help="Markdown, text, HTML and PDF, or folders.")],
) -> None:
    """Index files and folders; what has not changed is left alone, what is unreadable reported."""
    settings = open_settings()

    max_bytes = round(settings.documents.max_mb * BYTES_PER_MB)

    async def add(documents: SqlDocumentStore) -> indexing.AddReport:
        with progress_bar("Indexing") as progress:
            return await indexing.add_documents(
                documents, paths, lambda done, total, path: progress(done, total), max_bytes
            )

    report = _with_documents(settings, add)
    counts = (len(report.added), len(report.updated), len(report.unchanged))
    typer.echo("{} added, {} updated, {} unchanged.".format(*counts))
    if report.embedded:
        typer.echo(f"{report.embedded} parts can be found by meaning now.")
    for note in report.notes:
        typer.echo(printable(f"Note: {note}"))
    for problem in report.problems:
        typer.echo(printable(f"Not added: {problem}"), err=True)
    if report.problems and not any(counts):
        raise typer.Exit(1)


@documents_app.command("list")
def list_documents(as_json: AsJson = False) -> None:
    """Show every document, by path."""
    stored = _with_documents(open_settings(), lambda documents: documents.documents())
    if as_json:
        print_json(stored)
        return
    rows = (
        (each.path, each.title, each.kind, str(each.parts), f"{each.added_at:%Y-%m-%d}")
        for each in stored
    )
    show(table(["Path", "Title", "Kind", Column("Parts", justify="right"), "Added"], rows))
    typer.echo(f"{len(stored)} documents.")


@documents_app.command("remove")
def remove_documents(
    path: Annotated[str, typer.Argument(help="A path that `sommelier documents list` shows.")],
) -> None:
    """Forget a document, or all below a path. The file itself stays."""

    async def forget(documents: SqlDocumentStore) -> tuple[int, int]:
        return await documents.remove(path), await documents.count()

    removed, left = _with_documents(open_settings(), forget)
    if not removed:
        fail(f"there is no document {path}, and none below it; see `sommelier documents list`")
    typer.echo(f"{removed} removed, {left} left.")
    if not left:
        typer.echo("An empty library gets the starter documents again on the next start.")


@documents_app.command("search")
def search_documents(
    text: Annotated[str, typer.Argument(help="What the documents are to speak of.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many passages at most.")] = 6,
    as_json: AsJson = False,
) -> None:
    """Show the passages that fit best, without asking a model."""
    settings = open_settings()

    found = _with_documents(settings, lambda documents: documents.search([text], limit))
    if as_json:
        print_json([asdict(each) | {"location": each.location} for each in found])
        return
    for chunk in found:
        typer.echo(printable(f"{chunk.title} · {chunk.location} ({chunk.path})"))
        typer.echo(printable(f"{best_passage(chunk.text, text)}\n"))
    if not found:
        typer.echo("No document speaks of this.")


def _with_documents(settings: Settings, work: Callable[[SqlDocumentStore], Awaitable[T]]) -> T:

    async def run(sessions: Sessions) -> T:
        async with open_documents(settings, sessions) as documents:
            return await work(documents)

    return with_database(settings, run)


def _problem_table(problems: Iterable[Problem]) -> Table:
    rows = ((str(each.line or "–"), each.column, each.reason) for each in problems)
    return table([Column("Line", justify="right"), "Column", "What is wrong"], rows)

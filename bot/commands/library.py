"""`sommelier wines` and `sommelier documents`: fill and search the catalogue and the documents."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer
from rich.table import Column, Table

from agent.documents.passages import best_passage
from agent.sommelier.answer import format_price
from agent.sommelier.wine import Wine
from bot.commands.output import fail, open_settings, printable, show, table, with_database
from bot.resources import open_embedder
from db.documents.store import SqlDocumentStore
from db.documents.store import add_documents as index_files
from db.engine import Sessions
from db.wines.catalogue import ImportReport, count_samples
from db.wines.catalogue import import_wines as add_wines
from db.wines.lists import (
    SHOWN_PROBLEMS,
    CatalogueFile,
    CatalogueFileError,
    Problem,
    read_catalogue,
)

T = TypeVar("T")

SHOWN_WINES: Final = 5

wines_app = typer.Typer(no_args_is_help=True, add_completion=False)


@wines_app.callback()
def wines() -> None:
    """Fill the catalogue."""


documents_app = typer.Typer(no_args_is_help=True, add_completion=False)


@wines_app.command("import")
def import_wines(
    file: Annotated[
        Path, typer.Argument(help="A CSV file or workbook of your shop or cellar program.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Import what can be, without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    without_samples: Annotated[
        bool, typer.Option("--without-samples", help="Take the starter wines out of stock.")
    ] = False,
) -> None:
    """Add or update the wines of a file; wines that left the file are out of stock.

    On a terminal you first see how the file was understood. In a pipe a file with bad rows is not
    imported, unless with --yes.
    """
    settings = open_settings()
    asks = sys.stdin.isatty() and not yes
    try:
        read = read_catalogue(file)
    except CatalogueFileError as error:
        _refuse(file, error.problems)
    if read.problems and not (yes or dry_run or asks):
        _refuse(file, read.problems)

    def add(sessions: Sessions, *, dry_run: bool = False) -> Awaitable[ImportReport]:
        return add_wines(sessions, read, without_samples=without_samples, dry_run=dry_run)

    if dry_run or asks:
        _show_preview(read)
        typer.echo(f"Would be: {_counts(with_database(settings, partial(add, dry_run=True)))}")
        bad = len({problem.line for problem in read.problems})
        needs = f" {bad} need attention." if bad else ""
        question = f"Import {len(read.wines)} of {len(read.wines) + bad}?{needs}"
        if dry_run or not typer.confirm(question):
            typer.echo("Nothing was imported.")
            return
    typer.echo(_counts(with_database(settings, add)))
    if read.problems:
        typer.echo("Not imported:")
        show(_problem_table(read.problems))
    samples = with_database(settings, count_samples)
    if samples and not without_samples:
        typer.echo(f"{samples} starter wines are offered too; --without-samples takes them away.")


def _refuse(file: Path, problems: Sequence[Problem]) -> NoReturn:
    typer.echo(f"sommelier: nothing was imported from {file}", err=True)
    show(_problem_table(problems), error=True)
    raise typer.Exit(1)


def _show_preview(read: CatalogueFile) -> None:
    """Show what each column was taken for, the first wines, and the problems."""
    typer.echo(f"{read.source}, read as {read.read_as}:")
    show(table(["Column", "Is"], ((name, field or "not used") for name, field in read.columns)))
    if "allergens" not in dict(read.columns).values():
        typer.echo(
            "No column tells allergens: sulphites are assumed, egg, milk and fish are not known."
        )
    show(_wine_table(read.wines[:SHOWN_WINES]))
    if read.problems:
        show(_problem_table(read.problems))


def _counts(report: ImportReport) -> str:
    counts = [f"{report.added} added", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    counts += [f"{report.gone} out of stock (not in the file any more)"] if report.gone else []
    return f"{', '.join(counts)}."


def _problem_table(problems: Sequence[Problem]) -> Table:
    rows = [(str(found.line or "–"), found.column, found.reason) for found in problems]
    if len(rows) > SHOWN_PROBLEMS:
        rows[SHOWN_PROBLEMS:] = [("", "", f"... and {len(rows) - SHOWN_PROBLEMS} more")]
    return table([Column("Line", justify="right"), "Column", "What is wrong"], rows)


def _wine_table(wines: Iterable[Wine]) -> Table:
    rows = (
        (wine.label, wine.style.value, f"{wine.region} {wine.country}", format_price(wine), wine.id)
        for wine in wines
    )
    dim = Column("Id", overflow="fold", style="dim")
    return table(["Wine", "Style", "From", "Price", dim], rows)


@documents_app.command("add")
def add_documents(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
) -> None:
    """Index files and folders; unchanged files are left alone, unreadable ones reported."""

    report = _with_documents(lambda documents: index_files(documents, paths))
    added, updated, unchanged = map(len, (report.added, report.updated, report.unchanged))
    typer.echo(f"{added} added, {updated} updated, {unchanged} unchanged.")
    if report.embedded:
        typer.echo(f"{report.embedded} parts can be found by meaning now.")
    for note in report.notes:
        typer.echo(printable(f"Note: {note}"))
    for problem in report.problems:
        typer.echo(printable(f"Not added: {problem}"), err=True)
    if report.problems and not added + updated + unchanged:
        raise typer.Exit(1)


@documents_app.command("list")
def list_documents() -> None:
    """Show every document, by path."""
    stored = _with_documents(lambda documents: documents.documents())
    rows = (
        (entry.path, entry.title, entry.kind, str(entry.parts), f"{entry.added_at:%Y-%m-%d}")
        for entry in stored
    )
    show(table(["Path", "Title", "Kind", Column("Parts", justify="right"), "Added"], rows))
    typer.echo(f"{len(stored)} documents.")


@documents_app.command("remove")
def remove_documents(
    path: Annotated[str, typer.Argument(help="A path that `sommelier documents list` shows.")],
) -> None:
    """Forget a document, or all below a path. The file itself stays."""

    async def remove(documents: SqlDocumentStore) -> tuple[int, int]:
        return await documents.remove(path), await documents.count()

    removed, left = _with_documents(remove)
    if not removed:
        fail(f"there is no document {path}, and none below it; see `sommelier documents list`")
    typer.echo(f"{removed} removed, {left} left.")
    if not left:
        typer.echo("An empty library gets the starter documents again on the next start.")


@documents_app.command("search")
def search_documents(
    text: Annotated[str, typer.Argument(help="What the documents are to speak of.")],
) -> None:
    """Show the passages that fit best, without asking a model."""
    found = _with_documents(lambda documents: documents.search([text]))
    for chunk in found:
        typer.echo(printable(f"{chunk.title} · {chunk.location} ({chunk.path})"))
        typer.echo(printable(f"{best_passage(chunk.text, text)}\n"))
    if not found:
        typer.echo("No document speaks of this.")


def _with_documents(work: Callable[[SqlDocumentStore], Awaitable[T]]) -> T:
    settings = open_settings()

    async def run(sessions: Sessions) -> T:
        async with open_embedder(settings) as embedder:
            return await work(SqlDocumentStore(sessions, embedder=embedder))

    return with_database(settings, run)

"""`sommelier wines` and `sommelier documents`: fill and search the catalogue and the documents."""

import asyncio
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
from bot.commands.output import (
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    run_with_database,
)
from bot.resources import open_embedder
from db.documents.store import SqlDocumentStore
from db.documents.store import add_documents as index_files
from db.engine import Sessions
from db.wines.catalogue import ImportReport, count_samples
from db.wines.catalogue import import_wines as add_wines
from db.wines.lists import (
    MAX_SHOWN_PROBLEMS,
    CatalogueFile,
    CatalogueFileError,
    Problem,
    read_catalogue_safely,
)

T = TypeVar("T")

PREVIEW_WINES: Final = 5

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
    is_interactive = sys.stdin.isatty() and not yes
    try:
        catalogue = asyncio.run(read_catalogue_safely(file))
    except CatalogueFileError as error:
        _refuse(file, error.problems)
    if catalogue.problems and not (yes or dry_run or is_interactive):
        _refuse(file, catalogue.problems)

    def add(sessions: Sessions, *, dry_run: bool = False) -> Awaitable[ImportReport]:
        return add_wines(sessions, catalogue, without_samples=without_samples, dry_run=dry_run)

    if dry_run or is_interactive:
        preview = run_with_database(settings, partial(add, dry_run=True))
        if not _confirm(catalogue, preview, dry_run=dry_run):
            typer.echo("Nothing was imported.")
            return
    typer.echo(_format_report(run_with_database(settings, add)))
    if catalogue.problems:
        typer.echo("Not imported:")
        print_table(_problem_table(catalogue.problems))
    samples = run_with_database(settings, count_samples)
    if samples and not without_samples:
        typer.echo(f"{samples} starter wines are offered too; --without-samples takes them away.")


def _refuse(file: Path, problems: Sequence[Problem]) -> NoReturn:
    typer.echo(f"sommelier: nothing was imported from {file}", err=True)
    print_table(_problem_table(problems), error=True)
    raise typer.Exit(1)


def _confirm(catalogue: CatalogueFile, preview: ImportReport, *, dry_run: bool) -> bool:
    """Show how a file would be imported; return whether to import it."""
    typer.echo(f"{catalogue.source}, read as {catalogue.read_as}:")
    columns = ((name, field or "not used") for name, field in catalogue.columns)
    print_table(build_table(["Column", "Is"], columns))
    if "allergens" not in dict(catalogue.columns).values():
        typer.echo(
            "No column tells allergens: sulphites are assumed, egg, milk and fish are not known."
        )
    print_table(_wine_table(catalogue.wines[:PREVIEW_WINES]))
    if catalogue.problems:
        print_table(_problem_table(catalogue.problems))
    typer.echo(f"Would be: {_format_report(preview)}")
    bad_rows = len({problem.line for problem in catalogue.problems})
    warning = f" {bad_rows} need attention." if bad_rows else ""
    total = len(catalogue.wines) + bad_rows
    question = f"Import {len(catalogue.wines)} of {total}?{warning}"
    return not dry_run and typer.confirm(question)


def _format_report(report: ImportReport) -> str:
    counts = [f"{report.added} added", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    counts += [f"{report.gone} out of stock (not in the file any more)"] if report.gone else []
    return f"{', '.join(counts)}."


def _problem_table(problems: Sequence[Problem]) -> Table:
    rows = [(str(problem.line or "–"), problem.column, problem.reason) for problem in problems]
    if len(rows) > MAX_SHOWN_PROBLEMS:
        rows[MAX_SHOWN_PROBLEMS:] = [("", "", f"... and {len(rows) - MAX_SHOWN_PROBLEMS} more")]
    return build_table([Column("Line", justify="right"), "Column", "What is wrong"], rows)


def _wine_table(wines: Iterable[Wine]) -> Table:
    rows = (
        (wine.label, wine.style.value, f"{wine.region} {wine.country}", format_price(wine), wine.id)
        for wine in wines
    )
    id_column = Column("Id", overflow="fold", style="dim")
    return build_table(["Wine", "Style", "From", "Price", id_column], rows)


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
        print_text(f"Note: {note}")
    for problem in report.problems:
        print_text(f"Not added: {problem}", error=True)
    if report.problems and not added + updated + unchanged:
        raise typer.Exit(1)


@documents_app.command("list")
def list_documents() -> None:
    """Show every document, by path."""
    entries = _with_documents(lambda documents: documents.list_documents())
    rows = (
        (entry.path, entry.title, entry.kind, str(entry.parts), f"{entry.added_at:%Y-%m-%d}")
        for entry in entries
    )
    parts = Column("Parts", justify="right")
    print_table(build_table(["Path", "Title", "Kind", parts, "Added"], rows))
    typer.echo(f"{len(entries)} documents.")


@documents_app.command("remove")
def remove_documents(
    path: Annotated[str, typer.Argument(help="A path that `sommelier documents list` shows.")],
) -> None:
    """Forget a document, or all below a path. The file itself stays."""

    async def remove(documents: SqlDocumentStore) -> tuple[int, int]:
        return await documents.remove(path), await documents.count()

    removed, remaining = _with_documents(remove)
    if not removed:
        fail(f"there is no document {path}, and none below it; see `sommelier documents list`")
    typer.echo(f"{removed} removed, {remaining} left.")
    if not remaining:
        typer.echo("An empty library gets the starter documents again on the next start.")


@documents_app.command("search")
def search_documents(
    text: Annotated[str, typer.Argument(help="What the documents are to speak of.")],
) -> None:
    """Show the passages that fit best, without asking a model."""
    chunks = _with_documents(lambda documents: documents.search([text]))
    for chunk in chunks:
        print_text(f"{chunk.title} · {chunk.location} ({chunk.path})")
        print_text(f"{best_passage(chunk.text, text)}\n")
    if not chunks:
        typer.echo("No document speaks of this.")


def _with_documents(action: Callable[[SqlDocumentStore], Awaitable[T]]) -> T:
    settings = open_settings()

    async def run(sessions: Sessions) -> T:
        async with open_embedder(settings) as embedder:
            return await action(SqlDocumentStore(sessions, embedder=embedder))

    return run_with_database(settings, run)

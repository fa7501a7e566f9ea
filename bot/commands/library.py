"""`sommelier wines` and `sommelier documents`: fill and search the catalogue and the documents."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer
from rich.table import Column, Table

from agent.documents.passages import best_passage
from agent.fallback import parse_query
from agent.sommelier.cards import price_text
from agent.sommelier.wine import Wine
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
from bot.resources import open_embedder
from config import Settings
from db.documents import indexing
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore
from db.wines.catalogue import SqlCatalogue
from db.wines.importing import ImportReport, count_samples
from db.wines.importing import import_wines as add_wines
from db.wines.lists import CatalogueFile, read_catalogue
from db.wines.tables import SHOWN_PROBLEMS, CatalogueFileError, Problem

T = TypeVar("T")

MAX_FILE_BYTES: Final = 20_000_000
SHOWN_WINES: Final = 5
INTERRUPTED: Final = 130

wines_app = typer.Typer(no_args_is_help=True, add_completion=False)
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
    encoding: Annotated[str | None, typer.Option(help="If it is not found: cp1250, ...")] = None,
) -> None:
    """Add or update the wines of a file; wines that left the file are out of stock.

    On a terminal you first see how the file was understood. In a pipe a file with bad rows is not
    imported, unless with --yes.
    """
    settings = open_settings()
    asks = sys.stdin.isatty() and not yes
    try:
        read = read_catalogue(file, encoding)
    except CatalogueFileError as error:
        _refuse(file, error.problems)
    if read.problems and not (yes or dry_run or asks):
        _refuse(file, read.problems)

    async def add(sessions: Sessions, *, dry_run: bool = False) -> ImportReport:
        with progress_bar("Comparing" if dry_run else "Importing") as progress:
            return await add_wines(
                sessions, read, progress, without_samples=without_samples, dry_run=dry_run
            )

    if dry_run or asks:
        _show_preview(read)
        typer.echo(f"Would be: {_counts(with_database(settings, partial(add, dry_run=True)))}")
        if dry_run or not typer.confirm(_question(read)):
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
    typer.echo(f"{read.source}, read as {read.encoding}:")
    show(table(["Column", "Is"], ((name, field or "not used") for name, field in read.columns)))
    if "allergens" in read.assumed:
        typer.echo(
            "No column tells allergens: sulphites are assumed, egg, milk and fish are not known."
        )
    show(_wine_table(read.wines[:SHOWN_WINES]))
    if read.problems:
        show(_problem_table(read.problems))


def _question(read: CatalogueFile) -> str:
    bad = len({problem.line for problem in read.problems})
    needs = f" {bad} need attention." if bad else ""
    return f"Import {len(read.wines)} of {len(read.wines) + bad}?{needs}"


def _counts(report: ImportReport) -> str:
    counts = [f"{report.added} added", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    counts += [f"{report.gone} out of stock (not in the file any more)"] if report.gone else []
    return f"{', '.join(counts)}."


def _problem_table(problems: Sequence[Problem]) -> Table:
    rows = [
        (str(problem.line or "–"), problem.column, problem.reason)
        for problem in problems[:SHOWN_PROBLEMS]
    ]
    if more := len(problems) - len(rows):
        rows.append(("", "", f"... and {more} more"))
    return table([Column("Line", justify="right"), "Column", "What is wrong"], rows)


def _wine_table(wines: Iterable[Wine]) -> Table:
    rows = (
        (
            wine.label,
            wine.style.value,
            ", ".join(filter(None, (wine.region, wine.country))),
            price_text(wine),
            wine.id,
        )
        for wine in wines
    )
    dim = Column("Id", overflow="fold", style="dim")
    return table(["Wine", "Style", "From", "Price", dim], rows)


@wines_app.command("search")
def search_wines(
    text: Annotated[str, typer.Argument(help='For example "red for lamb under 25 euros".')],
) -> None:
    """Show the wines that a text asks for."""
    query = parse_query(text)
    found = with_database(open_settings(), lambda sessions: SqlCatalogue(sessions).search(query))
    if not found.wines:
        relax = "; ".join(f"without {name} there are {n}" for name, n in found.relax.items())
        typer.echo(f"No wine fits{': ' + relax if relax else ''}.")
        return
    show(_wine_table(found.wines))
    if found.total > len(found.wines):
        typer.echo(f"{len(found.wines)} of {found.total} wines.")


@wines_app.command("count")
def count_wines() -> None:
    """Show how many wines the catalogue holds."""
    typer.echo(with_database(open_settings(), lambda sessions: SqlCatalogue(sessions).count()))


@documents_app.command("add")
def add_documents(
    sources: Annotated[list[str], typer.Argument(help="Files, folders, or addresses of the web.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and index what changes, until Ctrl-C.")
    ] = False,
) -> None:
    """Index files and folders; what has not changed is left alone, what is unreadable reported."""
    settings, report = open_settings(), indexing.AddReport()
    pages = [source for source in sources if source.lower().startswith(("http://", "https://"))]
    paths = [Path(source) for source in sources if source not in pages]

    async def add(documents: SqlDocumentStore) -> None:
        with progress_bar("Indexing") as progress:
            await indexing.add_documents(
                documents,
                paths,
                lambda done, total, path: progress(done, total),
                MAX_FILE_BYTES,
                report=report,
            )
        for page in pages:
            await indexing.add_page(documents, page, MAX_FILE_BYTES, report)
        _print_added(report)
        if watch:
            typer.echo("Watching; Ctrl-C ends it.")
            await indexing.watch(partial(add_changed, documents), paths)

    async def add_changed(documents: SqlDocumentStore) -> None:
        _print_added(await indexing.add_documents(documents, paths, max_bytes=MAX_FILE_BYTES))

    try:
        _with_documents(settings, add)
    except KeyboardInterrupt:
        if not watch:
            _print_added(report)
            typer.echo("Stopped. What was added is kept; the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from None
    if report.problems and not (report.added or report.updated or report.unchanged):
        raise typer.Exit(1)


def _print_added(report: indexing.AddReport) -> None:
    added, updated, unchanged = map(len, (report.added, report.updated, report.unchanged))
    typer.echo(f"{added} added, {updated} updated, {unchanged} unchanged.")
    if report.embedded:
        typer.echo(f"{report.embedded} parts can be found by meaning now.")
    for note in report.notes:
        typer.echo(printable(f"Note: {note}"))
    for problem in report.problems:
        typer.echo(printable(f"Not added: {problem}"), err=True)


@documents_app.command("list")
def list_documents(as_json: AsJson = False) -> None:
    """Show every document, by path."""
    stored = _with_documents(open_settings(), lambda documents: documents.documents())
    if as_json:
        print_json(stored)
        return
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

    removed, left = _with_documents(open_settings(), remove)
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
    found = _with_documents(open_settings(), lambda documents: documents.search([text], limit))
    if as_json:
        print_json([asdict(chunk) | {"location": chunk.location} for chunk in found])
        return
    for chunk in found:
        typer.echo(printable(f"{chunk.title} · {chunk.location} ({chunk.path})"))
        typer.echo(printable(f"{best_passage(chunk.text, text)}\n"))
    if not found:
        typer.echo("No document speaks of this.")


def _with_documents(settings: Settings, work: Callable[[SqlDocumentStore], Awaitable[T]]) -> T:

    async def run(sessions: Sessions) -> T:
        async with open_embedder(settings) as embedder:
            return await work(SqlDocumentStore(sessions, embedder))

    return with_database(settings, run)

"""`sommelier wines` and `sommelier documents`: filling the library and searching it."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer
from rich.table import Column, Table

from agent.documents.passages import best_passage
from agent.fallback import query_for
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
from db.wines.importing import CatalogueFile, ImportReport, count_samples, read_catalogue
from db.wines.importing import import_wines as add_wines
from db.wines.tables import SHOWN_PROBLEMS, CatalogueFileError, Problem

T = TypeVar("T")

BYTES_PER_MB: Final = 1_000_000
SHOWN_WINES: Final = 5
INTERRUPTED: Final = 130

wines_app = typer.Typer(no_args_is_help=True, add_completion=False)
documents_app = typer.Typer(no_args_is_help=True, add_completion=False)


@wines_app.command("import")
def import_wines(
    file: Annotated[
        Path, typer.Argument(help="A CSV file, as your shop or cellar program writes it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Import what can be, without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    without_samples: Annotated[
        bool, typer.Option("--without-samples", help="Take the starter wines out of stock.")
    ] = False,
    encoding: Annotated[str | None, typer.Option(help="If it is not found: cp1250, ...")] = None,
) -> None:
    """Add or update the wines of a CSV file; what left the file is out of stock.

    On a terminal you see first how the file was understood. In a pipe a file with bad rows is not
    imported, unless with --yes.
    """
    settings = open_settings()
    try:
        read = read_catalogue(file, encoding)
    except CatalogueFileError as error:
        _refuse(file, error.problems)
    if not (yes or dry_run or sys.stdin.isatty()) and read.problems:
        _refuse(file, read.problems)

    async def add(sessions: Sessions, *, really: bool = True) -> ImportReport:
        with progress_bar("Importing" if really else "Comparing") as progress:
            return await add_wines(
                sessions, read, progress, without_samples=without_samples, dry_run=not really
            )

    if dry_run or (sys.stdin.isatty() and not yes):
        _show_understood(read)
        typer.echo(_told(with_database(settings, partial(add, really=False)), would=True))
        if dry_run or not typer.confirm(_asked(read)):
            typer.echo("Nothing was imported.")
            return
    typer.echo(_told(with_database(settings, add)))
    _show_left(read)
    samples = with_database(settings, count_samples)
    if samples and not without_samples:
        typer.echo(f"{samples} starter wines are offered too; --without-samples takes them away.")


def _refuse(file: Path, problems: Sequence[Problem]) -> NoReturn:
    typer.echo(f"sommelier: nothing was imported from {file}", err=True)
    show(_problem_table(problems), error=True)
    raise typer.Exit(1)


def _asked(read: CatalogueFile) -> str:
    bad = len({each.line for each in read.problems})
    needs = f" {bad} need attention." if bad else ""
    return f"Import {len(read.wines)} of {len(read.wines) + bad}?{needs}"


def _show_left(read: CatalogueFile) -> None:
    """The rows that were not imported, and what of the others was left out."""
    for problems, title in ((read.problems, "Not imported:"), (read.left_out, "Without details:")):
        if problems:
            typer.echo(title)
            show(_problem_table(problems))


def _told(report: ImportReport, *, would: bool = False) -> str:
    counts = [f"{report.added} added", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    counts += [f"{report.gone} out of stock (not in the file any more)"] if report.gone else []
    return f"{'Would be: ' if would else ''}{', '.join(counts)}."


def _show_understood(read: CatalogueFile) -> None:
    """What a file was taken for, and its first wines."""
    typer.echo(f"{read.source}, read as {read.encoding}:")
    show(table(["Column", "Is"], ((name, field or "not used") for name, field in read.columns)))
    if "allergens" in read.assumed:
        typer.echo(
            "No column tells allergens: sulphites are assumed, egg, milk and fish are not known."
        )
    first = (
        (wine.label, wine.style.value, wine.country, price_text(wine), wine.id)
        for wine in read.wines[:SHOWN_WINES]
    )
    show(table(["Wine", "Style", "From", "Price", "Id"], first))
    if read.problems:
        show(_problem_table(read.problems))


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
    sources: Annotated[list[str], typer.Argument(help="Files, folders, or addresses of the web.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and index what changes, until Ctrl-C.")
    ] = False,
) -> None:
    """Index files and folders; what has not changed is left alone, what is unreadable reported."""
    settings, report = open_settings(), indexing.AddReport()

    max_bytes = round(settings.documents.max_mb * BYTES_PER_MB)
    pages = [each for each in sources if each.lower().startswith(("http://", "https://"))]
    paths = [Path(each) for each in sources if each not in pages]

    async def add(documents: SqlDocumentStore) -> None:
        with progress_bar("Indexing") as progress:
            await indexing.add_documents(
                documents,
                paths,
                lambda done, total, path: progress(done, total),
                max_bytes,
                report=report,
            )
        for page in pages:
            await indexing.add_page(documents, page, max_bytes, report)

    async def go_on(documents: SqlDocumentStore) -> None:
        async def add_changed() -> None:
            changed = await indexing.add_documents(documents, paths, max_bytes=max_bytes)
            _print_added(changed)

        await add(documents)
        _print_added(report)
        typer.echo("Watching; Ctrl-C ends it.")
        await indexing.watch(add_changed, paths)

    try:
        _with_documents(settings, go_on if watch else add)
    except KeyboardInterrupt:
        if not watch:
            _print_added(report)
            typer.echo("Stopped. What was added is kept; the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from None
    _print_added(report)
    if report.problems and not (report.added or report.updated or report.unchanged):
        raise typer.Exit(1)


def _print_added(report: indexing.AddReport) -> None:
    counts = (len(report.added), len(report.updated), len(report.unchanged))
    typer.echo("{} added, {} updated, {} unchanged.".format(*counts))
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


def _problem_table(problems: Sequence[Problem]) -> Table:
    shown = [
        (str(each.line or "–"), each.column, each.reason) for each in problems[:SHOWN_PROBLEMS]
    ]
    if more := len(problems) - len(shown):
        shown.append(("", "", f"... and {more} more"))
    return table([Column("Line", justify="right"), "Column", "What is wrong"], shown)

"""`sommelier documents`: add, list, remove and search documents."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Column

from agent.documents.passages import find_best_passage
from bot.commands.output import (
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    run_with_database,
    show_status,
)
from bot.resources import open_embedder
from db.documents.adding import AddReport
from db.documents.adding import add_documents as index_files
from db.documents.store import SqlDocumentStore
from db.engine import Sessions

T = TypeVar("T")

documents_app = typer.Typer(no_args_is_help=True, add_completion=False)


@documents_app.command("add")
def add_documents(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
) -> None:
    """Index files and folders. Unchanged files are skipped, unreadable ones are reported."""
    with show_status("Reading") as status:

        async def add(documents: SqlDocumentStore) -> AddReport:
            return await index_files(documents, paths, status.update)

        report = _with_documents(add)
    added = len(report.added)
    updated = len(report.updated)
    unchanged = len(report.unchanged)
    typer.echo(f"{added} added, {updated} updated, {unchanged} unchanged.")
    if report.embedded:
        typer.echo(f"{report.embedded} parts can be found by meaning now.")
    for note in report.notes:
        print_text(f"Note: {note}")
    for problem in report.problems:
        print_text(f"Not added: {problem}", error=True)
    is_anything_indexed = added + updated + unchanged > 0
    if report.problems and not is_anything_indexed:
        raise typer.Exit(1)


@documents_app.command("list")
def list_documents() -> None:
    """Show every document, by path."""
    entries = _with_documents(SqlDocumentStore.list_documents)
    rows = []
    for entry in entries:
        row = (
            entry.path,
            entry.title,
            entry.kind,
            str(entry.parts),
            f"{entry.added_at:%Y-%m-%d}",
        )
        rows.append(row)
    parts_column = Column("Parts", justify="right")
    print_table(build_table(["Path", "Title", "Kind", parts_column, "Added"], rows))
    typer.echo(f"{len(entries)} documents.")


@documents_app.command("remove")
def remove_documents(
    path: Annotated[
        str, typer.Argument(help="A path that `sommelier documents list` shows.")
    ],
) -> None:
    """Forget a document, or all documents in a folder. The files themselves stay."""

    async def remove(documents: SqlDocumentStore) -> tuple[int, int]:
        return await documents.remove(path), await documents.count()

    removed, remaining = _with_documents(remove)
    if not removed:
        fail(
            f"there is no document {path}, and none below it; see `sommelier documents list`"
        )
    typer.echo(f"{removed} removed, {remaining} left.")
    if not remaining:
        typer.echo(
            "An empty library gets the starter documents again on the next start."
        )


@documents_app.command("search")
def search_documents(
    text: Annotated[str, typer.Argument(help="What the documents are to speak of.")],
) -> None:
    """Show the passages that fit best, without asking a model."""
    chunks = _with_documents(lambda documents: documents.search([text]))
    for chunk in chunks:
        passage = find_best_passage(chunk.text, text)
        print_text(f"{chunk.title} · {chunk.location} ({chunk.path})")
        print_text(f"{passage}\n")
    if not chunks:
        typer.echo("No document speaks of this.")


def _with_documents(action: Callable[[SqlDocumentStore], Awaitable[T]]) -> T:
    """Run an action over the documents of the configured database, and return its result."""
    settings = open_settings()

    async def run(sessions: Sessions) -> T:
        async with open_embedder(settings) as embedder:
            return await action(SqlDocumentStore(sessions, embedder=embedder))

    return run_with_database(settings, run)

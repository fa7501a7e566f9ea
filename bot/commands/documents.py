"""`sommelier documents`: what answers and quotes are taken from."""

# ruff: noqa: PLC0415

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.output import fail, printable, progress_bar, show
from bot.commands.settings import open_settings

if TYPE_CHECKING:
    from agent.documents.store import Chunk
    from config import Settings
    from db.documents.indexing import AddReport
    from db.repositories.documents import SqlDocumentStore, StoredDocument

BYTES_PER_MB = 1_000_000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

app = typer.Typer(help="Fill the library and search it.", no_args_is_help=True)


@app.command("add")
def add(
    paths: Annotated[list[Path], typer.Argument(help="Markdown, text, HTML and PDF, or folders.")],
) -> None:
    """Index files and folders; what has not changed is left alone, what is unreadable reported."""
    settings = open_settings("WARNING")
    report = asyncio.run(_add(settings, paths))
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


@app.command("list")
def list_documents(as_json: AsJson = False) -> None:
    """Show every document, by path."""
    settings = open_settings("WARNING")

    async def read() -> "list[StoredDocument]":
        async with _open(settings) as documents:
            return await documents.documents()

    from bot.commands.tables import document_table

    stored = asyncio.run(read())
    if as_json:
        _print_json(map(_document_json, stored))
        return
    show(document_table(stored))
    typer.echo(f"{len(stored)} documents.")


@app.command("remove")
def remove(
    path: Annotated[str, typer.Argument(help="A path that `sommelier documents list` shows.")],
) -> None:
    """Forget a document, or all below a path. The file itself stays."""
    settings = open_settings("WARNING")

    async def forget() -> tuple[int, int]:
        async with _open(settings) as documents:
            return await documents.remove(path), await documents.count()

    removed, left = asyncio.run(forget())
    if not removed:
        fail(f"there is no document {path}, and none below it; see `sommelier documents list`")
    typer.echo(f"{removed} removed, {left} left.")
    if not left:
        typer.echo("An empty library gets the starter documents again on the next start.")


@app.command("search")
def search(
    text: Annotated[str, typer.Argument(help="What the documents are to speak of.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many passages at most.")] = 6,
    as_json: AsJson = False,
) -> None:
    """Show the passages that fit best, without asking a model."""
    settings = open_settings("WARNING")
    from agent.documents.passages import best_passage

    async def look_up() -> "list[Chunk]":
        async with _open(settings) as documents:
            return await documents.search([text], limit)

    found = asyncio.run(look_up())
    if as_json:
        _print_json(map(_chunk_json, found))
        return
    for chunk in found:
        typer.echo(printable(f"{chunk.title} · {chunk.location} ({chunk.path})"))
        typer.echo(printable(f"{best_passage(chunk.text, text)}\n"))
    if not found:
        typer.echo("No document speaks of this.")


def _document_json(document: "StoredDocument") -> dict[str, object]:
    return {
        "path": document.path,
        "title": document.title,
        "kind": document.kind,
        "parts": document.parts,
        "bytes": document.size,
        "added_at": document.added_at.isoformat(),
    }


def _chunk_json(chunk: "Chunk") -> dict[str, object]:
    return {
        "path": chunk.path,
        "title": chunk.title,
        "location": chunk.location,
        "text": chunk.text,
        "score": chunk.score,
    }


def _print_json(found: Iterable[dict[str, object]]) -> None:
    typer.echo(json.dumps(list(found), ensure_ascii=False, indent=2))


@asynccontextmanager
async def _open(settings: "Settings") -> AsyncIterator["SqlDocumentStore"]:
    from bot.resources import open_database, open_documents

    async with (
        open_database(settings) as sessions,
        open_documents(settings, sessions) as documents,
    ):
        yield documents


async def _add(settings: "Settings", paths: list[Path]) -> "AddReport":
    from db.documents.indexing import add_documents

    max_bytes = round(settings.documents.max_mb * BYTES_PER_MB)
    async with _open(settings) as documents:
        with progress_bar("Indexing") as progress:
            return await add_documents(
                documents,
                paths,
                lambda done, total, path: progress(done, total),
                max_bytes,
            )

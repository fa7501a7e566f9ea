"""Add files and folders to the stored documents. Only changed files are indexed again."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.files import Unreadable, parse_in_process
from agent.text import strip_unstorable
from db.documents.reading import Document, hash_content, read_bytes, read_document
from db.documents.store import (
    STARTER_PREFIX,
    SaveResult,
    SqlDocumentStore,
    ignore_progress,
)

READ_SECONDS: Final = 60
"""How much processor time a document may take. The longest books need 20 s."""
STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"


@dataclass(slots=True)
class AddReport:
    """The report of what was done with files.

    `added`, `updated` and `unchanged` have their paths. `problems` are lines about files that
    cannot be read, `notes` are lines about files that somebody should check. `embedded` is the
    number of chunks that were embedded.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    embedded: int = 0


async def add_documents(
    store: SqlDocumentStore,
    paths: Sequence[Path],
    show_progress: Callable[[str], None] = ignore_progress,
) -> AddReport:
    """Index files and folders. Go on if a file cannot be read, and report it.

    `show_progress` is called with texts. The stored path of a file in a folder begins with the name
    of the folder. The stored path of any other file is its path as given.
    """
    report = AddReport()
    files = await asyncio.to_thread(_list_files, paths, report.problems)
    stored_documents = await store.list_documents()
    stored_hashes = {row.path: row.content_hash for row in stored_documents}
    paths_by_result: dict[SaveResult, list[str]] = {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
    }
    for number, (path, file) in enumerate(files.items(), start=1):
        show_progress(f"{number} of {len(files)} files read")
        try:
            data = await asyncio.to_thread(read_bytes, file)
            if hash_content(data) == stored_hashes.get(path):
                report.unchanged.append(path)
                continue
            document = await parse_in_process(
                read_document,
                data,
                path,
                seconds=READ_SECONDS,
            )
        except Unreadable as error:
            report.problems.append(f"{path} {error}")
            continue
        (result,) = await store.save(document)
        paths_by_result[result].append(path)
        if document.note:
            report.notes.append(f"{path} {document.note}")
    report.embedded = await store.embed_missing(show_progress)
    return report


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> None:
    """Index the starter documents in one transaction, if there are no documents yet."""
    if await store.count():
        return

    def read_all() -> list[Document]:
        read: list[Document] = []
        for file in sorted(folder.rglob("*.md")):
            path_in_folder = file.relative_to(folder).as_posix()
            stored_path = f"{STARTER_PREFIX}{path_in_folder}"
            document = read_document(read_bytes(file), stored_path)
            read.append(document)
        return read

    documents = await asyncio.to_thread(read_all)
    await store.save(*documents)


def _list_files(paths: Iterable[Path], problems: list[str]) -> dict[str, Path]:
    """Return all files except hidden ones, by their stored paths.

    What cannot be read is added to `problems`.
    """
    files: dict[str, Path] = {}
    for path in paths:
        if not path.is_dir():
            files.setdefault(_stored_path(path), path)
            continue
        # The name of "." is that of the folder for which it stands.
        folder = path.resolve()
        for file in _walk(path, problems):
            stored_path = _stored_path(folder.name / file.relative_to(path))
            if file.resolve().is_relative_to(folder):
                files.setdefault(stored_path, file)
            else:
                problems.append(
                    f"{stored_path} is a link that leaves the folder; copy the file"
                )
    return files


def _walk(folder: Path, problems: list[str]) -> Iterator[Path]:
    """Yield all files below a folder except hidden ones.

    What cannot be read is added to `problems`.
    """

    def report(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for parent, folders, names in os.walk(folder, onerror=report):
        visible_folders = [name for name in folders if not name.startswith(".")]
        # `os.walk` goes on to the folders that are left in its list.
        folders[:] = sorted(visible_folders)
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(parent) / name


def _stored_path(path: Path) -> str:
    """Return a path on one line and without square brackets, so that a citation can have it."""
    lines = strip_unstorable(path.as_posix()).splitlines()
    one_line = " ".join(lines)
    return one_line.replace("[", "(").replace("]", ")")

"""Add files, folders and pages to the documents; only what changed is indexed again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from agent import lengths
from agent.senses.pdf import Unreadable
from agent.senses.sent_files import run_in_process
from agent.text import storable
from db.documents.reading import (
    MAX_FILE_BYTES,
    Document,
    content_hash,
    read_bytes,
    read_document,
)
from db.documents.web import fetch
from db.repositories.documents import SqlDocumentStore

STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
STARTER_NAME: Final = "starter"
FILES_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 1_000_000
"""The size of a transaction, for which other writers wait."""

Progress = Callable[[int, int, str], None]
"""Called with the number of files done, of all files, and the path just done."""
Fetch = Callable[[str, int], Awaitable[tuple[str, bytes]]]


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that was not read, or may not have been read well, and the reason."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


@dataclass(slots=True)
class AddReport:
    """The paths of all files by what became of them, and the number of chunks given a vector.

    `notes` are about files that were indexed.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    embedded: int = 0


async def add_documents(
    store: SqlDocumentStore,
    paths: Sequence[Path],
    progress: Progress | None = None,
    max_bytes: int = MAX_FILE_BYTES,
    name: str | None = None,
    *,
    all_or_none: bool = False,
    report: AddReport | None = None,
) -> AddReport:
    """Index files and folders; a file that cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name, or `name`, and its path below it; a file that
    is named itself is known as it was given. `report` is filled as files are stored.
    """
    report = report or AddReport()
    files = await asyncio.to_thread(_files, paths, name, report.problems)
    hashes = await store.hashes()
    batch: list[Document] = []
    for done, (path, file) in enumerate(files.items(), 1):
        try:
            document = await asyncio.to_thread(_read, file, path, hashes.get(path), max_bytes)
        except Unreadable as error:
            report.problems.append(Problem(path, str(error)))
        else:
            if document is None:
                report.unchanged.append(path)
            else:
                batch.append(document)
        if not all_or_none and _is_full(batch):
            await _save(store, batch, report)
            batch = []
        if progress:
            progress(done, len(files), path)
    await _save(store, batch, report)
    report.embedded = await store.embed_missing()
    return report


async def add_page(
    store: SqlDocumentStore, url: str, max_bytes: int, report: AddReport, fetch: Fetch = fetch
) -> None:
    """Index a page or file of the web; the reason why it cannot be read is reported."""
    try:
        path, data = await fetch(url, max_bytes)
        if (await store.hashes()).get(path) == content_hash(data):
            report.unchanged.append(path)
            return
        document = await run_in_process(read_document, data, path, seconds=lengths.READING_SECONDS)
    except Unreadable as error:
        report.problems.append(Problem(url, str(error)))
        return
    except (TimeoutError, MemoryError):
        report.problems.append(Problem(url, "takes too long or too much memory to read"))
        return
    await _save(store, [document], report)
    report.embedded += await store.embed_missing()


async def watch(
    add: Callable[[], Awaitable[object]], paths: Sequence[Path], seconds: float = 1.0
) -> NoReturn:
    """Call `add` whenever files have changed and then not for `seconds`; never return.

    Deleted files stay indexed until they are removed: a folder may be gone for a moment only.
    """
    added = before = await asyncio.to_thread(_states, paths)
    while True:
        await asyncio.sleep(seconds)
        now = await asyncio.to_thread(_states, paths)
        if now == before and now != added:
            await add()
            added = now
        before = now


def _states(paths: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """Return the time of change and the size of each file."""
    states = {}
    for path, file in _files(paths, None, []).items():
        with suppress(OSError):
            found = file.stat()
            states[path] = found.st_mtime_ns, found.st_size
    return states


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> AddReport | None:
    """Index the starter documents, all or none, if there are no documents; else return None."""
    if await store.count() or not await asyncio.to_thread(folder.is_dir):
        return None
    return await add_documents(store, [folder], name=STARTER_NAME, all_or_none=True)


def _is_full(batch: Sequence[Document]) -> bool:
    size = sum(document.size for document in batch)
    return len(batch) >= FILES_AT_ONCE or size >= BYTES_AT_ONCE


async def _save(store: SqlDocumentStore, batch: Sequence[Document], report: AddReport) -> None:
    """Store a batch and report it."""
    fates = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    for document, fate in zip(batch, await store.save(*batch), strict=True):
        fates[fate].append(document.path)
        if document.note:
            report.notes.append(Problem(document.path, document.note))


def _read(file: Path, path: str, known_hash: str | None, max_bytes: int) -> Document | None:
    """Return the document, or None if its content is stored already."""
    if len(path) > lengths.FILE_NAME:
        raise Unreadable(f"has a name of over {lengths.FILE_NAME} characters; rename it")
    data = read_bytes(file, max_bytes)
    return None if content_hash(data) == known_hash else read_document(data, path)


def _files(paths: Sequence[Path], name: str | None, problems: list[Problem]) -> dict[str, Path]:
    """Return all files by the paths they are known by; hidden files and folders are left out."""
    files: dict[str, Path] = {}
    for path in paths:
        if not path.is_dir():
            files.setdefault(_known_as(path), path)
            continue
        root = Path(name or path.resolve().name)

        def report(error: OSError, folder: Path = path, root: Path = root) -> None:
            known = _known_as(root / Path(error.filename).relative_to(folder))
            problems.append(Problem(known, f"cannot be read: {error.strerror or error}"))

        for parent, folders, names in os.walk(path, onerror=report):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            for file in (Path(parent) / found for found in sorted(names) if found[0] != "."):
                files.setdefault(_known_as(root / file.relative_to(path)), file)
    return files


def _known_as(path: Path) -> str:
    """Return a path on one line, as a citation names it."""
    return " ".join(storable(path.as_posix()).splitlines())

"""Adding files and folders to the knowledge base: only what changed is indexed again."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from db.documents.reading import (
    MAX_FILE_BYTES,
    Document,
    Problem,
    read_bytes,
    read_document,
)
from db.repositories.documents import SqlDocumentStore
from db.search_text import storable

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the path just done."""

STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
STARTER_NAME: Final = "starter"


@dataclass(slots=True)
class AddReport:
    """What became of every file: paths, and problems with their reasons.

    `notes` are files that were indexed, and what a person should know about them. `embedded` counts
    the chunks that were given a vector.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A file to add, and the path it will be known by."""

    file: Path
    path: str


async def add_documents(
    store: SqlDocumentStore,
    paths: Sequence[Path],
    progress: Progress | None = None,
    max_bytes: int = MAX_FILE_BYTES,
    name: str | None = None,
) -> AddReport:
    """Index files and folders; what cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name and its path below it, with `/` between; `name`
    takes the place of the folder's own. A file that is named itself is known as it was given.
    """
    report = AddReport()
    files = await asyncio.to_thread(lambda: list(_files(paths, name, report.problems)))
    hashes = await store.hashes()
    for done, found in enumerate(files, 1):
        await _add(store, found, hashes, max_bytes, report)
        if progress:
            progress(done, len(files), found.path)
    report.embedded = await store.embed_missing()
    return report


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> AddReport | None:
    """Index the starter documents where there are none yet; None if there are some."""
    if await store.count() or not await asyncio.to_thread(folder.is_dir):
        return None
    return await add_documents(store, [folder], name=STARTER_NAME)


async def _add(
    store: SqlDocumentStore,
    found: Found,
    hashes: Mapping[str, str],
    max_bytes: int,
    report: AddReport,
) -> None:
    document = await asyncio.to_thread(_read, found, hashes.get(found.path), max_bytes)
    if document is None:
        report.unchanged.append(found.path)
    elif isinstance(document, Problem):
        report.problems.append(document)
    else:
        fate = await store.save(document)
        fates = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
        fates[fate].append(found.path)
        if document.note:
            report.notes.append(Problem(found.path, document.note))


def _read(found: Found, known_hash: str | None, max_bytes: int) -> Document | Problem | None:
    """The document, or None if its content is the one that is known already."""
    content = read_bytes(found.file, found.path, max_bytes)
    if isinstance(content, Problem):
        return content
    return None if content.hash == known_hash else read_document(content, found.path)


def _files(paths: Sequence[Path], name: str | None, problems: list[Problem]) -> Iterator[Found]:
    """All files of `paths`, each path once, in order; hidden files and folders are left out."""
    seen: set[str] = set()
    for path in paths:
        found = _in_folder(path, name, problems) if path.is_dir() else [_as_given(path)]
        for file in found:
            if file.path not in seen:
                seen.add(file.path)
                yield file


def _as_given(path: Path) -> Found:
    return Found(path, storable(path.as_posix()))


def _in_folder(folder: Path, name: str | None, problems: list[Problem]) -> Iterator[Found]:
    root = name or folder.resolve().name

    def known_as(path: Path) -> str:
        return storable((Path(root) / path.relative_to(folder)).as_posix())

    def unreadable(error: OSError) -> None:
        path = known_as(Path(error.filename))
        problems.append(Problem(path, f"cannot be read: {error.strerror or error}"))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(below for below in folders if not below.startswith("."))
        for file in sorted(files):
            if not file.startswith("."):
                yield Found(Path(parent) / file, known_as(Path(parent) / file))

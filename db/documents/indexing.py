"""Adding files and folders to the knowledge base: only what changed is indexed again."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from db.documents.reading import (
    MAX_FILE_BYTES,
    Content,
    Document,
    Problem,
    read_bytes,
    read_document,
)
from db.models import storable
from db.repositories.documents import SqlDocumentStore

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the path just done."""

STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
STARTER_NAME: Final = "starter"

FILES_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 1_000_000
"""What is stored in one go: others who write wait for so long."""


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
    *,
    all_or_none: bool = False,
) -> AddReport:
    """Index files and folders; what cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name and its path below it, with `/` between; `name`
    takes the place of the folder's own. A file that is named itself is known as it was given. Some
    files are stored at a time, unless it is `all_or_none`.
    """
    report = AddReport()
    files = await asyncio.to_thread(lambda: list(_files(paths, name, report.problems)))
    hashes = await store.hashes()
    read: list[Document] = []
    for done, found in enumerate(files, 1):
        known = hashes.get(found.path)
        read += await asyncio.to_thread(_read, found, known, max_bytes, report)
        if done == len(files) or (not all_or_none and _are_enough(read)):
            await _save(store, read, report)
            read = []
        if progress:
            progress(done, len(files), found.path)
    report.embedded = await store.embed_missing()
    return report


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> AddReport | None:
    """Index the starter documents where there are none yet; None if there are some.

    All at once: after a crash in between, some would pass for the choice of an admin.
    """
    if await store.count() or not await asyncio.to_thread(folder.is_dir):
        return None
    return await add_documents(store, [folder], name=STARTER_NAME, all_or_none=True)


async def _save(store: SqlDocumentStore, read: Sequence[Document], report: AddReport) -> None:
    fates = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    for document, fate in zip(read, await store.save(*read) if read else [], strict=True):
        fates[fate].append(document.path)
        if document.note:
            report.notes.append(Problem(document.path, document.note))


def _are_enough(read: Sequence[Document]) -> bool:
    return len(read) >= FILES_AT_ONCE or sum(document.size for document in read) >= BYTES_AT_ONCE


def _read(
    found: Found, known_hash: str | None, max_bytes: int, report: AddReport
) -> list[Document]:
    """The document, if it can be read and its content is not the one that is known already."""
    content = read_bytes(found.file, found.path, max_bytes)
    if isinstance(content, Content) and content.hash == known_hash:
        report.unchanged.append(found.path)
        return []
    document = content if isinstance(content, Problem) else read_document(content, found.path)
    if isinstance(document, Problem):
        report.problems.append(document)
        return []
    return [document]


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
    return Found(path, _known_as(path))


def _known_as(path: Path) -> str:
    """A path on one line: a citation has to stand on one."""
    return " ".join(storable(path.as_posix()).splitlines())


def _in_folder(folder: Path, name: str | None, problems: list[Problem]) -> Iterator[Found]:
    root = name or folder.resolve().name

    def known_as(path: Path) -> str:
        return _known_as(Path(root) / path.relative_to(folder))

    def unreadable(error: OSError) -> None:
        path = known_as(Path(error.filename))
        problems.append(Problem(path, f"cannot be read: {error.strerror or error}"))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(below for below in folders if not below.startswith("."))
        for file in sorted(files):
            if not file.startswith("."):
                yield Found(Path(parent) / file, known_as(Path(parent) / file))

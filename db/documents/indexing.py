"""Add files and folders to the documents; only what changed is indexed again."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent import lengths
from agent.text import storable
from db.documents.reading import (
    MAX_FILE_BYTES,
    Document,
    Unreadable,
    content_hash,
    read_bytes,
    read_document,
)
from db.repositories.documents import SqlDocumentStore

STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
FILES_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 1_000_000
"""The size of a transaction, for which other writers wait."""


@dataclass(slots=True)
class AddReport:
    """The paths of all files by what became of them, and the number of chunks given a vector.

    `problems` are the paths of files that were not read, each with the reason; `notes` those of
    files that may not have been read well.
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
    max_bytes: int = MAX_FILE_BYTES,
    *,
    name: str | None = None,
    all_or_none: bool = False,
) -> AddReport:
    """Index files and folders; a file that cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name, or `name`, and its path below it; a file that
    is named itself is known as it was given.
    """
    report, batch = AddReport(), list[Document]()
    files = await asyncio.to_thread(_files, paths, name, report.problems)
    hashes = await store.hashes()
    for path, file in files.items():
        try:
            document = await asyncio.to_thread(_read, file, path, hashes.get(path), max_bytes)
        except Unreadable as error:
            report.problems.append(f"{path} {error}")
        else:
            batch += [document] if document else []
            report.unchanged += [] if document else [path]
        size = sum(document.size for document in batch)
        if not all_or_none and (len(batch) >= FILES_AT_ONCE or size >= BYTES_AT_ONCE):
            await _save(store, batch, report)
            batch = []
    await _save(store, batch, report)
    report.embedded = await store.embed_missing()
    return report


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> AddReport | None:
    """Index the starter documents, all or none, if there are no documents; else return None."""
    if await store.count():
        return None
    return await add_documents(store, [folder], name="starter", all_or_none=True)


async def _save(store: SqlDocumentStore, batch: Sequence[Document], report: AddReport) -> None:
    """Store a batch and report it."""
    fates = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    for document, fate in zip(batch, await store.save(*batch), strict=True):
        fates[fate].append(document.path)
        if document.note:
            report.notes.append(f"{document.path} {document.note}")


def _read(file: Path, path: str, known_hash: str | None, max_bytes: int) -> Document | None:
    """Return the document, or None if its content is stored already."""
    if len(path) > lengths.FILE_NAME:
        raise Unreadable(f"has a name of over {lengths.FILE_NAME} characters; rename it")
    data = read_bytes(file, max_bytes)
    return None if content_hash(data) == known_hash else read_document(data, path)


def _files(paths: Sequence[Path], name: str | None, problems: list[str]) -> dict[str, Path]:
    """Return all files by the paths they are known by; hidden files and folders are left out."""
    files: dict[str, Path] = {}

    def report(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for path in paths:
        if not path.is_dir():
            files.setdefault(_known_as(path), path)
            continue
        root = Path(name or path.resolve().name)
        for parent, folders, names in os.walk(path, onerror=report):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            for file in (Path(parent) / name for name in sorted(names) if name[0] != "."):
                files.setdefault(_known_as(root / file.relative_to(path)), file)
    return files


def _known_as(path: Path) -> str:
    """Return a path on one line and without square brackets, as a citation names it."""
    known = " ".join(storable(path.as_posix()).splitlines())
    return known.replace("[", "(").replace("]", ")")

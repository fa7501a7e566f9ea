"""Adding files and folders to the knowledge base: only what changed is indexed again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from agent import lengths
from db.documents.fetching import fetch
from db.documents.reading import (
    MAX_FILE_BYTES,
    Content,
    Document,
    Reader,
    Unreadable,
    read_bytes,
    read_document,
)
from db.models import storable
from db.repositories.documents import SqlDocumentStore

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the path just done."""

Fetch = Callable[[str, int], Awaitable[tuple[str, Content]]]

STARTER: Final = Path(__file__).parent.parent / "starter" / "documents"
STARTER_NAME: Final = "starter"

FILES_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 1_000_000
"""What is stored in one go: others who write wait for so long."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that was not read, or not read as it should be, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


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


async def add_documents(
    store: SqlDocumentStore,
    paths: Sequence[Path],
    progress: Progress | None = None,
    max_bytes: int = MAX_FILE_BYTES,
    name: str | None = None,
    *,
    trusted: bool = False,
    report: AddReport | None = None,
) -> AddReport:
    """Index files and folders; what cannot be read is reported and stops nothing.

    A file of a folder is known by the folder's name and its path below it, with `/` between; `name`
    takes the place of the folder's own. A file that is named itself is known as it was given. Files
    are read in a process of its own, which is ended where one takes too long, while some that were
    read are stored; those that are `trusted` are read here, and stored all or none. `report` is
    filled as files are stored: whoever cancels this finds in it what was kept.
    """
    report, reader = report or AddReport(), Reader()
    read_file = read_document if trusted else reader.read
    files = await asyncio.to_thread(_files, paths, name, report.problems)
    hashes = await store.hashes()
    batch = _Batch(store, report)
    try:
        for done, (path, file) in enumerate(files.items(), 1):
            take = partial(_read, file, path, hashes.get(path), max_bytes, read_file)
            try:
                document = await asyncio.to_thread(take)
            except Unreadable as error:
                report.problems.append(Problem(path, str(error)))
            else:
                if document is None:
                    report.unchanged.append(path)
                else:
                    await batch.add(document, whole=trusted)
            if progress:
                progress(done, len(files), path)
        await batch.save()
    finally:
        await batch.saved()
        await asyncio.to_thread(reader.close)
    report.embedded = await store.embed_missing()
    return report


async def add_page(
    store: SqlDocumentStore, url: str, max_bytes: int, report: AddReport, fetch: Fetch = fetch
) -> None:
    """Index a page or file of the web; what keeps it from being read is reported."""
    reader = Reader()
    try:
        path, content = await fetch(url, max_bytes)
        if (await store.hashes()).get(path) == content.hash:
            report.unchanged.append(path)
            return
        document = await asyncio.to_thread(reader.read, content, path)
    except Unreadable as error:
        report.problems.append(Problem(url, str(error)))
        return
    finally:
        await asyncio.to_thread(reader.close)
    await _save(store, [document], report)
    report.embedded += await store.embed_missing()


async def watch(
    add: Callable[[], Awaitable[object]], paths: Sequence[Path], seconds: float = 1.0
) -> NoReturn:
    """Call `add` each time that files have changed and then not for `seconds`; never ends.

    What is deleted is left to be removed by hand: a folder may be gone for a moment only.
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
    """When each file was changed, and its size."""
    states = {}
    for path, file in _files(paths, None, []).items():
        with suppress(OSError):
            found = file.stat()
            states[path] = found.st_mtime_ns, found.st_size
    return states


class _Batch:
    """Documents that were read: some are stored together, while the next ones are read."""

    def __init__(self, store: SqlDocumentStore, report: AddReport) -> None:
        self._store = store
        self._report = report
        self._read: list[Document] = []
        self._saving: asyncio.Task[None] | None = None

    async def add(self, document: Document, *, whole: bool) -> None:
        """Take one more; unless all are stored as a `whole`, those so far when they are enough."""
        self._read.append(document)
        size = sum(each.size for each in self._read)
        if not whole and (len(self._read) >= FILES_AT_ONCE or size >= BYTES_AT_ONCE):
            await self.saved()
            self._begin()

    async def save(self) -> None:
        """Store all that is left."""
        await self.saved()
        self._begin()
        await self.saved()

    def _begin(self) -> None:
        read, self._read = self._read, []
        self._saving = asyncio.create_task(_save(self._store, read, self._report))

    async def saved(self) -> None:
        """Wait for what is being stored: cancelled or not, it is stored whole, and reported."""
        if self._saving is not None:
            await asyncio.shield(self._saving)


async def load_starter_documents(
    store: SqlDocumentStore, folder: Path = STARTER
) -> AddReport | None:
    """Index the starter documents where there are none yet; None if there are some.

    All at once: after a crash in between, some would pass for the choice of an admin.
    """
    if await store.count() or not await asyncio.to_thread(folder.is_dir):
        return None
    return await add_documents(store, [folder], name=STARTER_NAME, trusted=True)


async def _save(store: SqlDocumentStore, read: Sequence[Document], report: AddReport) -> None:
    fates = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    for document, fate in zip(read, await store.save(*read) if read else [], strict=True):
        fates[fate].append(document.path)
        if document.note:
            report.notes.append(Problem(document.path, document.note))


def _read(
    file: Path,
    path: str,
    known_hash: str | None,
    max_bytes: int,
    read_file: Callable[[Content, str], Document],
) -> Document | None:
    """The document; None if its content is the one that is known already."""
    if len(path) > lengths.FILE_NAME:
        raise Unreadable(f"has a name of over {lengths.FILE_NAME} characters; rename it")
    content = read_bytes(file, max_bytes)
    return None if content.hash == known_hash else read_file(content, path)


def _files(paths: Sequence[Path], name: str | None, problems: list[Problem]) -> dict[str, Path]:
    """All files of `paths` by the path each is known by; hidden files and folders are left out."""
    files: dict[str, Path] = {}
    for path in paths:
        if not path.is_dir():
            files.setdefault(_known_as(path), path)
            continue
        root = Path(name or path.resolve().name)

        def unreadable(error: OSError, folder: Path = path, root: Path = root) -> None:
            known = _known_as(root / Path(error.filename).relative_to(folder))
            problems.append(Problem(known, f"cannot be read: {error.strerror or error}"))

        for parent, folders, found in os.walk(path, onerror=unreadable):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for file in (Path(parent) / each for each in sorted(found) if not each.startswith(".")):
                files.setdefault(_known_as(root / file.relative_to(path)), file)
    return files


def _known_as(path: Path) -> str:
    """A path on one line: a citation has to stand on one."""
    return " ".join(storable(path.as_posix()).splitlines())

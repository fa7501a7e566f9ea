"""Adding files, folders and pages to the knowledge base: only what changed is indexed again.

A page of the web is fetched from a public address only. Its name is looked up once, and the
connection goes to an address that was judged; so does each redirect. Whoever runs the command names
the address: nothing that people or models say gets here.
"""

import asyncio
import hashlib
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, NoReturn
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from agent import lengths
from agent.text import storable
from db.documents.reading import (
    INDEX_VERSION,
    KINDS,
    KINDS_SAID,
    MAX_FILE_BYTES,
    Content,
    Document,
    Reader,
    Unreadable,
    read_bytes,
    read_document,
)
from db.repositories.documents import SqlDocumentStore

SECONDS: Final = 30.0
MOST_REDIRECTS: Final = 5
TYPES: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
TEXTS: Final = ("text/", "application/xhtml")
HEADERS: Final = {"user-agent": "sommelier", "accept-encoding": "identity"}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def fetch(
    url: str,
    max_bytes: int = MAX_FILE_BYTES,
    *,
    resolve: Resolve | None = None,
    allowed: Callable[[Address], bool] | None = None,
) -> tuple[str, Content]:
    """Fetch `url`: the path that it is to be known by, and its content.

    Raises:
        Unreadable: it has no public address, fails, is too large or slow, or of another kind.
    """
    look_up, may = resolve or addresses, allowed or is_public
    try:
        async with asyncio.timeout(SECONDS), httpx.AsyncClient(trust_env=False) as client:
            for _ in range(MOST_REDIRECTS + 1):
                request = await _pinned(client, url, look_up, may)
                response = await client.send(request, stream=True)
                try:
                    if not response.has_redirect_location:
                        return await _content(url, response, max_bytes)
                    url = urljoin(url, response.headers["location"])
                finally:
                    await response.aclose()
    except TimeoutError:
        raise Unreadable(f"did not come within {SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot be fetched: {type(error).__name__}") from error
    raise Unreadable(f"redirects more than {MOST_REDIRECTS} times")


def is_public(address: Address) -> bool:
    """Say whether an address is one of the public internet, in whatever form it is written."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None,))[0]
        if inner is not None:
            return False
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def addresses(host: str, port: int) -> Sequence[str]:
    """Look a name up."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


async def _pinned(
    client: httpx.AsyncClient, url: str, resolve: Resolve, allowed: Callable[[Address], bool]
) -> httpx.Request:
    """A request to an address of the name, all of which are judged; TLS still checks the name."""
    asked = httpx.URL(url)
    if asked.scheme not in {"http", "https"} or not asked.host or asked.userinfo:
        raise Unreadable("is no address of the web that can be added: http or https, no user name")
    port = asked.port or {"http": 80, "https": 443}[asked.scheme]
    found = [ipaddress.ip_address(each) for each in await resolve(asked.raw_host.decode(), port)]
    if not found or not all(map(allowed, found)):
        raise Unreadable("leads to a private address, or to none")
    return client.build_request(
        "GET",
        asked.copy_with(host=str(found[0])),
        headers={**HEADERS, "host": asked.netloc.decode()},
        extensions={"sni_hostname": asked.host},
    )


async def _content(url: str, response: httpx.Response, max_bytes: int) -> tuple[str, Content]:
    if response.status_code != 200:
        raise Unreadable(f"answers {response.status_code}")
    kind, _, rest = response.headers.get("content-type", "").partition(";")
    path = _path_of(url, kind.strip().lower())
    data = await lengths.body_of(response, max_bytes)
    if data is None:
        raise Unreadable(f"has over {max_bytes:,} bytes, which is the limit")
    if not data.strip():
        raise Unreadable("is empty")
    charset = response.charset_encoding if "charset" in rest.lower() else None
    if charset and kind.startswith(TEXTS):
        data = data.decode(charset, "replace").encode("utf-8")
    return path, Content(data, hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest())


def _path_of(url: str, kind: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path).rstrip("/") + (f"?{parts.query}" if parts.query else "")
    suffix = PurePosixPath(unquote(parts.path)).suffix.lower()
    ending = TYPES.get(kind) or (suffix if suffix in KINDS else "")
    if not ending:
        raise Unreadable(f"is of the type {kind or '(none)'}, not {KINDS_SAID}")
    same = KINDS.get(suffix) == KINDS[ending] and not parts.query
    known = f"{parts.hostname}{path}{'' if same else ending}"
    if len(known) > lengths.FILE_NAME:
        raise Unreadable(f"has an address of over {lengths.FILE_NAME} characters")
    return known


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

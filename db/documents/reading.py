"""Reading one file: Markdown, text, HTML or PDF, to its title and its sections.

Whatever a file contains, only `Unreadable` is raised, whose text says why. The parsers of others
may hang or take all memory over a file made for it: a `Reader` runs them in a process of its own.
"""

import codecs
import hashlib
import multiprocessing
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Literal

from agent import lengths
from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block, Outline, Section, outline
from db.models import storable

Kind = Literal["markdown", "text", "html", "pdf"]

MAX_FILE_BYTES: Final = 20_000_000
SHORT_BYTES: Final = 4000
"""Of so few no parser makes much work, but for PDF."""
READER_BYTES: Final = 2_000_000_000
"""Memory that reading a file may take."""
INDEX_VERSION: Final = 3
"""Part of every content hash: raise it when reading, chunking or terms change, and the next `add`
indexes everything anew."""

KINDS: Final[Mapping[str, Kind]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
MARKS: Final = pattern(r"(\p{M}{30})\p{M}+")
"""More marks on one letter than any writing has: to put them in order takes quadratic time."""
SPACES: Final = pattern(r"[-_\s]+")
# The mark of UTF-32 begins like that of UTF-16, so it comes first.
BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Unreadable(ValueError):
    """A file that cannot be read for a reason we can name."""


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file and their hash."""

    data: bytes
    hash: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read. `note` says what a person should know about how; mostly nothing."""

    path: str
    title: str
    kind: Kind
    hash: str
    size: int
    sections: tuple[Section, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """The whole text, sections separated by blank lines."""
        return "\n\n".join(section.text for section in self.sections)


def read_bytes(file: Path, max_bytes: int = MAX_FILE_BYTES) -> Content:
    """Read the content of `file`.

    Raises:
        Unreadable: there is none to index.
    """
    if file.suffix.lower() not in KINDS:
        raise Unreadable("is not Markdown, text, HTML or PDF")
    try:
        if not file.is_file():
            raise Unreadable("is not a file")
        size = file.stat().st_size
        if size > max_bytes:
            raise Unreadable(f"has {size:,} bytes, the limit is {max_bytes:,}; split it")
        data = file.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error
    if not data.strip():
        raise Unreadable("is empty")
    return Content(data, hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest())


class Reader:
    """Reads files in a process of its own, one after the other, each for so many seconds at most.

    It is started with the first file, and again after one at which it had to be ended. Blocks: call
    it in a thread.
    """

    def __init__(self, seconds: float = lengths.READING_SECONDS) -> None:
        self._seconds = seconds
        self._started: tuple[BaseProcess, Connection] | None = None

    def read(self, content: Content, path: str) -> Document:
        """Read what a file says, as `read_document` does.

        Raises:
            Unreadable: it cannot be read, says nothing, or takes too long or too much memory.
        """
        kind = KINDS[Path(path).suffix.lower()]
        if kind == "text" or (kind != "pdf" and len(content.data) <= SHORT_BYTES):
            return read_document(content, path)
        try:
            found = self._answer(content, path)
        except (EOFError, OSError):
            self.close()
            raise Unreadable("takes too much memory to read; split it") from None
        if found is None:
            self.close()
            raise Unreadable(f"takes over {self._seconds:g} s to read; split it")
        if isinstance(found, Unreadable):
            raise found
        return found

    def _answer(self, content: Content, path: str) -> Document | Unreadable | None:
        """What the process says; None if it says nothing in time."""
        _, pipe = self._started = self._started or _start()
        pipe.send((content, path))
        found: Document | Unreadable | None = pipe.recv() if pipe.poll(self._seconds) else None
        return found

    def close(self) -> None:
        """End the process."""
        if self._started is not None:
            process, pipe = self._started
            pipe.close()
            process.kill()
            process.join()
            self._started = None


def _start() -> tuple[BaseProcess, Connection]:
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe()
    process = spawned.Process(target=_read_all, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _read_all(pipe: Connection) -> None:
    """Read what comes until nothing does any more; with a limit of memory where there is one."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (READER_BYTES, READER_BYTES))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            content, path = pipe.recv()
            try:
                pipe.send(read_document(content, path))
            except Unreadable as error:
                pipe.send(error)


def read_document(content: Content, path: str) -> Document:
    """Read what a file says; `path` is how the document will be known.

    Raises:
        Unreadable: it cannot be read, or says nothing.
    """
    kind = KINDS[Path(path).suffix.lower()]
    try:
        found, note = _read(content.data, kind)
    except Unreadable:
        raise
    except Exception as error:
        # The parsers meet whatever people have on their disks, and one file must not stop the rest.
        raise Unreadable(f"cannot be read as {kind}: {type(error).__name__}") from error
    sections = tuple(
        Section(tuple(map(_readable, section.headings)), text)
        for section in found.sections
        if (text := _readable(section.text)).strip()
    )
    if not sections:
        raise Unreadable(f"holds no text{' (a scan?)' if kind == 'pdf' else ''}")
    if sum(len(section.text) for section in sections) > lengths.DOCUMENT:
        raise Unreadable(f"holds over {lengths.DOCUMENT:,} characters of text; split it")
    title = " ".join(_readable(found.title).split()) or _name(path)
    return Document(path, title, kind, content.hash, len(content.data), sections, note)


def _readable(text: str) -> str:
    """What a reader sees: accents with their letters, no hyphen that shows at a line's end only."""
    plain = storable(text).replace("\u00ad", "")
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", MARKS.sub(lambda found: found[1], plain))


def _read(data: bytes, kind: Kind) -> tuple[Outline, str]:
    # Imported late: the parsers are heavy, and most commands read no file.
    from db.documents import formats  # noqa: PLC0415

    if kind == "pdf":
        return formats.read_pdf(data), ""
    text, note = decode(data)
    if kind == "html":
        # Without a byte order mark or UTF-8, a page says itself how it is encoded.
        return formats.read_html(data if note else text), ""
    if kind == "markdown":
        return formats.read_markdown(text), note
    return outline(map(Block, BLANK_LINE.split(text.strip()))), note


def decode(data: bytes) -> tuple[str, str]:
    """Return the text of a file with `\\n` line ends, and a note if its encoding was guessed.

    Raises:
        Unreadable: it is binary.
    """
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "")
    if not encoding and b"\0" in data:
        raise Unreadable("is binary, not text")
    note = ""
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        if encoding:
            raise Unreadable(f"is not {encoding.upper()} as it claims") from error
        text, note = _latin(data), "is not UTF-8 and was read as Latin-1"
    return text.replace("\r\n", "\n").replace("\r", "\n"), note


def _latin(data: bytes) -> str:
    """Latin-1 as it is mostly meant: with the quotation marks, dashes and € of Windows."""
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _name(path: str) -> str:
    words = SPACES.sub(" ", Path(path).stem).strip() or path
    return words[:1].upper() + words[1:]

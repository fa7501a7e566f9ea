"""Reading one file of any of our kinds, to its title and its sections.

Whatever a file contains, only `Unreadable` is raised, whose text says why. The parsers of others
may hang or take all memory over a file made for it: a `Reader` runs them in a process of its own.
"""

import hashlib
import logging
import multiprocessing
import signal
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

from agent import lengths
from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block, Outline, Section, outline
from db.models import storable

R = TypeVar("R")

Kind = Literal["markdown", "text", "html", "pdf", "docx", "epub", "csv", "xlsx"]

MAX_FILE_BYTES: Final = 20_000_000
SHORT_BYTES: Final = 4000
"""Of so few no parser of text makes much work."""
READER_BYTES: Final = 2_000_000_000
"""Memory that reading a file may take."""
INDEX_VERSION: Final = 4
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
    ".docx": "docx",
    ".epub": "epub",
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "xlsx",
}
KINDS_SAID: Final = "Markdown, text, HTML, PDF, Word (.docx), EPUB, CSV or Excel (.xlsx)"
MARKS: Final = pattern(r"(\p{M}{30})\p{M}+")
"""More marks on one letter than any writing has: to put them in order takes quadratic time."""
SPACES: Final = pattern(r"[-_\s]+")


class Unreadable(ValueError):
    """A file that cannot be read for a reason we can name."""


class TakesTooLong(Unreadable):
    """A file whose reading was ended."""


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
        raise Unreadable(f"is not {KINDS_SAID}")
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
    it in a thread. Whoever cannot wait for that ends the process.
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
        if kind in {"text", "markdown"} and len(content.data) <= SHORT_BYTES:
            return read_document(content, path)
        return self.ask(read_document, content, path)

    def ask(self, read: Callable[..., R], *given: object) -> R:
        """Return what `read` makes of what is given; a function of a module, plain data.

        Raises:
            TakesTooLong: it takes too long.
            Unreadable: it says so, or takes too much memory.
        """
        _, pipe = self._started = self._started or _start()
        try:
            pipe.send((read, given))
            is_told = pipe.poll(self._seconds)
            found: R | Unreadable | None = pipe.recv() if is_told else None
        except (EOFError, OSError):
            self.close()
            raise Unreadable("takes too much memory to read; split it") from None
        if not is_told:
            self.close()
            raise TakesTooLong(f"takes over {self._seconds:g} s to read; split it")
        if isinstance(found, Unreadable):
            raise found
        return cast("R", found)

    def kill(self) -> None:
        """End the process, whatever it does: who waits for it is told so."""
        if (started := self._started) is not None:
            started[0].kill()

    @property
    def process(self) -> int | None:
        """The id of the process, if it is running."""
        return self._started[0].pid if self._started else None

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
    # Ctrl-C reaches every process of a terminal: this one is ended by who started it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # what parsers mend is no news, and what they cannot read is reported
    with suppress(EOFError):
        while True:
            read, given = pipe.recv()
            try:
                pipe.send(read(*given))
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
        raise Unreadable("holds no text")
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
    """The outline of a file, and a note on how it was read; parsers are imported when needed."""
    match kind:
        case "pdf":
            from db.documents.pdf import read_pdf  # noqa: PLC0415

            return read_pdf(data)
        case "docx" | "epub" | "xlsx":
            from db.documents import office  # noqa: PLC0415

            readers = {"docx": office.read_docx, "epub": office.read_epub, "xlsx": office.read_xlsx}
            return readers[kind](data), ""
        case _:
            return _read_text(data, kind)


def _read_text(data: bytes, kind: Kind) -> tuple[Outline, str]:
    from db.documents.text import decode, read_markdown  # noqa: PLC0415

    text, note = decode(data, declares=kind == "html")
    match kind:
        case "html":
            from db.documents.html import read_html  # noqa: PLC0415

            return read_html(text), note
        case "markdown":
            return read_markdown(text), note
        case "csv":
            from db.documents.office import read_csv  # noqa: PLC0415

            return read_csv(text), note
        case _:
            return outline(map(Block, BLANK_LINE.split(text.strip()))), note


def _name(path: str) -> str:
    words = SPACES.sub(" ", Path(path).stem).strip() or path
    return words[:1].upper() + words[1:]

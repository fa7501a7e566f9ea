"""Reading one file of any of our kinds, to its title and its sections.

Whatever a file contains, only `Unreadable` is raised, whose text says why. The parsers of others
may hang or take all memory over a file made for it: a `Reader` runs them in a process of its own.
"""

import asyncio
import codecs
import hashlib
import logging
import multiprocessing
import os
import signal
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from agent import lengths
from agent.senses.pictures import (
    LONGEST_SIDE,
    NO_PICTURE,
    TOO_LARGE,
    Pages,
    Unusable,
    as_shown,
    as_url,
    is_light,
)
from agent.text import pattern, storable
from db.documents.chunking import BLANK_LINE, Block, Outline, Section, outline

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

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
SENT_SECONDS: Final = 20.0
"""How long reading a file may take that somebody sent, and waits for."""
LEAST_LETTERS: Final = 40
"""Of a page: what has fewer is a picture of one."""


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
        return self.ask(self._seconds, read_document, content, path)

    def ask(self, seconds: float, read: Callable[..., R], *given: object) -> R:
        """Return what `read` makes of what is given; a function of a module, plain data.

        Raises:
            TakesTooLong: it takes more than so many seconds.
            Unreadable: it says so, fails, or takes too much memory.
            Unusable: it says so.
        """
        _, pipe = self._started = self._started or _start()
        try:
            pipe.send((seconds, read, given))
            is_told = pipe.poll(seconds)
            found: R | Unreadable | Unusable | None = pipe.recv() if is_told else None
        except (EOFError, OSError):
            self.close()
            raise Unreadable("takes too much memory to read; split it") from None
        if not is_told:
            self.close()
            raise TakesTooLong(f"takes over {seconds:g} s to read; split it")
        if isinstance(found, Unreadable | Unusable):
            raise found
        return cast("R", found)

    def kill(self) -> None:
        """End the process and those it began, whatever they do: who waits is told so."""
        if (started := self._started) is not None and (pid := started[0].pid):
            with suppress(ProcessLookupError):  # it is gone, or has no group of its own yet
                os.killpg(pid, signal.SIGKILL)
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
            self.kill()
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
    """Read what comes until nothing does any more; with a limit of memory where there is one.

    Its time, too, is limited here: who asked may be gone.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (READER_BYTES, READER_BYTES))
    os.setsid()  # so that what it begins can be ended with it
    # Ctrl-C reaches every process of a terminal: this one is ended by who started it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # what parsers mend is no news, and what they cannot read is reported
    with suppress(EOFError):
        while True:
            seconds, read, given = pipe.recv()
            signal.alarm(int(seconds) + 2)
            try:
                pipe.send(read(*given))
            except (Unreadable, Unusable) as error:
                pipe.send(error)
            except Exception as error:
                pipe.send(Unreadable(f"cannot be read: {type(error).__name__}"))
            signal.alarm(0)


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
            from db.documents.formats import read_docx, read_epub, read_xlsx  # noqa: PLC0415

            readers = {"docx": read_docx, "epub": read_epub, "xlsx": read_xlsx}
            return readers[kind](data), ""
        case _:
            return _read_text(data, kind)


def _read_text(data: bytes, kind: Kind) -> tuple[Outline, str]:
    from db.documents.formats import read_csv, read_markdown  # noqa: PLC0415

    text, note = decode(data, declares=kind == "html")
    match kind:
        case "html":
            from db.documents.html import read_html  # noqa: PLC0415

            return read_html(text), note
        case "markdown":
            return read_markdown(text), note
        case "csv":
            return read_csv(text), note
        case _:
            return outline(map(Block, BLANK_LINE.split(text.strip()))), note


def _name(path: str) -> str:
    words = SPACES.sub(" ", Path(path).stem).strip() or path
    return words[:1].upper() + words[1:]


# The mark of UTF-32 begins like that of UTF-16, so it comes first.
BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
USUAL: Final = (
    "cp1252 cp1251 koi8_r cp932 euc_jp gb18030 big5 cp949 cp1250 cp1253 cp1254 cp1255 cp1256 "
    "cp1257 iso8859_2 cp866"
).split()
"""What text that is not UTF-8 is mostly written in; of two that fit as well, the first is meant."""
LATIN: Final = "cp1252"
DECLARED: Final = pattern(
    r"(?i)<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([-\w]+)"
)
HEAD: Final = 4_000
"""Bytes at the beginning of a page that may declare its encoding."""
CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\f\r\x1a\x1b"))
MOST_CONTROLS: Final = 0.001
MOST_BROKEN: Final = 0.001
"""Of all bytes: what has more that no text holds is none."""
TYPOGRAPHY: Final = b"\x80\x85\x91\x92\x93\x94\x96\x97\xa0\xab\xbb"
"""Quotation marks, dashes and the like in Latin-1 as Windows has it."""
FOREIGN: Final = 0.2
"""Of all bytes, those beyond ASCII: with fewer it is Latin letters with accents."""


def decode(data: bytes, *, declares: bool = False) -> tuple[str, str]:
    """Return the text of a file with `\\n` line ends, and a note if its encoding was guessed.

    With `declares` a page may say how it is encoded.

    Raises:
        Unreadable: it is binary, or in no encoding that can be told.
    """
    text, note = _decoded(data, declares)
    return text.replace("\r\n", "\n").replace("\r", "\n"), note


def _decoded(data: bytes, declares: bool) -> tuple[str, str]:
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "")
    if not encoding and b"\0" in data:
        raise Unreadable("is binary, not text")
    try:
        return data.decode(encoding or "utf-8"), ""
    except UnicodeDecodeError as error:
        if encoding:
            raise Unreadable(f"is not {encoding.upper()} as it claims") from error
    if declares and (declared := DECLARED.search(data[:HEAD].decode("latin-1"))):
        try:
            return data.decode(declared[1]), ""
        except (LookupError, UnicodeDecodeError):
            pass  # it is not what it claims to be
    if len(data) - len(data.translate(None, CONTROLS)) > MOST_CONTROLS * len(data):
        raise Unreadable("is binary, not text")
    return _mended(data) or _guessed(data)


def _mended(data: bytes) -> tuple[str, str] | None:
    """What is UTF-8 but for some bytes, perhaps because it was cut off."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond = sum(not sign.isascii() for sign in text) - broken
    if beyond <= broken or broken > max(1, MOST_BROKEN * len(data)):
        return None
    return text, f"is UTF-8 with {broken} broken places, shown as \ufffd"


def _guessed(data: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - heavy, and seldom needed

    told = data.translate(None, TYPOGRAPHY)
    beyond = len(told) - len(told.translate(None, bytes(range(128, 256))))
    if beyond < FOREIGN * len(data) and (text := _latin(data)):
        found = [match for match in from_bytes(data, cp_isolation=USUAL) if match.coherence > 0]
    else:
        text, found = "", list(from_bytes(data, cp_isolation=USUAL))
    best = max(found, key=_fit, default=None)
    if best is not None and (best.encoding != LATIN or not text):
        return str(best), _doubt(best.encoding)
    if not text:
        raise Unreadable("is in no encoding that can be told; save it as UTF-8")
    return text, _doubt("Latin-1")


def _fit(match: "CharsetMatch") -> tuple[float, int]:
    """How well letters follow each other as in a language; then how usual the encoding is."""
    return round(match.coherence - match.chaos, 2), -USUAL.index(match.encoding)


def _doubt(encoding: str) -> str:
    return f"is not UTF-8 and was read as {encoding}, which is a guess: look whether it reads well"


def _latin(data: bytes) -> str:
    """Latin-1 as it is mostly meant: with the quotation marks, dashes and € of Windows."""
    try:
        return data.decode(LATIN)
    except UnicodeDecodeError:
        return data.decode("latin-1")


class SentFiles:
    """Reads pictures and PDF files that people send, in a process of its own, one after the other.

    So however long one takes, and `seconds` at most, nobody waits but who sent such a one. The
    process ends when nobody waits for it any more.
    """

    def __init__(self, seconds: float = SENT_SECONDS) -> None:
        self._seconds, self._lock = seconds, asyncio.Lock()
        self._wanted, self._reader = 0, Reader()

    async def pages(self, data: bytes) -> Pages:
        """Read a PDF file.

        Raises:
            Unusable: it is none, is encrypted or takes too long.
        """
        return await self._ask(read_pages, data)

    async def picture(self, data: bytes) -> str:
        """Make of a picture what a model is shown: a data URL.

        Raises:
            Unusable: it is none, is too large or takes too long.
        """
        if await asyncio.to_thread(is_light, data):
            return await asyncio.to_thread(as_shown, data)
        return await self._ask(as_shown, data)

    async def _ask(self, read: Callable[[bytes], R], data: bytes) -> R:
        self._wanted += 1
        try:
            async with self._lock:
                try:
                    return await asyncio.to_thread(self._reader.ask, self._seconds, read, data)
                except asyncio.CancelledError:
                    self._end()
                    raise
        except TakesTooLong:
            raise Unusable(TOO_LARGE) from None
        except Unreadable:
            raise Unusable(NO_PICTURE) from None
        finally:
            self._wanted -= 1
            if not self._wanted:
                self._end()

    def _end(self) -> None:
        """End the process, and with it the thread that waits for it."""
        self._reader.kill()
        self._reader = Reader()


def read_pages(data: bytes) -> Pages:
    """Return the text of a file, or the first of its pages if they are pictures.

    Raises:
        Unreadable: it is no PDF file, or encrypted.
    """
    from pypdfium2 import PdfDocument  # noqa: PLC0415

    from db.documents.pdf import read_pdf  # noqa: PLC0415

    with suppress(Unreadable):
        outline, _ = read_pdf(data)
        text = "\n".join(section.text for section in outline.sections)
        if len(text) >= LEAST_LETTERS:
            return Pages(text[: lengths.DOCUMENT])
    try:
        document = PdfDocument(data)
        shown = [_drawn(document[at]) for at in range(min(len(document), lengths.IMAGES))]
    except Exception as error:
        raise Unreadable("is no PDF file that can be read") from error
    return Pages("", tuple(shown), len(document))


def _drawn(page: Any) -> str:
    """A page as a model is shown it."""
    scale = min(LONGEST_SIDE / max(*page.get_size(), 1), 4)
    return as_url(page.render(scale=scale).to_pil())

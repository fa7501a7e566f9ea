"""Reading one file: Markdown, text, HTML or PDF, to its title and its sections.

Whatever a file contains, only `Unreadable` is raised, whose text says why.
"""

import codecs
import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block, Outline, Section, outline
from db.models import storable

Kind = Literal["markdown", "text", "html", "pdf"]

MAX_FILE_BYTES: Final = 20_000_000
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

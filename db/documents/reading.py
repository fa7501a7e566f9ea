"""Read one file of any supported kind into its title and sections.

Whatever a file holds, only `Unreadable` is raised, and its message says why.
"""

import hashlib
import logging
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agent import lengths
from agent.senses.pdf import Unreadable
from agent.text import pattern, storable
from db.decoding import Undecodable
from db.documents import formats
from db.documents.chunking import Outline, Section

Kind = Literal["markdown", "text", "html", "pdf", "docx", "epub", "csv", "xlsx"]

MAX_FILE_BYTES: Final = 20_000_000
INDEX_VERSION: Final = 5
"""Part of every content hash. Raise it when reading or chunking changes: the next `documents add`
then indexes everything again."""

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
SUPPORTED: Final = "Markdown, text, HTML, PDF, Word (.docx), EPUB, CSV or Excel (.xlsx)"
READERS: Final[Mapping[Kind, Callable[[bytes], tuple[Outline, str]]]] = {
    "markdown": formats.read_markdown,
    "text": formats.read_text,
    "html": formats.read_html,
    "pdf": formats.read_pdf,
    "docx": formats.read_docx,
    "epub": formats.read_epub,
    "csv": formats.read_csv,
    "xlsx": formats.read_xlsx,
}
SEPARATORS: Final = pattern(r"[-_\s]+")
PARSERS: Final = ("trafilatura", "charset_normalizer", "pypdfium2")


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file and their hash."""

    data: bytes
    hash: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read; `note` tells the operator what to check, and is mostly empty."""

    path: str
    title: str
    kind: Kind
    hash: str
    size: int
    sections: tuple[Section, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """Return the whole text, with blank lines between sections."""
        return "\n\n".join(section.text for section in self.sections)


def content_of(data: bytes) -> Content:
    """Return `data` with its hash.

    Raises:
        Unreadable: the file is empty.
    """
    if not data.strip():
        raise Unreadable("is empty")
    return Content(data, hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest())


def read_bytes(file: Path, max_bytes: int = MAX_FILE_BYTES) -> Content:
    """Return the content of `file`.

    Raises:
        Unreadable: it is no file, of another kind, too large, or empty.
    """
    if file.suffix.lower() not in KINDS:
        raise Unreadable(f"is not {SUPPORTED}")
    try:
        if not file.is_file():
            raise Unreadable("is not a file")
        size = file.stat().st_size
        if size > max_bytes:
            raise Unreadable(f"has {size:,} bytes, the limit is {max_bytes:,}; split it")
        return content_of(file.read_bytes())
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error


def read_document(content: Content, path: str) -> Document:
    """Return the title and sections of a file; its suffix tells the kind.

    Raises:
        Unreadable: it cannot be read, or holds no text or too much.
    """
    kind = KINDS[Path(path).suffix.lower()]
    for parser in PARSERS:
        logging.getLogger(parser).setLevel(logging.CRITICAL)  # we report what cannot be read
    try:
        outline, note = READERS[kind](content.data)
    except (Unreadable, Undecodable) as error:
        raise Unreadable(str(error)) from error
    except Exception as error:
        # Parsers meet all sorts of damaged files, and one file must not stop the rest.
        raise Unreadable(f"is damaged, or no {kind} file ({type(error).__name__})") from error
    sections = tuple(
        Section(tuple(map(_plain, section.headings)), text)
        for section in outline.sections
        if (text := _plain(section.text)).strip()
    )
    if not sections:
        raise Unreadable("holds no text")
    if sum(len(section.text) for section in sections) > lengths.DOCUMENT:
        raise Unreadable(f"holds over {lengths.DOCUMENT:,} characters of text; split it")
    title = " ".join(_plain(outline.title).split()) or _title_from(path)
    return Document(path, title, kind, content.hash, len(content.data), sections, note)


def _plain(text: str) -> str:
    """Return `text` without soft hyphens and what a database cannot store, accents composed."""
    return unicodedata.normalize("NFC", storable(text).replace("\u00ad", ""))


def _title_from(path: str) -> str:
    words = SEPARATORS.sub(" ", Path(path).stem).strip() or path
    return words[:1].upper() + words[1:]

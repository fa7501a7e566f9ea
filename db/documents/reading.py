"""Read a file of any supported kind into its title and sections.

If a file cannot be read, `Unreadable` is raised with the reason. Its message completes a sentence
that begins with the name of the file, such as "list.pdf is empty".
"""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent import size_limits
from agent.files import Unreadable, read_regular_file
from agent.text import compose, pattern, strip_unstorable
from db.documents.chunking import Block, Section, outline
from db.documents.formats import READERS

MAX_FILE_BYTES: Final = 20_000_000
INDEX_VERSION: Final = 7
"""A part of every content hash.

Increase it when files are read or cut in another way. Then the next `documents add` indexes all
files again.
"""
SUPPORTED: Final = "Markdown, text, HTML, PDF, Word (.docx), EPUB, CSV or Excel (.xlsx)"
PARSERS: Final = ("trafilatura", "charset_normalizer", "pypdfium2")
"""The names of the logs of libraries that parse files."""
SEPARATORS: Final = pattern(r"[-_\s]+")
"""What separates the words in the name of a file."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file."""

    path: str
    title: str
    kind: str
    hash: str
    size: int
    sections: tuple[Section, ...]
    note: str = ""
    """A warning for the operator, such as "has 3 damaged places". It is usually empty."""


def hash_content(data: bytes) -> str:
    """Return a hash of the content and of INDEX_VERSION."""
    return hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest()


def read_bytes(file: Path) -> bytes:
    """Return the content of `file`.

    Raises:
        Unreadable: it is not a file, or is of another kind than `SUPPORTED`, or is too large.
    """
    if file.suffix.lower() not in READERS:
        raise Unreadable(f"is not {SUPPORTED}")
    return read_regular_file(file, MAX_FILE_BYTES)


def read_document(data: bytes, path: str) -> Document:
    """Return the title and the sections of a file. The suffix of `path` shows its kind.

    Raises:
        Unreadable: the file cannot be parsed, or it has no text, or too much of it.
    """
    if len(path) > size_limits.DOCUMENT_PATH_CHARS:
        raise Unreadable(
            f"has a name of over {size_limits.DOCUMENT_PATH_CHARS} characters; rename it"
        )
    if not data.strip():
        raise Unreadable("is empty")
    kind, read = READERS[Path(path).suffix.lower()]
    for parser in PARSERS:
        # Parsers log what is wrong with a file. The operator learns it from `Unreadable` instead.
        logging.getLogger(parser).setLevel(logging.CRITICAL)
    try:
        content = read(data)
        blocks = [Block(_clean(block.text), block.level) for block in content.blocks]
        # `outline` looks for the heading that repeats the title, so both are cleaned before. If the
        # file states no title, `outline` returns the text of a heading.
        stated_title = _join_lines(_clean(content.title))
        title, sections = outline(blocks, stated_title)
    except Unreadable:
        raise
    except Exception as error:
        # Parsers raise many kinds of errors for damaged files. One file must not stop the others.
        raise Unreadable(
            f"is damaged, or no {kind} file ({type(error).__name__})"
        ) from error
    if not sections:
        raise Unreadable("holds no text")
    lengths = [len(section.text) for section in sections]
    character_count = sum(lengths)
    if character_count > size_limits.DOCUMENT_CHARS:
        raise Unreadable(
            f"holds over {size_limits.DOCUMENT_CHARS:,} characters of text; split it"
        )
    return Document(
        path=path,
        title=_join_lines(title) or _title_of(path),
        kind=kind,
        hash=hash_content(data),
        size=len(data),
        sections=tuple(sections),
        note=content.note,
    )


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _title_of(path: str) -> str:
    """Return the name of a file as a title: "Wine list" for `wine_list.pdf`."""
    stem = Path(path).stem
    name = SEPARATORS.sub(" ", stem).strip() or path
    first_letter = name[:1].upper()
    return first_letter + name[1:]


def _clean(text: str) -> str:
    """Return a text in Unicode's NFC, without soft hyphens and characters that cannot be stored."""
    storable = strip_unstorable(text)
    without_soft_hyphens = storable.replace("\u00ad", "")
    return compose(without_soft_hyphens)

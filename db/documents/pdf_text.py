"""PDF as plain text, page by page."""

import io
import re
from collections.abc import Iterator

from pypdf import PdfReader

from db.documents.outline import Block, Outline, outline


class EncryptedError(ValueError):
    """The file asks for a password."""


def read_pdf(content: bytes) -> Outline:
    """The outline of a PDF file, with its pages as headings.

    Raises:
        EncryptedError: it cannot be opened without a password.
        Exception: anything that pypdf raises over a broken file.
    """
    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise EncryptedError("is encrypted; save it without a password")
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    pages = outline(_pages(reader), title or "\0")
    return Outline(title, pages.sections)


def _pages(reader: PdfReader) -> Iterator[Block]:
    for number, page in enumerate(reader.pages, 1):
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", page.extract_text())]
        if any(paragraphs):
            yield Block(f"Page {number}", 1)
            yield from map(Block, paragraphs)

"""PDF as plain text, page by page."""

import io
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from pypdf import PdfReader

from db.documents.outline import Block, Outline, outline

BROKEN_WORD: Final = re.compile(r"(?<=[^\W\d_])([-\u00ad\u2010])[ \t]*\n([^\W\d_])")
LIGATURE: Final = re.compile("[\ufb00-\ufb06]")


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
        text = unbroken(page.extract_text())
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text)]
        if any(paragraphs):
            yield Block(f"Page {number}", 1)
            yield from map(Block, paragraphs)


def unbroken(text: str) -> str:
    """Words as they are spelt: none split at a line's end, no two letters in one sign.

    Before a capital the hyphen stays, as the name has it.
    """
    whole = BROKEN_WORD.sub(
        lambda found: found[2] if found[2].islower() else found[1] + found[2], text
    )
    return LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), whole)

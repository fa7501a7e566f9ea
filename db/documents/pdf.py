"""The text of PDF files, in the order of PDFium."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from agent import lengths
from agent.text import pattern

BROKEN_WORD: Final = pattern(r"[\x{2}\x{fffe}]\n?(\p{Ll})")
"""PDFium has U+0002 or U+FFFE for a hyphen at the end of a line."""
HYPHEN: Final = pattern(r"[\x{2}\x{fffe}]")
BROKEN: Final = "is broken or cut off, or no PDF file"
LOCKED: Final = "is encrypted; save it without a password"
SCAN: Final = "holds pictures of pages and no text (a scan): run ocrmypdf over the file first"


class Unreadable(ValueError):
    """A file that cannot be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """The title of a PDF file, and the text of each page; empty for a page without text."""

    title: str
    pages: tuple[str, ...]


def read_pdf_text(data: bytes) -> PdfText:
    """Return the text of a PDF file.

    Raises:
        Unreadable: it is broken, encrypted, a scan, or has too many pages.
    """
    from pypdfium2 import PdfDocument, PdfiumError  # noqa: PLC0415 - heavy

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        is_locked = "password" in str(error).lower()
        raise Unreadable(LOCKED if is_locked else BROKEN) from None
    with closing(document):
        if len(document) > lengths.PAGES:
            raise Unreadable(f"has {len(document):,} pages, the limit is {lengths.PAGES:,}")
        pages = tuple(_page_text(document, number) for number in range(len(document)))
        title = str(document.get_metadata_dict().get("Title", "")).strip()
    if not any(pages):
        raise Unreadable(SCAN)
    return PdfText(title, pages)


def _page_text(document: Any, number: int) -> str:
    from pypdfium2 import PdfiumError  # noqa: PLC0415 - heavy

    try:
        with closing(document[number]) as page, closing(page.get_textpage()) as text:
            found = text.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n")
    except PdfiumError:
        return ""
    joined = BROKEN_WORD.sub(lambda match: match[1], found)
    return HYPHEN.sub("-", joined).strip()

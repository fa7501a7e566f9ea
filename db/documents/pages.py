"""The text of a PDF file that somebody sent, or its pages as pictures, by a process of its own.

What it is given may be made to hang it or to take all memory: it has limits of both, and takes
nobody along.
"""

import asyncio
from contextlib import suppress
from io import BytesIO
from typing import Any, Final

from agent import lengths
from agent.senses.pictures import LONGEST_SIDE, NO_PICTURE, TOO_LARGE, Pages, Unusable
from db.documents.reading import Reader, TakesTooLong, Unreadable

SECONDS: Final = 30.0
LEAST_LETTERS: Final = 40
"""Of a page: what has fewer is a picture of one."""


async def pages_of(data: bytes) -> Pages:
    """Read a PDF file.

    Raises:
        Unusable: it is none, is encrypted or takes too long.
    """
    reader = Reader(SECONDS)
    try:
        return await asyncio.to_thread(_read, reader, data)
    except TakesTooLong:
        raise Unusable(TOO_LARGE) from None
    except Unreadable:
        raise Unusable(NO_PICTURE) from None
    finally:
        reader.kill()


def _read(reader: Reader, data: bytes) -> Pages:
    try:
        return reader.ask(read_pages, data)
    finally:
        reader.close()


def read_pages(data: bytes) -> Pages:
    """Return the text of a file, or the first of its pages as JPEG if they are pictures.

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


def _drawn(page: Any) -> bytes:
    """A page as JPEG."""
    scale, written = LONGEST_SIDE / max(*page.get_size(), 1), BytesIO()
    page.render(scale=min(scale, 4)).to_pil().convert("RGB").save(written, "JPEG")
    return written.getvalue()

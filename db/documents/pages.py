"""The text of a PDF file that somebody sent, or its pages as pictures, by a process of its own.

`python -m db.documents.pages` reads the file from its input and writes JSON. What it is given may
be made to hang it or to take all memory: it has limits of both, and takes nobody along.
"""

import asyncio
import base64
import json
import os
import sys
from contextlib import suppress
from io import BytesIO
from typing import Final

from agent import lengths
from agent.senses.pictures import LONGEST_SIDE, NO_PICTURE, TOO_LARGE, Pages, Unusable
from db.documents.reading import READER_BYTES, Unreadable

SECONDS: Final = 30.0
LEAST_LETTERS: Final = 40
"""Of a page: what has fewer is a picture of one."""


async def pages_of(data: bytes) -> Pages:
    """Read a PDF file.

    Raises:
        Unusable: it is none, is encrypted or takes too long.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "db.documents.pages",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        async with asyncio.timeout(SECONDS):
            written, _ = await process.communicate(data)
    except TimeoutError:
        raise Unusable(TOO_LARGE) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Unusable(NO_PICTURE)
    found = json.loads(written)
    return Pages(found["text"], tuple(map(base64.b64decode, found["pictures"])), found["count"])


def read(data: bytes) -> dict[str, object]:
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
            return {"text": text[: lengths.DOCUMENT], "pictures": [], "count": 0}
    pictures = []
    try:
        document = PdfDocument(data)
    except Exception as error:
        raise Unreadable("is no PDF file that can be read") from error
    for number in range(min(len(document), lengths.IMAGES)):
        page = document[number]
        scale = LONGEST_SIDE / max(*page.get_size(), 1)
        written = BytesIO()
        page.render(scale=min(scale, 4)).to_pil().convert("RGB").save(written, "JPEG")
        pictures.append(base64.b64encode(written.getvalue()).decode())
    return {"text": "", "pictures": pictures, "count": len(document)}


def main() -> None:
    """Read the file on the input, within limits of memory where there are any."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (READER_BYTES, READER_BYTES))
    try:
        json.dump(read(sys.stdin.buffer.read()), sys.stdout)
    except Unreadable:
        sys.exit(1)


if __name__ == "__main__":
    main()

"""PDF as text in the order in which it is read: columns one after the other. Pure, but for OCR.

PDFium gives runs of text with their places; what a file draws line by line across two columns is
put together column by column. Import this where a file is read.
"""

import shutil
import statistics
import subprocess
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, PdfTextPage
from pypdfium2.raw import (
    FPDF_ERR_PASSWORD,
    FPDF_PAGEOBJ_IMAGE,
    FS_RECTF,
    FPDFText_GetLooseCharBox,
    FPDFText_GetUnicode,
)

from agent import lengths
from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block, Outline, outline
from db.documents.reading import Unreadable

OBJECT: Final = pattern(r"(?m)^[ \t]*(\d{1,9})[ \t]+\d{1,5}[ \t]+obj\b")
PAGE: Final = pattern(r"/Type\s*/Page\b")
INHERITED: Final = pattern(r"/MediaBox\s*\[[^\]]{0,200}\]")
LEAST_GUTTER: Final = 0.8
"""How wide the space between two columns is at least, in heights of a line."""
SPANNING: Final = 0.55
"""Of the width of the text: what is wider stands across its columns."""
LEAST_LINES: Final = 3
LEAST_LETTERS: Final = 14
"""Of a column; what has fewer lines, or shorter ones by the median, is a table's, read by rows."""
PARAGRAPH_STEP: Final = 1.35
"""From a line to the next of another paragraph, in steps as they are usual in the column."""
WIDE_SPACE: Final = 1.2
"""Between what may be two columns, in heights of a line; words stand closer."""
OCR: Final = ("ocrmypdf", "--skip-text", "--quiet", "--jobs", "1", "-", "-")
OCR_SHARE: Final = 0.75
"""Of the time for a file: what takes longer is ended here, not left behind."""
BROKEN_WORD: Final = pattern(r"(?<=\p{L})([-\u00ad\u2010])[ \t]*\n(\p{L})")
LIGATURE: Final = pattern(r"[\ufb00-\ufb06]")
SCAN: Final = (
    "holds pictures of pages and no text (a scan): install ocrmypdf and add it again, or run it "
    "over the file first"
)


def read_pdf(content: bytes) -> tuple[Outline, str]:
    """Return the outline of a PDF file, with its pages as headings, and a note on how it was read.

    Raises:
        Unreadable: it is no PDF file, is encrypted, a scan, or has too many pages.
    """
    if b"%PDF-" not in content[:1024]:
        raise Unreadable("is not a PDF file")
    found, empty, note = _read(content)
    if empty and (scanned := _recognized(content)):
        found, left, note = _read(scanned)
        note = f"was read by OCR (ocrmypdf) on {empty - left} of its pages: look for mistakes"
    elif empty and not found.sections:
        raise Unreadable(SCAN)
    elif empty:
        note = note or f"holds no text on {empty} of its pages (scanned?); ocrmypdf would read them"
    return found, note


def _read(content: bytes) -> tuple[Outline, int, str]:
    """The outline, how many pages hold pictures and no text, and a note if the file was cut off."""
    document, note = _opened(content)
    try:
        count = len(document)
        if count > lengths.PAGES:
            raise Unreadable(f"has {count:,} pages, the limit is {lengths.PAGES:,}; split it")
        title = str(document.get_metadata_dict().get("Title", "")).strip()
        empty: list[int] = []
        pages = outline(_pages(document, empty), title or "\0")
        return Outline(title, pages.sections), len(empty), note
    finally:
        document.close()


def _opened(content: bytes) -> tuple[PdfDocument, str]:
    try:
        document = PdfDocument(content)
        if len(document):
            return document, ""
    except PdfiumError as error:
        if error.err_code == FPDF_ERR_PASSWORD:
            raise Unreadable("is encrypted; save it without a password") from None
    try:
        document = PdfDocument(_mended(content))
    except PdfiumError:
        raise Unreadable("is broken or cut off, and no whole page was found in it") from None
    return document, f"is cut off; its first {len(document)} pages were read"


def _mended(content: bytes) -> bytes:
    """A file that was cut off, with a list of those of its pages that are whole."""
    text = content.decode("latin-1")
    starts = list(OBJECT.finditer(text))
    ends = [*(each.start() for each in starts), len(text)][1:]
    objects = {
        int(start[1]): text[start.end() : end] for start, end in zip(starts, ends, strict=False)
    }
    whole = {number: body for number, body in objects.items() if "endobj" in body}
    kids = [number for number, body in whole.items() if PAGE.search(_head(body))]
    if not kids:
        raise Unreadable("is broken or cut off, and no whole page was found in it")
    boxes = (INHERITED.search(_head(body)) for body in whole.values())
    box = next((found[0] for found in boxes if found), "/MediaBox [0 0 612 792]")
    tree, last = max(objects) + 1, starts[-1].start()
    cut = text[:last] if max(objects) not in whole else text
    listed = " ".join(f"{number} 0 R" for number in kids)
    tail = (
        f"\n{tree} 0 obj\n<< /Type /Pages /Kids [{listed}] /Count {len(kids)} {box} >>\nendobj\n"
        f"{tree + 1} 0 obj\n<< /Type /Catalog /Pages {tree} 0 R >>\nendobj\n"
        f"trailer\n<< /Size {tree + 2} /Root {tree + 1} 0 R >>\nstartxref\n0\n%%EOF\n"
    )
    return (cut + tail).encode("latin-1")


def _head(body: str) -> str:
    """An object without its stream, whose bytes may say anything."""
    return body.partition("stream")[0]


def _pages(document: PdfDocument, empty: list[int]) -> Iterator[Block]:
    for number in range(len(document)):
        try:
            page = document[number]
        except PdfiumError:
            continue
        try:
            paragraphs = [part.strip() for part in BLANK_LINE.split(unbroken(_text(page)))]
            if any(paragraphs):
                yield Block(f"Page {number + 1}", 1)
                yield from map(Block, paragraphs)
            elif next(page.get_objects([FPDF_PAGEOBJ_IMAGE], 3), None):
                empty.append(number)
        finally:
            page.close()


@dataclass(frozen=True, slots=True)
class _Run:
    """A piece of a line, and where it stands; up is more."""

    left: float
    bottom: float
    right: float
    top: float
    text: str


def _text(page: PdfPage) -> str:
    shown = page.get_textpage()
    try:
        runs = list(_runs(shown))
    finally:
        shown.close()
    if not runs:
        return ""
    height = statistics.median(run.top - run.bottom for run in runs) or 1.0
    return "\n\n".join(map(_lined, _columns(runs, height)))


def _runs(shown: PdfTextPage) -> Iterator[_Run]:
    """What stands on one line without a wider space in between."""
    said, box = "", FS_RECTF()
    left = bottom = right = top = 0.0
    for at in range(shown.count_chars()):
        sign = chr(FPDFText_GetUnicode(shown, at))
        if not FPDFText_GetLooseCharBox(shown, at, box) or sign.isspace() or sign < " ":
            said += " " if said else ""
            continue
        high = max(top - bottom, 1.0)
        apart = not right - high < box.left < right + WIDE_SPACE * high
        if said and (apart or not box.bottom < (bottom + top) / 2 < box.top):
            yield _Run(left, bottom, right, top, " ".join(said.split()))
            said = ""
        if not said:
            left, bottom, top = box.left, box.bottom, box.top
        said, right = said + sign, box.right
    if said:
        yield _Run(left, bottom, right, top, " ".join(said.split()))


def _columns(runs: list[_Run], height: float) -> list[list[_Run]]:
    """Runs by column, in the order of reading; what stands across columns parts them."""
    gutter = _gutter(runs, height)
    if gutter is None:
        return [runs]
    found: list[list[_Run]] = []
    part: list[_Run] = []
    for run in sorted(runs, key=lambda run: -run.top):
        if run.left < gutter < run.right:
            found += [*_halves(part, gutter, height), [run]]
            part = []
        else:
            part.append(run)
    return found + _halves(part, gutter, height)


def _halves(runs: list[_Run], gutter: float, height: float) -> list[list[_Run]]:
    left = [run for run in runs if run.right <= gutter]
    right = [run for run in runs if run.left >= gutter]
    return [column for half in (left, right) if half for column in _columns(half, height)]


def _gutter(runs: Sequence[_Run], height: float) -> float | None:
    """Where an empty stripe parts two columns of prose, if one does."""
    width = max(run.right for run in runs) - min(run.left for run in runs)
    narrow = sorted(
        (run for run in runs if run.right - run.left < SPANNING * width), key=lambda run: run.left
    )
    best, place = LEAST_GUTTER * height, None
    reached = narrow[0].right if narrow else 0.0
    for run in narrow:
        if run.left - reached > best:
            best, place = run.left - reached, (run.left + reached) / 2
        reached = max(reached, run.right)
    if place is None:
        return None
    halves = [run for run in narrow if run.right <= place], [r for r in narrow if r.left >= place]
    return place if all(map(_is_prose, halves)) else None


def _is_prose(runs: Sequence[_Run]) -> bool:
    lines = [sum(len(run.text) for run in line) for line in _lines(runs)]
    return len(lines) >= LEAST_LINES and statistics.median(lines) >= LEAST_LETTERS


def _lines(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Runs by line, from the top; a line's from left to right."""
    lines: list[list[_Run]] = []
    for run in sorted(runs, key=lambda run: -(run.top + run.bottom)):
        middle = (run.top + run.bottom) / 2
        if lines and lines[-1][0].bottom < middle < lines[-1][0].top:
            lines[-1].append(run)
        else:
            lines.append([run])
    return [sorted(line, key=lambda run: run.left) for line in lines]


def _lined(runs: Sequence[_Run]) -> str:
    lines = _lines(runs)
    tops = [max(run.top for run in line) for line in lines]
    steps = [above - below for above, below in pairwise(tops)]
    usual = statistics.median(steps) if steps else 0.0
    said = ""
    for line, step in zip(lines, [0.0, *steps], strict=True):
        parted = step > PARAGRAPH_STEP * usual
        said += ("\n\n" if parted else "\n") * bool(said) + " ".join(run.text for run in line)
    return said


def _recognized(content: bytes) -> bytes:
    """The file with a layer of text that ocrmypdf made; empty without it, or when it fails."""
    if shutil.which(OCR[0]) is None:
        return b""
    try:
        done = subprocess.run(  # noqa: S603 - by its name on the path, over its own pipe
            OCR,
            input=content,
            capture_output=True,
            timeout=OCR_SHARE * lengths.READING_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


def unbroken(text: str) -> str:
    """Return words as they are spelt: none split at a line's end, no two letters in one sign.

    Before a capital the hyphen stays, as the name has it.
    """
    whole = BROKEN_WORD.sub(
        lambda found: found[2] if found[2].islower() else found[1] + found[2], text
    )
    return LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), whole)

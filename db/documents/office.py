"""Word, EPUB and tables as blocks of plain text: what a reader sees. Pure.

The parsers are heavy: import this where a file is read.
"""

import csv
import io
import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

from docx import Document
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml import etree
from openpyxl import load_workbook

from agent.text import pattern
from db.documents.chunking import Block, Outline, outline
from db.documents.html import html_blocks
from db.documents.reading import Unreadable

_HEADING_STYLE: Final = pattern(r"(?i)\Aheading (\d)\Z")
_WHITE: Final = "FFFFFF"
_MOST_UNPACKED: Final = 200_000_000
"""Bytes that a packed file may hold: one made for it unpacks to a million times its size."""
_TABLE_PART: Final = 1200
"""Characters of a part of a table; each begins with the header, as it is found alone."""
_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"


def read_docx(content: bytes) -> Outline:
    """Return the outline of a Word file: paragraphs, lists and tables, without hidden text.

    Raises:
        Unreadable: it is no such file, or would unpack to too much.
    """
    _unpacked(content).close()
    document = Document(io.BytesIO(content))
    blocks = (
        _word_paragraph(each) if isinstance(each, Paragraph) else Block(_word_table(each))
        for each in document.iter_inner_content()
    )
    return outline(blocks, (document.core_properties.title or "").strip())


def _word_paragraph(paragraph: Paragraph) -> Block:
    style = (paragraph.style and paragraph.style.name) or ""
    text = "".join(map(_word_text, paragraph.iter_inner_content()))
    if found := _HEADING_STYLE.match(style):
        return Block(text.strip(), int(found[1]))
    if style == "Title":
        return Block(text.strip(), 1)
    return Block(f"- {text}" if style.startswith("List") and text.strip() else text)


def _word_text(part: Any) -> str:
    """The text of a run, or of a link's runs; nothing of what is hidden or white."""
    if hasattr(part, "runs"):
        return "".join(map(_word_text, part.runs))
    is_hidden = part.font.hidden or str(part.font.color.rgb) == _WHITE
    return "" if is_hidden else str(part.text)


def _word_table(table: Table) -> str:
    rows = ((" ".join(cell.text.split()) for cell in row.cells) for row in table.rows)
    return "\n".join(" | ".join(row) for row in rows)


def read_epub(content: bytes) -> Outline:
    """Return the outline of an EPUB book, its chapters in their order.

    Raises:
        Unreadable: it is no such file, is encrypted, or would unpack to too much.
    """
    with _unpacked(content) as packed:
        if _CONTAINER not in packed.namelist():
            raise Unreadable("is not an EPUB file")
        root = _xml(packed, _CONTAINER).find(".//{*}rootfile")
        package = str(root.get("full-path"))
        told = _xml(packed, package)
        chapters = list(_chapters(told, posixpath.dirname(package)))
        if _ENCRYPTION in packed.namelist():
            locked = _xml(packed, _ENCRYPTION).iterfind(".//{*}CipherReference")
            if {unquote(each.get("URI", "")) for each in locked} & set(chapters):
                raise Unreadable("is encrypted (protected against copies)")
        texts = [packed.read(name).decode("utf-8", "replace") for name in chapters]
    title = told.findtext(".//{http://purl.org/dc/elements/1.1/}title", "").strip()
    return outline((block for text in texts for block in html_blocks(text)), title)


def _chapters(package: Any, folder: str) -> Iterator[str]:
    files = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}item")}
    for item in package.iterfind(".//{*}itemref"):
        if name := files.get(item.get("idref")):
            yield posixpath.normpath(posixpath.join(folder, unquote(name)))


def _unpacked(content: bytes) -> zipfile.ZipFile:
    try:
        packed = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise Unreadable("is broken or cut off, or not of the kind that its name says") from None
    if sum(each.file_size for each in packed.infolist()) > _MOST_UNPACKED:
        packed.close()
        raise Unreadable(f"would unpack to over {_MOST_UNPACKED:,} bytes; split it")
    return packed


def _xml(packed: zipfile.ZipFile, name: str) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return etree.fromstring(packed.read(name), parser)


def read_csv(text: str) -> Outline:
    """Return a table of comma, semicolon or tab separated values, each part with its header."""
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    return outline(map(Block, _table(csv.reader(io.StringIO(text, newline=""), dialect))))


def read_xlsx(content: bytes) -> Outline:
    """Return the tables of a workbook, sheets as headings; hidden sheets are left out.

    Raises:
        Unreadable: it is no such file, or would unpack to too much.
    """
    _unpacked(content).close()
    book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        blocks = [
            block
            for sheet in book.worksheets
            if sheet.sheet_state == "visible"
            for block in (
                Block(sheet.title, 2),
                *map(Block, _table(sheet.iter_rows(values_only=True))),
            )
        ]
        return outline(blocks, (book.properties.title or "").strip())
    finally:
        book.close()


def _table(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows a line each, in parts that begin with the header."""
    lines = (line for row in rows if (line := _line(row)).strip(" |"))
    header = next(lines, "")
    part: list[str] = []
    size = 0
    for line in lines:
        if part and size + len(line) > _TABLE_PART:
            yield "\n".join([header, *part])
            part, size = [], len(header)
        part.append(line)
        size += len(line) + 1
    if header:
        yield "\n".join([header, *part])


def _line(row: Sequence[Any]) -> str:
    cells = ("" if cell is None else " ".join(str(cell).split()) for cell in row)
    return " | ".join(cells).rstrip(" |")

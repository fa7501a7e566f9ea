"""Markdown, Word, EPUB and tables as blocks of plain text: what a reader sees. Pure.

The parsers of packed files are heavy: each is imported where a file of its kind is read.
"""

import csv
import io
import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent.text import pattern
from db.documents.chunking import Block, Outline, outline
from db.documents.reading import Unreadable

if TYPE_CHECKING:
    from docx.table import Table
    from docx.text.paragraph import Paragraph

_LISTS: Final = frozenset({"bullet_list", "ordered_list"})
_LINES: Final = frozenset({*_LISTS, "list_item", "table", "thead", "tbody"})
_FRONT_MATTER: Final = pattern(r"(?s)\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TITLE_FIELD: Final = pattern(r"(?m)^title:(.*)$")


def read_markdown(source: str) -> Outline:
    """Return the outline of a Markdown file: lists and tables in lines.

    A front matter is metadata: its `title` is taken, the rest is not part of the text.
    """
    front = _FRONT_MATTER.match(source)
    title = _TITLE_FIELD.search(front[0]) if front else None
    root = SyntaxTreeNode(_parser().parse(source[front.end() :] if front else source))
    blocks = map(_markdown_block, root.children)
    return outline(blocks, title[1].strip().strip("\"'") if title else "")


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _markdown_block(node: SyntaxTreeNode) -> Block:
    text = _text(node).strip("\n")
    if node.type == "heading":
        return Block(" ".join(text.split()), int(node.tag[1:]))
    return Block(text.rstrip())


def _text(node: SyntaxTreeNode) -> str:
    match node.type:
        case "inline":
            return "".join(map(_inline, node.children)).strip()
        case "fence" | "code_block":
            return node.content
        case "html_block":
            from db.documents.html import html_blocks  # noqa: PLC0415

            return "\n\n".join(block.text for block in html_blocks(node.content))
        case "tr":
            return " | ".join(map(_text, node.children))
        case _:
            parts = _items(node) if node.type in _LISTS else map(_text, node.children)
            return ("\n" if node.type in _LINES else "\n\n").join(filter(None, parts))


def _items(node: SyntaxTreeNode) -> Iterator[str]:
    first = int(node.attrs.get("start", 1))
    for number, item in enumerate(node.children, first):
        mark = f"{number}. " if node.type == "ordered_list" else "- "
        yield mark + _text(item).replace("\n", "\n" + " " * len(mark))


def _inline(node: SyntaxTreeNode) -> str:
    match node.type:
        case "text" | "code_inline":
            return node.content
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "html_inline":
            return "\n" if node.content.lower().startswith("<br") else ""
        case _:
            return "".join(map(_inline, node.children))


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
    from docx import Document  # noqa: PLC0415
    from docx.text.paragraph import Paragraph  # noqa: PLC0415

    _unpacked(content).close()
    document = Document(io.BytesIO(content))
    blocks = (
        _word_paragraph(each) if isinstance(each, Paragraph) else Block(_word_table(each))
        for each in document.iter_inner_content()
    )
    return outline(blocks, (document.core_properties.title or "").strip())


def _word_paragraph(paragraph: "Paragraph") -> Block:
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


def _word_table(table: "Table") -> str:
    rows = ((" ".join(cell.text.split()) for cell in row.cells) for row in table.rows)
    return "\n".join(" | ".join(row) for row in rows)


def read_epub(content: bytes) -> Outline:
    """Return the outline of an EPUB book, its chapters in their order.

    Raises:
        Unreadable: it is no such file, is encrypted, or would unpack to too much.
    """
    from db.documents.html import html_blocks  # noqa: PLC0415

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
    from lxml import etree  # noqa: PLC0415

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
    from openpyxl import load_workbook  # noqa: PLC0415

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

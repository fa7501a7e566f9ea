"""Turn the bytes of a file into an outline: one reader for each kind of file.

Libraries do the parsing. They are heavy, so each is imported when a file of its kind is read.
"""

import csv
import io
import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent.senses.pdf import Unreadable, read_pdf_text
from agent.text import pattern
from db.decoding import decode
from db.documents.chunking import BLANK_LINE, Block, Outline, outline

if TYPE_CHECKING:
    from docx.text.paragraph import Paragraph


FRONT_MATTER: Final = pattern(r"(?s)\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
TITLE_FIELD: Final = pattern(r"(?m)^title:(.*)$")
HEADING_STYLE: Final = pattern(r"(?i)\Aheading (\d)\Z")
LISTS: Final = frozenset({"bullet_list", "ordered_list"})
ONE_LINE_EACH: Final = frozenset({*LISTS, "list_item", "table", "thead", "tbody"})
TABLE_PART: Final = 1200
"""Characters in a part of a table; each part begins with the header row."""
CONTAINER: Final = "META-INF/container.xml"
ENCRYPTION: Final = "META-INF/encryption.xml"
TITLE: Final = ".//{http://purl.org/dc/elements/1.1/}title"


def read_text(data: bytes) -> tuple[Outline, str]:
    """Return the paragraphs of a text file, and a note if its encoding was guessed."""
    text, encoding = decode(data)
    return outline(map(Block, BLANK_LINE.split(text.strip()))), _note(text, encoding)


def _note(text: str, encoding: str) -> str:
    if damaged := text.count("\ufffd"):
        return f"has {damaged} damaged places, shown as \ufffd"
    if encoding.startswith("utf"):
        return ""
    return f"is not UTF-8 and was read as {encoding}, which is a guess: check that it reads well"


def read_markdown(data: bytes) -> tuple[Outline, str]:
    """Return the outline of a Markdown file, and a note if its encoding was guessed.

    The `title` of a front matter is taken; the rest of it is left out.
    """
    text, encoding = decode(data)
    front = FRONT_MATTER.match(text)
    title = TITLE_FIELD.search(front[0]) if front else None
    blocks = markdown_blocks(text[front.end() :] if front else text)
    return (
        outline(blocks, title[1].strip().strip("\"'") if title else ""),
        _note(text, encoding),
    )


def markdown_blocks(source: str) -> list[Block]:
    """Return headings and paragraphs without markup; lists and tables keep their lines."""
    return [_markdown_block(node) for node in SyntaxTreeNode(_parser().parse(source)).children]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _markdown_block(node: SyntaxTreeNode) -> Block:
    text = _markdown_text(node).strip("\n")
    if node.type == "heading":
        return Block(" ".join(text.split()), int(node.tag[1:]))
    return Block(text.rstrip())


def _markdown_text(node: SyntaxTreeNode) -> str:
    match node.type:
        case "inline":
            return "".join(map(_inline_text, node.children)).strip()
        case "fence" | "code_block":
            return node.content
        case "html_block":
            from trafilatura import html2txt  # noqa: PLC0415

            return html2txt(f"<html><body>{node.content}")
        case "tr":
            return " | ".join(map(_markdown_text, node.children))
        case _:
            parts = _items(node) if node.type in LISTS else map(_markdown_text, node.children)
            return ("\n" if node.type in ONE_LINE_EACH else "\n\n").join(filter(None, parts))


def _items(node: SyntaxTreeNode) -> Iterator[str]:
    for number, item in enumerate(node.children, int(node.attrs.get("start", 1))):
        mark = f"{number}. " if node.type == "ordered_list" else "- "
        yield mark + _markdown_text(item).replace("\n", "\n" + " " * len(mark))


def _inline_text(node: SyntaxTreeNode) -> str:
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
            return "".join(map(_inline_text, node.children))


def read_html(data: bytes) -> tuple[Outline, str]:
    """Return the outline of a page's main content; menus and the like are left out."""
    from trafilatura import load_html  # noqa: PLC0415

    tree = load_html(data if b"<body" in data else b"<html><body>" + data)
    title = "" if tree is None else " ".join(tree.findtext(".//title", "").split())
    return outline(html_blocks(tree), title), ""


def html_blocks(tree: Any) -> list[Block]:
    """Return the headings and paragraphs of a parsed page, as trafilatura finds them.

    Without an element that marks the main content trafilatura drops headings of short pages, so
    the whole body is marked then.
    """
    from trafilatura import extract, html2txt  # noqa: PLC0415

    if tree is None:
        return []
    body = tree.find(".//body")
    if body is not None and body.find(".//main") is None and body.find(".//article") is None:
        article = body.makeelement("article")
        article.text, body.text = body.text, None
        article.extend(list(body))
        body.append(article)
    everything = html2txt(tree)
    markdown = extract(
        tree,
        output_format="markdown",
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
        config=_trafilatura_config(),
    )
    return markdown_blocks(markdown) if markdown else [Block(everything)]


@cache
def _trafilatura_config() -> Any:
    """Return settings by which short pages are read like long ones."""
    from trafilatura.settings import use_config  # noqa: PLC0415

    config = use_config()
    config["DEFAULT"].update({"MIN_EXTRACTED_SIZE": "0", "MIN_OUTPUT_SIZE": "0"})
    return config


def read_pdf(data: bytes) -> tuple[Outline, str]:
    """Return the pages of a PDF file under their numbers, and a note on pages without text.

    Raises:
        Unreadable: it is broken, encrypted, a scan, or has too many pages.
    """
    found = read_pdf_text(data)
    blocks = [
        block
        for number, text in enumerate(found.pages, 1)
        if text
        for block in (Block(f"Page {number}", 2), Block(text))
    ]
    empty = found.pages.count("")
    note = f"holds no text on {empty} of its pages; if they are scans, run ocrmypdf over it first"
    return outline(blocks, found.title), note if empty else ""


def read_docx(data: bytes) -> tuple[Outline, str]:
    """Return the headings, paragraphs, lists and tables of a Word file."""
    from docx import Document  # noqa: PLC0415
    from docx.text.paragraph import Paragraph  # noqa: PLC0415

    document = Document(io.BytesIO(data))
    blocks = (
        _word_block(item)
        if isinstance(item, Paragraph)
        else Block("\n".join(_line([cell.text for cell in row.cells]) for row in item.rows))
        for item in document.iter_inner_content()
    )
    return outline(blocks, (document.core_properties.title or "").strip()), ""


def _word_block(paragraph: "Paragraph") -> Block:
    style, text = (paragraph.style and paragraph.style.name) or "", paragraph.text
    if found := HEADING_STYLE.match(style):
        return Block(text.strip(), int(found[1]))
    if style == "Title":
        return Block(text.strip(), 1)
    return Block(f"- {text}" if style.startswith("List") and text.strip() else text)


def read_epub(data: bytes) -> tuple[Outline, str]:
    """Return the chapters of an EPUB book in their order, and a note on those left out.

    Raises:
        Unreadable: it is no EPUB file, or protected against copies.
    """
    from trafilatura import load_html  # noqa: PLC0415

    blocks: list[Block] = []
    missing = 0
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        if CONTAINER not in book.namelist():
            raise Unreadable("is not an EPUB file")
        if ENCRYPTION in book.namelist():
            raise Unreadable("is encrypted (protected against copies)")
        package_path = _xml(book, CONTAINER).find(".//{*}rootfile").get("full-path")
        package = _xml(book, package_path)
        for path in _chapter_paths(package, posixpath.dirname(package_path)):
            try:
                blocks += html_blocks(load_html(book.read(path)))
            except (KeyError, zipfile.BadZipFile):
                missing += 1
    note = f"has {missing} chapters that are missing or damaged" if missing else ""
    return outline(blocks, package.findtext(TITLE, "").strip()), note


def _xml(book: zipfile.ZipFile, path: str) -> Any:
    return ElementTree.fromstring(book.read(path))  # noqa: S314 - expat limits expansion


def _chapter_paths(package: Any, folder: str) -> Iterator[str]:
    files = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}item")}
    for item in package.iterfind(".//{*}itemref"):
        if name := files.get(item.get("idref")):
            yield posixpath.normpath(posixpath.join(folder, unquote(name)))


def read_csv(data: bytes) -> tuple[Outline, str]:
    """Return a table of comma, semicolon or tab separated values, and a note on its encoding."""
    text, encoding = decode(data)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect)
    return outline(map(Block, _table_parts(rows))), _note(text, encoding)


def read_xlsx(data: bytes) -> tuple[Outline, str]:
    """Return the visible sheets of a workbook; their names are the headings."""
    from openpyxl import load_workbook  # noqa: PLC0415

    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    blocks: list[Block] = []
    for sheet in book.worksheets:
        if sheet.sheet_state == "visible":
            rows = sheet.iter_rows(values_only=True)
            blocks += [Block(sheet.title, 2), *map(Block, _table_parts(rows))]
    return outline(blocks, (book.properties.title or "").strip()), ""


def _table_parts(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the rows as lines, in parts that each begin with the header row."""
    lines = (line for row in rows if (line := _line(row)))
    header = next(lines, "")
    part = [header]
    for line in lines:
        if len(part) > 1 and sum(map(len, part)) + len(line) > TABLE_PART:
            yield "\n".join(part)
            part = [header]
        part.append(line)
    if header:
        yield "\n".join(part)


def _line(row: Sequence[Any]) -> str:
    cells = ("" if cell is None else " ".join(str(cell).split()) for cell in row)
    return " | ".join(cells).strip(" |")

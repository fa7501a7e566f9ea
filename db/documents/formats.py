"""Read the blocks of a file, which are its headings and paragraphs.

There is a reader for each kind of file. If a file cannot be read, its reader raises `Unreadable`
with the reason, or an error of a library. Reasons and notes complete a sentence that begins with
the path of the file: "list.pdf is encrypted". The libraries are slow to import, so each is imported
only when a file of its kind is read.
"""

# ruff: noqa: PLC0415

import csv
import io
import posixpath
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent import size_limits
from agent.files import Unreadable
from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block
from db.tables import decode, limit_rows, read_sheets

DUBLIN_CORE: Final = "{http://purl.org/dc/elements/1.1/}"
"""The XML namespace of the title of an EPUB book."""
MAX_TABLE_PART_CHARS: Final = 1200
"""How long a part of a table may be. Each part repeats the header."""
MAX_SNIFFED_CHARS: Final = 10_000
"""How much of a table is looked at to find out what separates its cells."""
FRONT_MATTER: Final = pattern(r"(?s)\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
"""The fields between two lines of dashes with which a Markdown file may begin."""
TITLE_FIELD: Final = pattern(r"(?m)^title:(.*)$")
"""The title in the front matter: `title: "Opening hours"`."""
HYPHENATED: Final = pattern(r"[\x{2}\x{fffe}]\n?(\p{Ll})")
"""A hyphen at the end of a line of a PDF file, and the small letter that follows it.

PDFium returns such a hyphen as U+0002 or U+FFFE.
"""
HEADING_STYLE: Final = pattern(r"(?i)\A(?:heading (\d)|title)\Z")
"""The name of a style of Word: "Heading 2", "Title"."""
SEPARATORS_BY_NODE: Final = {
    "bullet_list": "\n",
    "ordered_list": "\n",
    "list_item": "\n",
    "table": "\n",
    "thead": "\n",
    "tbody": "\n",
    "tr": " | ",
    "inline": "",
    "em": "",
    "strong": "",
    "link": "",
    "image": "",
}
"""What separates the children of a Markdown node, by the type of the node.

The children of nodes of other types are separated by a blank line.
"""


@dataclass(frozen=True, slots=True)
class Content:
    """The blocks of a file, and its title, which is "" if the file has none.

    `note` is a warning for the operator, such as "has 3 damaged places". The note is usually "".
    """

    blocks: Iterable[Block]
    title: str = ""
    note: str = ""


def read_text(data: bytes) -> Content:
    """Read the paragraphs of a text file."""
    text, note = _decode(data)
    paragraphs = BLANK_LINE.split(text.strip())
    return Content(map(Block, paragraphs), note=note)


def _decode(data: bytes) -> tuple[str, str]:
    """Return the text of a file and a note for the operator.

    The note says that the text is damaged, or that its encoding was guessed. Otherwise it is "".
    """
    text, encoding = decode(data)
    # Bytes that cannot be decoded have become U+FFFD.
    damage_count = text.count("\ufffd")
    if damage_count:
        return text, f"has {damage_count} damaged places, shown as \ufffd"
    if encoding.startswith("utf"):
        return text, ""
    note = f"is not UTF-8 and was read as {encoding}, which is a guess: check that it reads well"
    return text, note


def read_markdown(data: bytes) -> Content:
    """Read a Markdown file. Of its front matter, only the `title` is used."""
    text, note = _decode(data)
    title = ""
    front_matter = FRONT_MATTER.match(text)
    if front_matter:
        text = text[front_matter.end() :]
        title_field = TITLE_FIELD.search(front_matter[0])
        if title_field:
            quoted_title = title_field[1].strip()
            title = quoted_title.strip("\"'")
    return Content(read_markdown_blocks(text), title, note)


def read_markdown_blocks(source: str) -> list[Block]:
    """Return the headings and paragraphs of a Markdown text, without markup.

    A list or a table is one block, in which each item or row has its own line.
    """
    blocks: list[Block] = []
    tree = SyntaxTreeNode(_parser().parse(source))
    for node in tree.children:
        text = _markdown_text(node)
        if node.type == "heading":
            # The tag is "h1", "h2" and so on.
            level = int(node.tag.removeprefix("h"))
            one_line = " ".join(text.split())
            blocks.append(Block(one_line, level))
        else:
            # Spaces at the beginning stay, because they indent the first line of code.
            paragraph = text.strip("\n").rstrip()
            blocks.append(Block(paragraph))
    return blocks


@cache
def _parser() -> MarkdownIt:
    """Return a parser for Markdown with tables."""
    return MarkdownIt("commonmark").enable("table")


def _markdown_text(node: SyntaxTreeNode) -> str:
    """Return the text of a node and of those below it, without markup."""
    match node.type:
        case "text" | "code_inline" | "fence" | "code_block":
            return node.content
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "html_inline" if node.content.lower().startswith("<br"):
            return "\n"
        case "html_inline":
            return ""
        case "html_block":
            from trafilatura import html2txt

            return html2txt(f"<html><body>{node.content}")
    separator = SEPARATORS_BY_NODE.get(node.type, "\n\n")
    return separator.join(_child_texts(node))


def _child_texts(node: SyntaxTreeNode) -> Iterator[str]:
    """Yield the texts of a node's children. Items of a list have their markers."""
    item_number = int(node.attrs.get("start", 1))
    for child in node.children:
        text = _markdown_text(child)
        if node.type == "bullet_list":
            text = _list_item("- ", text)
        elif node.type == "ordered_list":
            text = _list_item(f"{item_number}. ", text)
            item_number += 1
        # An empty cell of a table keeps its place in the row. Other empty texts are left out.
        if text or node.type == "tr":
            yield text


def _list_item(marker: str, text: str) -> str:
    """Return the text of an item after its marker, with the further lines indented to match."""
    indent = " " * len(marker)
    return marker + text.replace("\n", f"\n{indent}")


def read_html(data: bytes) -> Content:
    """Read the main content of a web page, without menus."""
    from trafilatura import load_html

    if b"<body" not in data:
        # The file is only a part of a page.
        data = b"<html><body>" + data
    tree = load_html(data)
    if tree is None:
        return Content([])
    title = tree.findtext(".//title", "")
    return Content(_html_blocks(tree), title)


def _html_blocks(tree: Any) -> list[Block]:
    """Return the headings and paragraphs that trafilatura finds in a parsed page.

    In a short page without <main> or <article>, trafilatura drops the headings. So the body of such
    a page is wrapped in an <article>.
    """
    from trafilatura import extract, html2txt
    from trafilatura.settings import use_config

    if tree is None:
        return []
    body = tree.find(".//body")
    if body is not None:
        main_elements = [*body.iterfind(".//main"), *body.iterfind(".//article")]
        if not main_elements:
            _wrap_in_article(body)
    config = use_config()
    # By default, trafilatura refuses short pages.
    config["DEFAULT"].update({"MIN_EXTRACTED_SIZE": "0", "MIN_OUTPUT_SIZE": "0"})
    markdown = extract(
        tree,
        output_format="markdown",
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
        config=config,
    )
    if not markdown:
        # trafilatura found no main content, so all text of the page is taken.
        all_text = html2txt(tree)
        return [Block(all_text)]
    return read_markdown_blocks(markdown)


def _wrap_in_article(body: Any) -> None:
    """Move the content of a page into an `article` element, so that all of it is read."""
    article = body.makeelement("article")
    article.text = body.text
    body.text = None
    article.extend(list(body))
    body.append(article)


def read_pdf(data: bytes) -> Content:
    """Read the pages of a PDF file that have text, each below a heading such as "Page 1"."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("is encrypted; save it without a password") from None
        raise Unreadable("is broken or cut off") from None
    with closing(document):
        page_count = len(document)
        if page_count > size_limits.PDF_PAGES:
            raise Unreadable(
                f"has {page_count:,} pages, the limit is {size_limits.PDF_PAGES:,}"
            )
        pages = [_page_text(document, number) for number in range(page_count)]
        title = str(document.get_metadata_dict().get("Title", ""))
    empty_count = pages.count("")
    if empty_count == page_count:
        raise Unreadable(
            "holds pictures of pages and no text (a scan): run ocrmypdf over it first"
        )
    note = ""
    if empty_count:
        note = (
            f"holds no text on {empty_count} of its pages; if they are scans, "
            "run ocrmypdf over it first"
        )
    blocks: list[Block] = []
    for number, text in enumerate(pages, start=1):
        if text:
            blocks.append(Block(f"Page {number}", level=2))
            blocks.append(Block(text))
    return Content(blocks, title, note)


def _page_text(document: Any, number: int) -> str:
    """Return the text of a page, or "" if the page is damaged or has no text."""
    from pypdfium2 import PdfiumError

    try:
        with (
            closing(document[number]) as page,
            closing(page.get_textpage()) as text_page,
        ):
            text = text_page.get_text_bounded()
    except PdfiumError:
        return ""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # A word that goes on with a small letter ("Trau-be") is joined. Elsewhere the hyphen stays.
    text = HYPHENATED.sub(lambda match: match[1], text)
    return text.replace("\x02", "-").replace("\ufffe", "-").strip()


def read_docx(data: bytes) -> Content:
    """Read the headings, paragraphs, lists and tables of a Word file."""
    from docx import Document
    from docx.text.paragraph import Paragraph

    document = Document(io.BytesIO(data))
    blocks: list[Block] = []
    for item in document.iter_inner_content():
        if isinstance(item, Paragraph):
            blocks.append(_word_block(item))
            continue
        table_lines: list[str] = []
        for row in item.rows:
            cells = [cell.text for cell in row.cells]
            table_lines.append(_line(cells))
        blocks.append(Block("\n".join(table_lines)))
    title = document.core_properties.title or ""
    return Content(blocks, title)


def _word_block(paragraph: Any) -> Block:
    """Return a paragraph of a Word document as a block.

    The name of its style says whether it is a heading or an item of a list.
    """
    style_name = ""
    if paragraph.style and paragraph.style.name:
        style_name = paragraph.style.name
    text = paragraph.text.strip()
    heading = HEADING_STYLE.match(style_name)
    if heading:
        # The style "Title" has no number. It is a heading of the first level.
        level = int(heading[1] or 1)
        return Block(text, level)
    if text and style_name.startswith("List"):
        return Block(f"- {text}")
    return Block(text)


def read_epub(data: bytes) -> Content:
    """Read the chapters of an EPUB book, in the order that the book gives for reading.

    The book is a ZIP file. Its container file names the package file. That file lists the
    chapters (`item`), and then the order in which they are read (`itemref`).
    """
    from trafilatura import load_html

    blocks: list[Block] = []
    missing_count = 0
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        if "META-INF/encryption.xml" in book.namelist():
            raise Unreadable("is encrypted (protected against copies)")
        container = _parse_xml(book, "META-INF/container.xml")
        package_path = container.find(".//{*}rootfile").get("full-path")
        package = _parse_xml(book, package_path)
        folder = posixpath.dirname(package_path)
        for address in _list_chapter_addresses(package):
            # The address is relative to the folder of the package file.
            chapter_path = posixpath.join(folder, unquote(address))
            try:
                chapter = book.read(posixpath.normpath(chapter_path))
                blocks += _html_blocks(load_html(chapter))
            except (KeyError, zipfile.BadZipFile):
                # The book has no such chapter, or the chapter is damaged.
                missing_count += 1
    title = package.findtext(f".//{DUBLIN_CORE}title", "")
    note = ""
    if missing_count:
        note = f"has {missing_count} chapters that are missing or damaged"
    return Content(blocks, title, note)


def _parse_xml(book: zipfile.ZipFile, path: str) -> Any:
    """Return the root element of an XML file in a book."""
    return ElementTree.fromstring(book.read(path))  # noqa: S314 - expat limits expansion


def _list_chapter_addresses(package: Any) -> Iterator[str]:
    """Yield the addresses of the chapters in the order in which they are read.

    A chapter that is not listed has the address "", at which the book has nothing.
    """
    addresses_by_id: dict[str, str] = {}
    for item in package.iterfind(".//{*}item"):
        addresses_by_id[item.get("id")] = item.get("href", "")
    for reference in package.iterfind(".//{*}itemref"):
        item_id = reference.get("idref")
        yield addresses_by_id.get(item_id, "")


def read_csv(data: bytes) -> Content:
    """Read a table whose cells are separated by commas, semicolons, tabs or bars."""
    text, note = _decode(data)
    sample = text[:MAX_SNIFFED_CHARS]
    try:
        dialect: Any = csv.Sniffer().sniff(sample, ",;\t|")
    except csv.Error:
        # No separator was recognized, so the comma is taken.
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect)
    parts = _table_parts(limit_rows(rows))
    return Content(map(Block, parts), note=note)


def read_xlsx(data: bytes) -> Content:
    """Read the visible sheets of a workbook, with the sheet names as headings."""
    blocks: list[Block] = []
    for name, rows in read_sheets(data).items():
        blocks.append(Block(name, level=2))
        blocks += map(Block, _table_parts(rows))
    return Content(blocks)


def _table_parts(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines, in parts that each begin with the header."""
    part: list[str] = []
    for row in rows:
        line = _line(row)
        if not line:
            continue
        part_chars = sum(map(len, part)) + len(line)
        has_more_than_header = len(part) > 1
        if has_more_than_header and part_chars > MAX_TABLE_PART_CHARS:
            yield "\n".join(part)
            header = part[0]
            part = [header]
        part.append(line)
    yield "\n".join(part)


def _line(cells: Sequence[str]) -> str:
    """Return the cells of a row of a table as one line, or "" if all are empty."""
    texts = [" ".join(cell.split()) for cell in cells]
    return " | ".join(texts).strip(" |")


Reader = Callable[[bytes], Content]
READERS: Final[Mapping[str, tuple[str, Reader]]] = {
    ".md": ("markdown", read_markdown),
    ".txt": ("text", read_text),
    ".html": ("html", read_html),
    ".htm": ("html", read_html),
    ".pdf": ("pdf", read_pdf),
    ".docx": ("docx", read_docx),
    ".epub": ("epub", read_epub),
    ".csv": ("csv", read_csv),
    ".tsv": ("csv", read_csv),
    ".xlsx": ("xlsx", read_xlsx),
}
"""The name of the kind of a file and the reader for it, by the suffix of the file's name."""

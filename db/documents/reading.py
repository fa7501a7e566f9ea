"""Read one file of any supported kind into its title and sections, by a library for each kind.

Whatever a file holds, only `Unreadable` is raised, and its message says why. The libraries are
heavy, so each is imported when a file of its kind is read.
"""

# ruff: noqa: PLC0415

import csv
import hashlib
import io
import logging
import posixpath
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent import size_limits
from agent.text import pattern, strip_unstorable
from db.documents.chunking import BLANK_LINE, Block, Section, outline
from db.tables import Unreadable, decode, read_sheets

MAX_FILE_BYTES: Final = 20_000_000
INDEX_VERSION: Final = 7
"""Part of every content hash. Raise it when reading or chunking changes: the next `documents add`
then indexes everything again."""
SUPPORTED: Final = "Markdown, text, HTML, PDF, Word (.docx), EPUB, CSV or Excel (.xlsx)"
PARSERS: Final = ("trafilatura", "charset_normalizer", "pypdfium2")
TABLE_PART: Final = 1200
"""Characters in a part of a table; each part begins with the header row."""

SEPARATORS: Final = pattern(r"[-_\s]+")
FRONT_MATTER: Final = pattern(r"(?s)\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
TITLE_FIELD: Final = pattern(r"(?m)^title:(.*)$")
BROKEN_WORD: Final = pattern(r"[\x{2}\x{fffe}]\n?(\p{Ll})")
HEADING_STYLE: Final = pattern(r"(?i)\A(?:heading (\d)|title)\Z")
BETWEEN: Final = {
    **dict.fromkeys(("bullet_list", "ordered_list", "list_item", "table", "thead", "tbody"), "\n"),
    **dict.fromkeys(("inline", "em", "strong", "link", "image"), ""),
    "tr": " | ",
}
"""The separators of the parts of Markdown nodes; a blank line for all others."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read; `note` tells the operator what to check, and is mostly empty."""

    path: str
    title: str
    kind: str
    hash: str
    size: int
    sections: tuple[Section, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """The blocks of a file, its title and a note if it has them."""

    blocks: Iterable[Block]
    title: str = ""
    note: str = ""


def content_hash(data: bytes) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest()


def read_bytes(file: Path) -> bytes:
    """Return the content of `file`.

    Raises:
        Unreadable: it is no file, of another kind, or too large.
    """
    if file.suffix.lower() not in KINDS:
        raise Unreadable(f"is not {SUPPORTED}")
    try:
        if not file.is_file():
            raise Unreadable("is not a file")
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise Unreadable(f"has {size:,} bytes, the limit is {MAX_FILE_BYTES:,}; split it")
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error


def read_document(data: bytes, path: str) -> Document:
    """Return the title and sections of a file; its suffix tells the kind.

    Raises:
        Unreadable: it cannot be read, or holds no text or too much.
    """
    if len(path) > size_limits.DOCUMENT_PATH_CHARS:
        raise Unreadable(
            f"has a name of over {size_limits.DOCUMENT_PATH_CHARS} characters; rename it"
        )
    if not data.strip():
        raise Unreadable("is empty")
    kind, read = KINDS[Path(path).suffix.lower()]
    for parser in PARSERS:
        logging.getLogger(parser).setLevel(logging.CRITICAL)  # we report what cannot be read
    try:
        content = read(data)
        title, sections = outline(
            (Block(_plain(block.text), block.level) for block in content.blocks),
            " ".join(_plain(content.title).split()),
        )
    except Unreadable:
        raise
    except Exception as error:
        # Parsers meet all sorts of damaged files, and one file must not stop the rest.
        raise Unreadable(f"is damaged, or no {kind} file ({type(error).__name__})") from error
    if not sections:
        raise Unreadable("holds no text")
    if sum(len(section.text) for section in sections) > size_limits.DOCUMENT_CHARS:
        raise Unreadable(f"holds over {size_limits.DOCUMENT_CHARS:,} characters of text; split it")
    words = SEPARATORS.sub(" ", Path(path).stem).strip() or path
    title = " ".join(title.split()) or words[:1].upper() + words[1:]
    return Document(path, title, kind, content_hash(data), len(data), tuple(sections), content.note)


def _plain(text: str) -> str:
    """Return `text` without soft hyphens and what a database cannot store, accents composed."""
    return unicodedata.normalize("NFC", strip_unstorable(text).replace("\u00ad", ""))


def read_text(data: bytes) -> Content:
    """Read the paragraphs of a text file."""
    text, note = _decoded(data)
    return Content(map(Block, BLANK_LINE.split(text.strip())), note=note)


def _decoded(data: bytes) -> tuple[str, str]:
    """Return the text of a file, and a note if it is damaged or its encoding was guessed."""
    text, encoding = decode(data)
    if damaged := text.count("\ufffd"):
        return text, f"has {damaged} damaged places, shown as \ufffd"
    guess = f"is not UTF-8 and was read as {encoding}, which is a guess: check that it reads well"
    return text, "" if encoding.startswith("utf") else guess


def read_markdown(data: bytes) -> Content:
    """Read a Markdown file; of a front matter only the `title` is taken."""
    text, note = _decoded(data)
    front = FRONT_MATTER.match(text)
    title = TITLE_FIELD.search(front[0]) if front else None
    blocks = markdown_blocks(text[front.end() :] if front else text)
    return Content(blocks, title[1].strip().strip("\"'") if title else "", note)


def markdown_blocks(source: str) -> list[Block]:
    """Return headings and paragraphs without markup; lists and tables keep their lines."""
    nodes = SyntaxTreeNode(_parser().parse(source)).children
    return [
        Block(" ".join(_markdown_text(node).split()), int(node.tag[1:]))
        if node.type == "heading"
        else Block(_markdown_text(node).strip("\n").rstrip())
        for node in nodes
    ]


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _markdown_text(node: SyntaxTreeNode) -> str:
    match node.type:
        case "text" | "code_inline" | "fence" | "code_block":
            return node.content
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "html_inline":
            return "\n" if node.content.lower().startswith("<br") else ""
        case "html_block":
            from trafilatura import html2txt

            return html2txt(f"<html><body>{node.content}")
    parts = [_markdown_text(child) for child in node.children]
    if node.type.endswith("_list"):
        first = int(node.attrs.get("start", 1))
        marks = [f"{first + n}. " if node.type[0] == "o" else "- " for n in range(len(parts))]
        parts = [
            mark + part.replace("\n", "\n" + " " * len(mark))
            for mark, part in zip(marks, parts, strict=True)
        ]
    return BETWEEN.get(node.type, "\n\n").join(parts if node.type == "tr" else filter(None, parts))


def read_html(data: bytes) -> Content:
    """Read a page's main content; menus and the like are left out."""
    from trafilatura import load_html

    tree = load_html(data if b"<body" in data else b"<html><body>" + data)
    return Content(_html_blocks(tree), "" if tree is None else tree.findtext(".//title", ""))


def _html_blocks(tree: Any) -> list[Block]:
    """Return the headings and paragraphs of a parsed page, as trafilatura finds them.

    Without an element that marks the main content trafilatura drops headings of short pages, so
    the whole body is marked then.
    """
    from trafilatura import extract, html2txt
    from trafilatura.settings import use_config

    if tree is None:
        return []
    body = tree.find(".//body")
    if body is not None and body.find(".//main") is None and body.find(".//article") is None:
        article = body.makeelement("article")
        article.text, body.text = body.text, None
        article.extend(list(body))
        body.append(article)
    everything, config = html2txt(tree), use_config()
    # Short pages are read like long ones.
    config["DEFAULT"].update({"MIN_EXTRACTED_SIZE": "0", "MIN_OUTPUT_SIZE": "0"})
    markdown = extract(
        tree,
        output_format="markdown",
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
        config=config,
    )
    return markdown_blocks(markdown) if markdown else [Block(everything)]


def read_pdf(data: bytes) -> Content:
    """Read the pages of a PDF file under their numbers."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        is_locked = "password" in str(error).lower()
        reason = "encrypted; save it without a password" if is_locked else "broken or cut off"
        raise Unreadable(f"is {reason}") from None
    with closing(document):
        if len(document) > size_limits.PDF_PAGES:
            raise Unreadable(f"has {len(document):,} pages, the limit is {size_limits.PDF_PAGES:,}")
        pages = [_page_text(document, number) for number in range(len(document))]
        title = str(document.get_metadata_dict().get("Title", ""))
    empty = pages.count("")
    if empty == len(pages):
        raise Unreadable("holds pictures of pages and no text (a scan): run ocrmypdf over it first")
    note = f"holds no text on {empty} of its pages; if they are scans, run ocrmypdf over it first"
    found = [(Block(f"Page {n}", 2), Block(text)) for n, text in enumerate(pages, 1) if text]
    return Content([block for page in found for block in page], title, note if empty else "")


def _page_text(document: Any, number: int) -> str:
    """Return the text of a page in PDFium's order; empty if it has none, or is damaged."""
    from pypdfium2 import PdfiumError

    try:
        with closing(document[number]) as page, closing(page.get_textpage()) as text:
            found = text.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n")
    except PdfiumError:
        return ""
    # PDFium has U+0002 or U+FFFE for a hyphen at the end of a line.
    joined = BROKEN_WORD.sub(lambda match: match[1], found)
    return joined.replace("\x02", "-").replace("\ufffe", "-").strip()


def read_docx(data: bytes) -> Content:
    """Read the headings, paragraphs, lists and tables of a Word file."""
    from docx import Document
    from docx.text.paragraph import Paragraph

    document = Document(io.BytesIO(data))
    blocks = [
        _word_block(item)
        if isinstance(item, Paragraph)
        else Block("\n".join(_line([cell.text for cell in row.cells]) for row in item.rows))
        for item in document.iter_inner_content()
    ]
    return Content(blocks, document.core_properties.title or "")


def _word_block(paragraph: Any) -> Block:
    style, text = (paragraph.style and paragraph.style.name) or "", paragraph.text.strip()
    if found := HEADING_STYLE.match(style):
        return Block(text, int(found[1] or 1))
    return Block(f"- {text}" if style.startswith("List") and text else text)


def read_epub(data: bytes) -> Content:
    """Read the chapters of an EPUB book in their order."""
    from trafilatura import load_html

    def xml(path: str) -> Any:
        return ElementTree.fromstring(book.read(path))  # noqa: S314 - expat limits expansion

    blocks: list[Block] = []
    missing = 0
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        if "META-INF/encryption.xml" in book.namelist():
            raise Unreadable("is encrypted (protected against copies)")
        path = xml("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        package, folder = xml(path), posixpath.dirname(path)
        files = {item.get("id"): item.get("href", "") for item in package.iterfind(".//{*}item")}
        for item in package.iterfind(".//{*}itemref"):
            name = posixpath.join(folder, unquote(files.get(item.get("idref"), "")))
            try:
                blocks += _html_blocks(load_html(book.read(posixpath.normpath(name))))
            except (KeyError, zipfile.BadZipFile):
                missing += 1
    note = f"has {missing} chapters that are missing or damaged" if missing else ""
    return Content(blocks, package.findtext(".//{http://purl.org/dc/elements/1.1/}title", ""), note)


def read_csv(data: bytes) -> Content:
    """Read a table of comma, semicolon or tab separated values."""
    text, note = _decoded(data)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect)
    return Content(map(Block, _table_parts(rows)), note=note)


def read_xlsx(data: bytes) -> Content:
    """Read the visible sheets of a workbook; their names are the headings."""
    return Content(
        [
            block
            for name, rows in read_sheets(data).items()
            for block in (Block(name, 2), *map(Block, _table_parts(rows)))
        ]
    )


def _table_parts(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as lines, in parts that each begin with the header row."""
    header, *lines = [line for row in rows if (line := _line(row))] or [""]
    part = [header]
    for line in lines:
        if len(part) > 1 and sum(map(len, part)) + len(line) > TABLE_PART:
            yield "\n".join(part)
            part = [header]
        part.append(line)
    yield "\n".join(part)


def _line(cells: Sequence[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in cells).strip(" |")


KINDS: Final[Mapping[str, tuple[str, Callable[[bytes], Content]]]] = {
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
"""The kind of a file, and its reader, by its suffix."""

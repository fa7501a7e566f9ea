"""Markdown, HTML and PDF as blocks of plain text: what a reader sees, nothing hidden. Pure.

The parsers are heavy, and most commands read no file: import this where a file is read.
"""

import io
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pypdf import PdfReader

from agent import lengths
from agent.text import pattern
from db.documents.chunking import BLANK_LINE, Block, Outline, outline
from db.documents.reading import Unreadable

_UNSEEN: Final = frozenset(
    "script style template noscript svg iframe object canvas audio video title nav "
    "select textarea button".split()
)
_BLOCKS: Final = frozenset(
    "[document] html body address article aside blockquote caption center dd details dialog div dl "
    "dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre "
    "section summary table ul".split()
)
_SEPARATORS: Final = {"br": "\n", "tr": "\n", "td": " | ", "th": " | "}
_HEADING: Final = pattern(r"\Ah[1-6]\Z")
_HIDING_STYLE: Final = pattern(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0")
_LISTS: Final = frozenset({"bullet_list", "ordered_list"})
_LINES: Final = frozenset({*_LISTS, "list_item", "table", "thead", "tbody"})
_FRONT_MATTER: Final = pattern(r"(?s)\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TITLE_FIELD: Final = pattern(r"(?m)^title:(.*)$")
_BROKEN_WORD: Final = pattern(r"(?<=\p{L})([-\u00ad\u2010])[ \t]*\n(\p{L})")
_SPACES: Final = pattern(r"\s+")
_BLANKS: Final = pattern(" {2,}")
_LIGATURE: Final = pattern(r"[\ufb00-\ufb06]")


def read_html(source: str | bytes) -> Outline:
    """Return the outline of an HTML file. Bytes are decoded as the file itself declares."""
    soup = BeautifulSoup(source, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    return outline(_html_blocks(soup), title)


def _html_blocks(soup: BeautifulSoup) -> Iterator[Block]:
    """Paragraphs and headings in order; iterative, as HTML may be nested without end."""
    for tag in soup.find_all(_is_hidden):
        tag.extract()
    for tag in _around(soup):
        tag.extract()
    current: Tag = soup
    enclosing = {id(soup): current}
    texts: list[str] = []
    for node in soup.descendants:
        if isinstance(node, Tag):
            block = enclosing[id(node)] = (
                node if node.name in _BLOCKS else enclosing[id(node.parent)]
            )
            if texts and block is node:
                yield _html_block(current, texts)
                texts = []
            texts += [_SEPARATORS[node.name]] if texts and node.name in _SEPARATORS else []
        elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
            block = enclosing[id(node.parent)]
            if texts and block is not current:
                yield _html_block(current, texts)
                texts = []
            current = block
            texts.append(str(node) if block.name == "pre" else _SPACES.sub(" ", node))
    if texts:
        yield _html_block(current, texts)


def _html_block(tag: Tag, texts: list[str]) -> Block:
    text = "".join(texts)
    if _HEADING.match(tag.name):
        return Block(" ".join(text.split()).strip(" |"), int(tag.name[1]))
    if tag.name != "pre":
        lines = _BLANKS.sub(" ", text).split("\n")
        text = "\n".join(line.strip(" |") for line in lines).strip("\n")
    return Block(text)


def _around(soup: BeautifulSoup) -> list[Tag]:
    """The head and foot of a site, which stand on each of its pages around what one is about."""
    core = ["main", "article"]
    if soup.find(core) is None:
        return []
    return [
        tag
        for tag in soup.find_all(["header", "footer"])
        if tag.find_parent(core) is None and tag.find(core) is None
    ]


def _is_hidden(tag: Tag) -> bool:
    return (
        tag.name in _UNSEEN
        or tag.has_attr("hidden")
        or str(tag.get("aria-hidden", "")).lower() == "true"
        or tag.get("role") == "navigation"
        or _HIDING_STYLE.search(str(tag.get("style", "")).lower()) is not None
    )


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
            blocks = _html_blocks(BeautifulSoup(node.content, "html.parser"))
            return "\n\n".join(block.text for block in blocks)
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


def read_pdf(content: bytes) -> Outline:
    """Return the outline of a PDF file, with its pages as headings.

    Raises:
        Unreadable: it is no PDF file, or cannot be opened without a password.
        Exception: anything that pypdf raises over a broken file.
    """
    if b"%PDF-" not in content[:1024]:
        raise Unreadable("is not a PDF file")
    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("is encrypted; save it without a password")
    if len(reader.pages) > lengths.PAGES:
        raise Unreadable(
            f"has {len(reader.pages):,} pages, the limit is {lengths.PAGES:,}; split it"
        )
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    pages = outline(_pages(reader), title or "\0")
    return Outline(title, pages.sections)


def _pages(reader: PdfReader) -> Iterator[Block]:
    for number, page in enumerate(reader.pages, 1):
        paragraphs = [part.strip() for part in BLANK_LINE.split(unbroken(page.extract_text()))]
        if any(paragraphs):
            yield Block(f"Page {number}", 1)
            yield from map(Block, paragraphs)


def unbroken(text: str) -> str:
    """Return words as they are spelt: none split at a line's end, no two letters in one sign.

    Before a capital the hyphen stays, as the name has it.
    """
    whole = _BROKEN_WORD.sub(
        lambda found: found[2] if found[2].islower() else found[1] + found[2], text
    )
    return _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), whole)

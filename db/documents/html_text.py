"""HTML as plain text under headings: what a reader sees, nothing hidden. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString

from db.documents.outline import Block, Outline, outline

UNSEEN: Final = frozenset(
    "script style template noscript svg iframe object canvas audio video title nav "
    "select textarea button".split()
)
BLOCKS: Final = frozenset(
    "[document] html body address article aside blockquote caption center dd details dialog div dl "
    "dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre "
    "section summary table ul".split()
)
HEADING: Final = re.compile(r"h[1-6]")
HIDING_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0")


def read_html(source: str | bytes) -> Outline:
    """The outline of an HTML file. Bytes are decoded as the file itself declares."""
    soup = BeautifulSoup(source, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    return outline(_blocks(soup), title)


def plain_text(source: str) -> str:
    """The text of an HTML fragment, paragraphs separated by blank lines."""
    return "\n\n".join(block.text for block in _blocks(BeautifulSoup(source, "html.parser")))


def _blocks(soup: BeautifulSoup) -> Iterator[Block]:
    """Paragraphs and headings in order; iterative, as HTML may be nested without end."""
    for tag in soup.find_all(_is_hidden):
        tag.extract()
    for tag in _around(soup):
        tag.extract()
    current: Tag | None = None
    texts: list[str] = []
    for node in soup.descendants:
        if _starts_block(node) and texts:
            yield _block(current, texts)
            texts = []
        if isinstance(node, Tag):
            texts += _separator(node) if texts else []
        elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
            block = _enclosing(node)
            if block is not current and "".join(texts).strip():
                yield _block(current, texts)
                texts = []
            current = block
            texts.append(str(node) if block.name == "pre" else re.sub(r"\s+", " ", node))
    if texts:
        yield _block(current, texts)


def _starts_block(node: object) -> bool:
    return isinstance(node, Tag) and node.name in BLOCKS


def _separator(tag: Tag) -> list[str]:
    return {"br": ["\n"], "tr": ["\n"], "td": [" | "], "th": [" | "]}.get(tag.name, [])


def _enclosing(node: NavigableString) -> Tag:
    return next(parent for parent in node.parents if parent.name in BLOCKS)


def _block(tag: Tag | None, texts: list[str]) -> Block:
    text = "".join(texts)
    if tag is None or tag.name != "pre":
        text = re.sub(r"[ |]*\n[ |]*", "\n", re.sub(r" {2,}", " ", text)).strip(" \n|")
    if tag is not None and HEADING.fullmatch(tag.name):
        return Block(" ".join(text.split()), int(tag.name[1]))
    return Block(text)


def _around(soup: BeautifulSoup) -> list[Tag]:
    """The head and foot of a site, which stand on each of its pages around what one is about."""
    if soup.find(["main", "article"]) is None:
        return []
    return [
        tag
        for tag in soup.find_all(["header", "footer"])
        if tag.find_parent(["main", "article"]) is None and tag.find(["main", "article"]) is None
    ]


def _is_hidden(tag: Tag) -> bool:
    style = str(tag.get("style", "")).lower()
    return (
        tag.name in UNSEEN
        or tag.has_attr("hidden")
        or str(tag.get("aria-hidden", "")).lower() == "true"
        or tag.get("role") == "navigation"
        or HIDING_STYLE.search(style) is not None
    )

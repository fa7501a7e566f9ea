"""Markdown as plain text under headings. Pure."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from db.documents.html_text import plain_text
from db.documents.outline import Block, Outline, outline

FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
TITLE_FIELD: Final = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


def read_markdown(source: str) -> Outline:
    """The outline of a Markdown file: the text as a reader sees it, lists and tables in lines.

    A front matter is metadata: its `title` is taken, the rest is not part of the text.
    """
    front = FRONT_MATTER.match(source)
    title = TITLE_FIELD.search(front[0]) if front else None
    root = SyntaxTreeNode(_parser().parse(source[front.end() :] if front else source))
    return outline(map(_block, root.children), title[1].strip("\"'") if title else "")


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _block(node: SyntaxTreeNode) -> Block:
    level = int(node.tag[1:]) if node.type == "heading" else 0
    text = _text(node).strip("\n")
    return Block(" ".join(text.split()) if level else text.rstrip(), level)


def _text(node: SyntaxTreeNode) -> str:
    match node.type:
        case "inline":
            return "".join(map(_inline, node.children)).strip()
        case "fence" | "code_block":
            return node.content
        case "html_block":
            return plain_text(node.content)
        case _:
            return _parts(node)


def _parts(node: SyntaxTreeNode) -> str:
    """A block made of blocks."""
    parts: Iterable[str]
    match node.type:
        case "bullet_list" | "ordered_list":
            parts, between = _items(node), "\n"
        case "table":
            parts, between = (" | ".join(map(_text, row.children)) for row in _rows(node)), "\n"
        case "list_item":
            parts, between = map(_text, node.children), "\n"
        case _:
            parts, between = map(_text, node.children), "\n\n"
    return between.join(part for part in parts if part)


def _items(node: SyntaxTreeNode) -> Iterator[str]:
    first = int(node.attrs.get("start", 1))
    for number, item in enumerate(node.children, first):
        mark = f"{number}. " if node.type == "ordered_list" else "- "
        yield mark + _text(item).replace("\n", "\n" + " " * len(mark))


def _rows(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    for part in node.children:
        yield from part.children


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

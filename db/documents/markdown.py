"""Markdown as blocks of plain text. Pure."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent.text import pattern
from db.documents.chunking import Block, Outline, outline

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
            from db.documents.html import html_blocks  # noqa: PLC0415 - heavy, and seldom needed

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

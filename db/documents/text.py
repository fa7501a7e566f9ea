"""Files of text: which encoding they are in, and Markdown as blocks of plain text. Pure.

UTF-8 is certain, what a page declares is believed, and a guess says so.
"""

import codecs
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from agent.text import pattern
from db.documents.chunking import Block, Outline, outline
from db.documents.reading import Unreadable

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch


# The mark of UTF-32 begins like that of UTF-16, so it comes first.
BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
USUAL: Final = (
    "cp1252 cp1251 koi8_r cp932 euc_jp gb18030 big5 cp949 cp1250 cp1253 cp1254 cp1255 cp1256 "
    "cp1257 iso8859_2 cp866"
).split()
"""What text that is not UTF-8 is mostly written in; of two that fit as well, the first is meant."""
LATIN: Final = "cp1252"
DECLARED: Final = pattern(
    r"(?i)<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([-\w]+)"
)
HEAD: Final = 4_000
"""Bytes at the beginning of a page that may declare its encoding."""
CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\f\r\x1a\x1b"))
MOST_CONTROLS: Final = 0.001
MOST_BROKEN: Final = 0.001
"""Of all bytes: what has more that no text holds is none."""
TYPOGRAPHY: Final = b"\x80\x85\x91\x92\x93\x94\x96\x97\xa0\xab\xbb"
"""Quotation marks, dashes and the like in Latin-1 as Windows has it."""
FOREIGN: Final = 0.2
"""Of all bytes, those beyond ASCII: with fewer it is Latin letters with accents."""


def decode(data: bytes, *, declares: bool = False) -> tuple[str, str]:
    """Return the text of a file with `\\n` line ends, and a note if its encoding was guessed.

    With `declares` a page may say how it is encoded.

    Raises:
        Unreadable: it is binary, or in no encoding that can be told.
    """
    text, note = _decoded(data, declares)
    return text.replace("\r\n", "\n").replace("\r", "\n"), note


def _decoded(data: bytes, declares: bool) -> tuple[str, str]:
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "")
    if not encoding and b"\0" in data:
        raise Unreadable("is binary, not text")
    try:
        return data.decode(encoding or "utf-8"), ""
    except UnicodeDecodeError as error:
        if encoding:
            raise Unreadable(f"is not {encoding.upper()} as it claims") from error
    if declares and (declared := DECLARED.search(data[:HEAD].decode("latin-1"))):
        try:
            return data.decode(declared[1]), ""
        except (LookupError, UnicodeDecodeError):
            pass  # it is not what it claims to be
    if len(data) - len(data.translate(None, CONTROLS)) > MOST_CONTROLS * len(data):
        raise Unreadable("is binary, not text")
    return _mended(data) or _guessed(data)


def _mended(data: bytes) -> tuple[str, str] | None:
    """What is UTF-8 but for some bytes, perhaps because it was cut off."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond = sum(not sign.isascii() for sign in text) - broken
    if beyond <= broken or broken > max(1, MOST_BROKEN * len(data)):
        return None
    return text, f"is UTF-8 with {broken} broken places, shown as \ufffd"


def _guessed(data: bytes) -> tuple[str, str]:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - heavy, and seldom needed

    told = data.translate(None, TYPOGRAPHY)
    beyond = len(told) - len(told.translate(None, bytes(range(128, 256))))
    if beyond < FOREIGN * len(data) and (text := _latin(data)):
        found = [match for match in from_bytes(data, cp_isolation=USUAL) if match.coherence > 0]
    else:
        text, found = "", list(from_bytes(data, cp_isolation=USUAL))
    best = max(found, key=_fit, default=None)
    if best is not None and (best.encoding != LATIN or not text):
        return str(best), _doubt(best.encoding)
    if not text:
        raise Unreadable("is in no encoding that can be told; save it as UTF-8")
    return text, _doubt("Latin-1")


def _fit(match: "CharsetMatch") -> tuple[float, int]:
    """How well letters follow each other as in a language; then how usual the encoding is."""
    return round(match.coherence - match.chaos, 2), -USUAL.index(match.encoding)


def _doubt(encoding: str) -> str:
    return f"is not UTF-8 and was read as {encoding}, which is a guess: look whether it reads well"


def _latin(data: bytes) -> str:
    """Latin-1 as it is mostly meant: with the quotation marks, dashes and € of Windows."""
    try:
        return data.decode(LATIN)
    except UnicodeDecodeError:
        return data.decode("latin-1")


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

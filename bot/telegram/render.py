"""Render our Markdown as Telegram's HTML.

Our Markdown has `**bold**`, `*italic*`, `` `code` ``, `- ` for bullets, `> ` for quotes, `**> ` for
folded ones, and lines of backticks around code. Anything else is shown as it is written. The only
link is `<https://…>`, shown as its domain; whatever else Telegram would turn into a link becomes
code, which it leaves alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape as escape_html
from html import unescape
from itertools import takewhile
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from agent.language import last_sentence_end
from agent.markdown import domain, live, visible
from agent.text import Match, pattern


class Mark(NamedTuple):
    """The formatting of a text: a tag of HTML, with the URL of an `a` or "expandable"."""

    tag: str
    value: str = ""


class Piece(NamedTuple):
    """A text and its formatting, outermost mark first."""

    text: str
    marks: tuple[Mark, ...] = ()


QUOTE, FOLDED = Mark("blockquote"), Mark("blockquote", "expandable")
CODE, PRE = Mark("code"), Mark("pre")
EMPHASIS: Final = {"strong_open": Mark("b"), "em_open": Mark("i")}
INERT: Final = frozenset({"a", "code", "pre"})
"""Tags in which Telegram makes no links by itself."""

MESSAGE_UNITS: Final = 4096
"""The longest message, in UTF-16 units of visible text."""
MESSAGE_ENTITIES: Final = 100

_FENCE: Final = pattern("`{3,}")
_BULLET: Final = pattern(r"\A([ \t]*)[-*+][ \t]+(\S)")
_QUOTE: Final = pattern(r"(?P<folded>\*\*>)(?:[ \t]|\Z)| {0,3}>[ \t]?")
HTML_TAG: Final = pattern(r'<(/?)(\w+)(?: href="([^"]*)"| (\w+))?>')


def to_telegram_html(markdown: str) -> str:
    """Return Markdown as valid HTML of Telegram, in one piece."""
    return to_html(parse(markdown))


def split_messages(markdown: str, limit: int = MESSAGE_UNITS) -> list[str]:
    """Return Markdown as HTML messages within Telegram's limits, none of them empty.

    A message ends with a paragraph, else with a line, a sentence or a word. `limit` is at least 2
    UTF-16 units of visible text.
    """
    pieces, messages = parse(markdown), []
    text, start = _text_of(pieces), 0
    while rest := text[start:].strip():
        start = text.index(rest, start)
        room = _room(_between(pieces, start, len(text)), limit)
        end = start + _cut(text[start : start + room + 2], room)
        shown = start + len(text[start:end].rstrip())
        messages.append(to_html(_between(pieces, start, shown)))
        start = end
    return messages


def parse(markdown: str) -> list[Piece]:
    """Return the pieces of a text. Lines stay lines, and no word is lost."""
    pieces = list[Piece]()
    previous: tuple[Mark, ...] | None = None
    for line, block in _lines(visible(markdown)):
        if previous is not None:
            pieces.append(Piece("\n", block if block == previous else ()))
        pieces += [Piece(line, block)] if block == (PRE,) else _inline(line, block)
        previous = block
    return [piece for piece in _without_live_addresses(pieces) if piece.text]


def _lines(text: str) -> Iterator[tuple[str, tuple[Mark, ...]]]:
    """Yield every line with the block that it belongs to."""
    fence = ""
    for line in text.split("\n"):
        if line == fence if fence else _FENCE.fullmatch(line):
            fence = "" if fence else line
        elif fence:
            yield line, (PRE,)
        elif quote := _QUOTE.match(line):
            block = (FOLDED,) if quote["folded"] else (QUOTE,)
            yield _BULLET.sub(_bullet, line[quote.end() :]), block
        else:
            yield _BULLET.sub(_bullet, line), ()


def _bullet(found: Match) -> str:
    return f"{found[1]}• {found[2]}"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("zero").enable(["autolink", "backticks", "emphasis", "escape"])


def _inline(line: str, block: tuple[Mark, ...]) -> Iterator[Piece]:
    """Yield the pieces of a line in a block."""
    (inline,) = _parser().parseInline(line)
    marks = list[Mark | None]()
    for token in inline.children or ():
        around = (*block, *filter(None, marks))
        if token.type == "link_open":
            url = str(token.attrs["href"])
            marks.append(Mark("a", url) if domain(url) else None)
        elif token.nesting > 0:
            marks.append(EMPHASIS[token.type])
        elif token.nesting < 0:
            marks.pop()
        elif token.type == "code_inline":
            yield Piece(token.content, (*block, CODE))
        elif around and around[-1].tag == "a":
            yield Piece(domain(around[-1].value), around)
        else:
            yield Piece(token.content, around)


def _without_live_addresses(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces, with code in place of what Telegram would turn into a link."""
    text, done = _text_of(pieces), 0
    for found in live(text):
        if found.kind != "address":
            continue
        yield from _between(pieces, done, found.start)
        for part, marks in _between(pieces, found.start, found.end):
            quotes = tuple(mark for mark in marks if mark.tag == QUOTE.tag)
            is_inert = any(mark.tag in INERT for mark in marks)
            yield Piece(part, marks if is_inert else (*quotes, CODE))
        done = found.end
    yield from _between(pieces, done, len(text))


def to_html(pieces: Iterable[Piece]) -> str:
    """Return pieces as Telegram's HTML: well nested, all text escaped."""
    html, opened = "", tuple[Mark, ...]()
    for text, marks in (*pieces, Piece("")):
        common = _common(opened, marks)
        html += "".join(f"</{mark.tag}>" for mark in reversed(opened[common:]))
        for tag, value in marks[common:]:
            html += (
                f'<a href="{escape_html(value)}">'
                if tag == "a"
                else f"<{tag} {value}".rstrip() + ">"
            )
        html += escape_html(text, quote=False)
        opened = marks
    return html


def from_html(html: str) -> list[Piece]:
    """Return the pieces that `to_html` made HTML of."""
    pieces, marks, end = list[Piece](), list[Mark](), 0
    for tag in (*HTML_TAG.finditer(html), None):
        if text := unescape(html[end : tag.start() if tag else len(html)]):
            pieces.append(Piece(text, tuple(marks)))
        if tag and tag[1]:
            marks.pop()
        elif tag:
            marks.append(Mark(tag[2], unescape(tag[3] or tag[4] or "")))
        end = tag.end() if tag else end
    return pieces


def visible_text(html: str) -> str:
    """Return the text that a user sees of a message's HTML."""
    return _text_of(from_html(html))


def _text_of(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def utf16_units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _common(before: Sequence[Mark], after: Sequence[Mark]) -> int:
    """Return how many outer marks two neighbouring pieces share."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))])


def _between(pieces: Iterable[Piece], start: int, stop: int) -> Iterator[Piece]:
    """Yield the pieces of the characters from `start` to `stop`."""
    position = 0
    for text, marks in pieces:
        if part := text[max(0, start - position) : max(0, stop - position)]:
            yield Piece(part, marks)
        position += len(text)


def _room(pieces: Iterable[Piece], limit: int) -> int:
    """Return how many characters fit into one message, at least one."""
    characters = entities = 0
    opened: tuple[Mark, ...] = ()
    for text, marks in pieces:
        entities += len(marks) - _common(opened, marks)
        opened = marks
        fitting = text.encode("utf-16-le")[: 2 * limit].decode("utf-16-le", "ignore")
        if entities > MESSAGE_ENTITIES or not fitting:
            break
        characters += len(fitting)
        limit -= utf16_units(fitting)
        if len(fitting) < len(text):
            break
    return max(1, characters)


def _cut(text: str, room: int) -> int:
    """Return where to end a message that has room for `room` characters of `text`."""
    if room >= len(text):
        return len(text)
    cuts = (
        text.rfind("\n\n", 1, room + 2),
        text.rfind("\n", 1, room + 1),
        last_sentence_end(text, room),
        text.rfind(" ", 1, room + 1),
        room,
    )
    return next(cut for cut in cuts if cut > 0)

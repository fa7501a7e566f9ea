"""Render our Markdown as Telegram's HTML.

Our Markdown has `**bold**`, `*italic*`, `` `code` ``, `- ` for bullets, `> ` for quotes, `**> ` for
folded ones, and lines of backticks around code. Anything else is shown as it is written. The only
link is `<https://…>`, shown as its domain; whatever else Telegram would turn into a link becomes
code, which it leaves alone.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape as escape_html
from itertools import groupby, takewhile
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from agent.language import find_last_sentence_end
from agent.markdown import find_auto_links, get_domain, strip_invisible
from agent.text import Match, pattern


class Mark(NamedTuple):
    """The formatting of a text: a tag of HTML, with the URL of an `a` or "expandable"."""

    tag: str
    value: str = ""

    @property
    def opening(self) -> str:
        """Return the opening tag."""
        if self.tag == "a":
            return f'<a href="{escape_html(self.value)}">'
        return f"<{self.tag} {self.value}".rstrip() + ">"


Marks = tuple[Mark, ...]
"""The formatting of a character, outermost mark first."""


class Styled(NamedTuple):
    """A text, and the formatting of each of its characters."""

    text: str
    marks: Sequence[Marks]


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


def to_telegram_html(markdown: str) -> str:
    """Return Markdown as valid HTML of Telegram, in one piece."""
    return to_html(parse(markdown))


def split_messages(markdown: str, limit: int = MESSAGE_UNITS) -> list[str]:
    """Return Markdown as HTML messages within Telegram's limits, none of them empty.

    A message ends with a paragraph, else with a line, a sentence or a word. `limit` is at least 2
    UTF-16 units of visible text.
    """
    text, marks = parse(markdown)
    messages, start = list[str](), 0
    while rest := text[start:].lstrip():
        start = len(text) - len(rest)
        room = _room(rest, marks[start:], limit)
        end = _cut(rest[: room + 2], room)
        shown = rest[:end].rstrip()
        messages.append(to_html(Styled(shown, marks[start : start + len(shown)])))
        start += end
    return messages


def parse(markdown: str) -> Styled:
    """Return the text that Markdown shows, with its formatting. Lines stay lines."""
    pieces = list[tuple[str, Marks]]()
    previous: Marks | None = None
    for line, block in _lines(strip_invisible(markdown)):
        if previous is not None:
            pieces.append(("\n", block if block == previous else ()))
        pieces += [(line, block)] if block == (PRE,) else _inline(line, block)
        previous = block
    text = "".join(piece for piece, _ in pieces)
    marks = [around for piece, around in pieces for _ in piece]
    for found in find_auto_links(text):
        if found.kind == "address":
            marks[found.start : found.end] = map(_as_code, marks[found.start : found.end])
    return Styled(text, marks)


def _lines(text: str) -> Iterator[tuple[str, Marks]]:
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


def _inline(line: str, block: Marks) -> Iterator[tuple[str, Marks]]:
    """Yield the pieces of a line in a block, with their formatting."""
    (inline,) = _parser().parseInline(line)
    marks = list[Mark | None]()
    for token in inline.children or ():
        around = (*block, *filter(None, marks))
        if token.type == "link_open":
            url = str(token.attrs["href"])
            marks.append(Mark("a", url) if get_domain(url) else None)
        elif token.nesting > 0:
            marks.append(EMPHASIS[token.type])
        elif token.nesting < 0:
            marks.pop()
        elif token.type == "code_inline":
            yield token.content, (*block, CODE)
        elif around and around[-1].tag == "a":
            yield get_domain(around[-1].value), around
        else:
            yield token.content, around


def _as_code(marks: Marks) -> Marks:
    """Return the formatting in which Telegram does not turn an address into a link."""
    if any(mark.tag in INERT for mark in marks):
        return marks
    return (*(mark for mark in marks if mark.tag == QUOTE.tag), CODE)


def to_html(styled: Styled) -> str:
    """Return a text as Telegram's HTML: well nested, all text escaped."""
    html, opened, start = "", Marks(), 0
    for marks, run in groupby((*styled.marks, ())):
        pairs = zip(opened, marks, strict=False)
        common = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
        html += "".join(f"</{mark.tag}>" for mark in reversed(opened[common:]))
        html += "".join(mark.opening for mark in marks[common:])
        end = start + len([*run])
        html += escape_html(styled.text[start:end], quote=False)
        opened, start = marks, end
    return html


def utf16_units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _room(text: str, marks: Sequence[Marks], limit: int) -> int:
    """Return how many characters fit into one message, at least one."""
    entities, before = 0, Marks()
    for position, (character, around) in enumerate(zip(text, marks, strict=True)):
        limit -= utf16_units(character)
        entities += sum(mark not in before for mark in around) if around is not before else 0
        if position and (limit < 0 or entities > MESSAGE_ENTITIES):
            return position
        before = around
    return len(text)


def _cut(text: str, room: int) -> int:
    """Return where to end a message that has room for `room` characters of `text`."""
    if room >= len(text):
        return len(text)
    cuts = (
        text.rfind("\n\n", 1, room + 2),
        text.rfind("\n", 1, room + 1),
        find_last_sentence_end(text, room),
        text.rfind(" ", 1, room + 1),
        room,
    )
    return next(cut for cut in cuts if cut > 0)

"""Render our Markdown as Telegram's HTML.

Our Markdown has `**bold**`, `*italic*`, `` `code` ``, `- ` for bullets, `> ` for quotes, `**> ` for
expandable quotes, and fenced code. All other text is shown literally. A link is written as
`<https://…>`. The link is shown as its domain, or as the query if it leads to a web search.
Telegram would turn other texts into links, too, such as "example.com". They are rendered as code,
in which Telegram makes no links.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from html import escape as escape_html
from itertools import groupby
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.auto_links import AutoLink, find_auto_links
from agent.language import find_last_sentence_end, truncate_at_boundary
from agent.markdown import get_domain, get_link_text, strip_invisible
from agent.text import Match, pattern


class TextMark(NamedTuple):
    """A kind of formatting: an HTML tag."""

    tag: str
    attribute: str = ""
    """The URL of a link, "expandable" for an expandable quote, or "" for other tags."""

    @property
    def opening_tag(self) -> str:
        """Return the opening tag."""
        if self.tag == "a":
            return f'<a href="{escape_html(self.attribute)}">'
        if self.attribute:
            return f"<{self.tag} {self.attribute}>"
        return f"<{self.tag}>"


Marks = tuple[TextMark, ...]
"""The formatting of a character, the outermost tag first."""


class Styled(NamedTuple):
    """A text, and the formatting of each of its characters."""

    text: str
    marks: Sequence[Marks]


QUOTE: Final = TextMark("blockquote")
EXPANDABLE_QUOTE: Final = TextMark("blockquote", "expandable")
CODE: Final = TextMark("code")
PRE: Final = TextMark("pre")
EMPHASIS: Final = {"strong_open": TextMark("b"), "em_open": TextMark("i")}
BLOCK_SYMBOLS: Final = frozenset("-*+>`")
"""The first characters of bullets, quotes and fences."""
INLINE_SYMBOLS: Final = frozenset("\\`*_<")
"""The characters of formatting inside a line. A line without any of them is plain text."""
NO_LINK_TAGS: Final = frozenset({"a", "code", "pre"})
"""Tags in which Telegram does not turn text into links."""

MAX_MESSAGE_UNITS: Final = 4096
"""The longest message that Telegram takes, in UTF-16 units of the visible text."""
MAX_MESSAGE_ENTITIES: Final = 98
"""How many pieces of a message may have formatting.

Telegram allows 100. Two are kept for links that begin or end where a text is split.
"""
MAX_REPLY_CHARS: Final = 33_000
"""The longest reply that is shown whole. A model's answer has at most 32,000 characters."""
MAX_LINKS: Final = 1_000
"""How many addresses are looked for in a text. A text with more is shown as code as a whole."""
LAST_OF_ONE_UNIT: Final = "\uffff"
"""The last character that is a single UTF-16 unit. Later ones, such as emojis, are two units."""

_FENCE: Final = pattern("`{3,}")
"""A line above or below code."""
_BULLET: Final = pattern(r"\A([ \t]*)[-*+][ \t]+(\S)")
"""The marker of a list item and the character behind it: "- a", "  * b"."""
_QUOTE: Final = pattern(r"(?P<expandable>\*\*>)(?:[ \t]|\Z)| {0,3}>[ \t]?")
"""The marker of a quote: "> ", or of an expandable one: "**> "."""


def split_messages(markdown: str, limit: int = MAX_MESSAGE_UNITS) -> list[str]:
    """Return Markdown as HTML messages within Telegram's limits. None of them is empty.

    A text is split after a paragraph if that is possible, or else after a line, a sentence or a
    word. `limit` is the longest visible text of a message in UTF-16 units, and at least 2, the
    length of an emoji.
    """
    text, marks = parse(_cut_reply(markdown))
    links = frozenset(find_auto_links(text, MAX_LINKS))
    messages = []
    rest = text.lstrip()
    while rest:
        start = len(text) - len(rest)
        # A character has at least one unit, so the formatting of more is not needed.
        first_marks = marks[start : start + limit + 1]
        capacity = _count_fitting_chars(rest, first_marks, limit)
        length = _find_split(rest, capacity)
        visible = rest[:length].rstrip()
        end = start + len(visible)
        part = Styled(visible, marks[start:end])
        if visible != text:
            part = _protect_new_links(part, start, links)
        messages.append(to_html(part))
        rest = rest[length:].lstrip()
    return messages


def _cut_reply(markdown: str) -> str:
    """Return a reply, cut at a boundary if it is longer than any answer can be.

    Rendering a very long text would take too long. A text without a boundary, such as a space, is
    shown as a block of code, because the cut may be in the middle of formatting.
    """
    if len(markdown) <= MAX_REPLY_CHARS:
        return markdown
    # Two characters are left for the line break and the "…" below the cut text.
    limit = MAX_REPLY_CHARS - 2
    shown = truncate_at_boundary(markdown[:MAX_REPLY_CHARS], limit)
    is_single_word = len(shown.split(maxsplit=1)) == 1
    if len(shown) == limit and is_single_word:
        return f"```\n{shown}\n```\n…"
    return f"{shown}\n…"


def _protect_new_links(part: Styled, start: int, links: Collection[AutoLink]) -> Styled:
    """Return a part of a text, in which new links are code.

    A link is new if Telegram sees it in the part, but not in the whole text. For example,
    "wine/start" is no command, but if a message begins with "/start", Telegram shows a command.
    `links` are those of the whole text, in which the part begins at `start`.
    """
    marks = list(part.marks)
    for link in find_auto_links(part.text, MAX_LINKS):
        in_whole_text = AutoLink(start + link.start, start + link.end, link.kind)
        if in_whole_text not in links:
            _show_as_code(marks, link)
    return Styled(part.text, marks)


def parse(markdown: str) -> Styled:
    """Return the visible text of Markdown with its formatting. Line breaks are preserved."""
    texts = []
    marks: list[Marks] = []
    previous_block: Marks | None = None
    for line, block in _split_lines(strip_invisible(markdown)):
        if previous_block is not None:
            # A line break within a block belongs to the block.
            line_break_marks: Marks = ()
            if block == previous_block:
                line_break_marks = block
            texts.append("\n")
            marks.append(line_break_marks)
        for piece, piece_marks in _parse_inline(line, block):
            texts.append(piece)
            marks += [piece_marks] * len(piece)
        previous_block = block
    text = "".join(texts)
    for link in find_auto_links(text, MAX_LINKS):
        if link.kind == "address":
            _show_as_code(marks, link)
    return Styled(text, marks)


def _split_lines(text: str) -> Iterator[tuple[str, Marks]]:
    """Yield every line with the formatting of its block, without the fences of code."""
    open_fence = ""
    for line in text.split("\n"):
        if open_fence and line == open_fence:
            open_fence = ""
        elif open_fence:
            yield line, (PRE,)
        elif _FENCE.fullmatch(line):
            open_fence = line
        else:
            yield _parse_block(line)


def _parse_block(line: str) -> tuple[str, Marks]:
    """Return a line without its quote sign and with "•" as its bullet, and its formatting."""
    # Most lines begin with none of these, so the slower patterns are not tried.
    if line.lstrip(" \t")[:1] not in BLOCK_SYMBOLS:
        return line, ()
    marks: Marks = ()
    quote_sign = _QUOTE.match(line)
    if quote_sign is not None:
        line = line[quote_sign.end() :]
        marks = (QUOTE,)
        if quote_sign["expandable"]:
            marks = (EXPANDABLE_QUOTE,)
    return _BULLET.sub(_format_bullet, line), marks


def _format_bullet(bullet: Match) -> str:
    indentation, first_char = bullet.groups()
    return f"{indentation}• {first_char}"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("zero").enable(["autolink", "backticks", "emphasis", "escape"])


def _parse_inline(line: str, block: Marks) -> Iterator[tuple[str, Marks]]:
    """Yield the pieces of a line with their formatting, which includes that of the block."""
    if block == (PRE,) or INLINE_SYMBOLS.isdisjoint(line):
        yield line, block
        return
    (inline,) = _parser().parseInline(line)
    # None stands for a link that is not shown as a link.
    open_marks: list[TextMark | None] = []
    for token in inline.children or ():
        is_opening = token.nesting > 0
        is_closing = token.nesting < 0
        if is_opening:
            open_marks.append(_to_mark(token))
            continue
        if is_closing:
            open_marks.pop()
            continue
        marks = (*block, *filter(None, open_marks))
        if token.type == "code_inline":
            yield token.content, (*block, CODE)
        elif marks and marks[-1].tag == "a":
            yield get_link_text(marks[-1].attribute), marks
        else:
            yield token.content, marks


def _to_mark(opening: Token) -> TextMark | None:
    """Return the formatting that a token opens, or None for a link without a domain."""
    if opening.type != "link_open":
        return EMPHASIS[opening.type]
    url = str(opening.attrs["href"])
    if not get_domain(url):
        return None
    return TextMark("a", url)


def _show_as_code(marks: list[Marks], link: AutoLink) -> None:
    """Make code of an address, so that Telegram does not make it a link."""
    previous: Marks = ()
    protected = _as_code(previous)
    for index in range(link.start, link.end):
        # All characters of a piece have the same object as their formatting, so `is` suffices.
        if marks[index] is not previous:
            previous = marks[index]
            protected = _as_code(previous)
        marks[index] = protected


def _as_code(marks: Marks) -> Marks:
    """Return code as a formatting, inside the quote of `marks` if there is one.

    Telegram allows no other formatting around code. If it makes no links in text with these marks
    anyway, return them unchanged.
    """
    kept = []
    for mark in marks:
        if mark.tag in NO_LINK_TAGS:
            return marks
        if mark.tag == QUOTE.tag:
            kept.append(mark)
    return *kept, CODE


def to_html(styled: Styled) -> str:
    """Return a text as Telegram's HTML, with well nested tags and escaped text."""
    parts = []
    open_marks: Marks = ()
    start = 0
    # The empty formatting at the end closes all tags.
    for marks, characters in groupby((*styled.marks, ())):
        common = _count_common(open_marks, marks)
        for mark in reversed(open_marks[common:]):
            parts.append(f"</{mark.tag}>")
        for mark in marks[common:]:
            parts.append(mark.opening_tag)
        end = start + len(list(characters))
        text = styled.text[start:end]
        parts.append(escape_html(text, quote=False))
        open_marks = marks
        start = end
    return "".join(parts)


def _count_common(first: Marks, second: Marks) -> int:
    """Return how many outer tags two formattings have in common."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _count_fitting_chars(text: str, marks: Sequence[Marks], limit: int) -> int:
    """Return how many characters of a text fit into one message, at least one."""
    units = 0
    entities = 0
    previous: Marks = ()
    for index, char in enumerate(text):
        units += 1
        if char > LAST_OF_ONE_UNIT:
            units += 1
        for mark in marks[index]:
            if mark not in previous:
                entities += 1
        is_too_long = units > limit or entities > MAX_MESSAGE_ENTITIES
        if is_too_long and index > 0:
            return index
        previous = marks[index]
    return len(text)


def _find_split(text: str, capacity: int) -> int:
    """Return the length of the first message, which holds at most `capacity` characters."""
    if capacity >= len(text):
        return len(text)
    # A break may stand just behind the last character that fits: it is not shown.
    beginning = text[: capacity + 2]
    possible_ends = (
        beginning.rfind("\n\n", 1),
        beginning.rfind("\n", 1, capacity + 1),
        find_last_sentence_end(beginning, capacity),
        beginning.rfind(" ", 1, capacity + 1),
    )
    for end in possible_ends:
        if end > 0:
            return end
    return capacity

"""Our Markdown as Telegram's HTML: what a person sees. Pure.

Nothing is an error: what is not understood stays as it was written. Lines stay lines, and no word
is lost. A long text is several messages.

The only link is `<https://…>`, shown as the address's own domain. Whatever else Telegram would make
a link of by itself, and whatever marks stand within it, becomes code, which it leaves alone.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from html import escape as escape_html
from html.parser import HTMLParser
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple

from agent.markdown import domain, live, visible
from agent.text import Match, last_sentence_end, pattern

Tag = Literal["blockquote", "pre", "a", "b", "i", "code"]


class Mark(NamedTuple):
    """What marks a piece of text.

    `value` is the URL of an `a`, the language of a `pre`, "expandable" for a folded `blockquote`.
    """

    tag: Tag
    value: str = ""


class Piece(NamedTuple):
    """A piece of text under the same marks, outermost first."""

    text: str
    marks: tuple[Mark, ...] = ()


class Line(NamedTuple):
    """One line, and the block (quote or code) it belongs to."""

    pieces: tuple[Piece, ...]
    block: tuple[Mark, ...] = ()


QUOTE = Mark("blockquote")
FOLDED = Mark("blockquote", "expandable")
BOLD = Mark("b")
ITALIC = Mark("i")
CODE = Mark("code")
INERT = frozenset({"a", "code", "pre"})
"""Marks under which Telegram makes no link by itself."""

_FENCE = pattern(r"\s{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[ \t]*")
_HEADING = pattern(r" {0,3}#{1,6}[ \t]+(?P<title>.*?)(?:[ \t]+#+)?[ \t]*")
_BULLET = pattern(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<item>\S)")
_QUOTE = pattern(r"(?P<folded>\*\*>)(?:[ \t]|$)| {0,3}>[ \t]?")
"""A line of a quote; `**>`, as Telegram's own Markdown has it, of one that is folded."""

_TOKEN = pattern(
    r"\\(?P<escaped>[\\`*_#<>~+-])"
    r"|`(?P<code>[^`]{1,1000})`"
    r"|<(?P<url>https?://[^\s<>]{1,1000})>"
    r"|(?P<sign>\*\*|\*|__|_)"
)


def parse(markdown: str) -> list[Piece]:
    """The pieces of a whole text; their texts together are what a person sees."""
    pieces: list[Piece] = []
    before: Line | None = None
    for line in _lines(visible(markdown).split("\n")):
        if before is not None:
            pieces.append(Piece("\n", line.block if line.block == before.block else ()))
        pieces.extend(piece for piece in line.pieces if piece.text)
        before = line
    return [piece for piece in _inert(pieces) if piece.text]


def _inert(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces, with code for what Telegram would make a link of by itself."""
    text = "".join(piece.text for piece in pieces)
    addresses = (each for each in live(text) if each.kind == "address")
    found, start = next(addresses, None), 0
    for piece in pieces:
        done, end = start, start + len(piece.text)
        while found and found.start < end:
            begins, ends = max(done, found.start), min(end, found.end)
            inert = any(mark.tag in INERT for mark in piece.marks)
            yield Piece(text[done:begins], piece.marks)
            yield Piece(text[begins:ends], piece.marks if inert else _as_code(piece.marks))
            done = ends
            if found.end > end:
                break
            found = next(addresses, None)
        yield Piece(text[done:end], piece.marks)
        start = end


def _as_code(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks around code: Telegram allows no other, save a quote."""
    return (*(mark for mark in marks if mark.tag == QUOTE.tag), CODE)


def _lines(lines: Sequence[str]) -> Iterator[Line]:
    fence = unsaid = ""
    block: tuple[Mark, ...] = ()
    for line in lines:
        if not fence and (opening := _FENCE.fullmatch(line)):
            fence, unsaid = opening["fence"], opening["language"]
            block = (Mark("pre", unsaid),)
        elif not fence:
            yield _line(line)
        elif line.strip().startswith(fence) and not line.strip(f"{fence[0]} \t"):
            yield from _language(unsaid)
            fence = unsaid = ""
        else:
            unsaid = ""
            yield Line((Piece(line, block),), block)
    yield from _language(unsaid)


def _language(unsaid: str) -> Iterator[Line]:
    """The language of a code block that turned out to be empty: a word like any other."""
    if unsaid:
        yield Line((Piece(unsaid),))


def _line(line: str) -> Line:
    if quoted := _QUOTE.match(line):
        block = (FOLDED,) if quoted["folded"] else (QUOTE,)
        return Line(tuple(_spans(_bulleted(line[quoted.end() :]), block)), block)
    if heading := _HEADING.fullmatch(line):
        return Line(tuple(_spans(heading["title"], (BOLD,))))
    return Line(tuple(_spans(_bulleted(line), ())))


def _bulleted(line: str) -> str:
    bullet = _BULLET.match(line)
    return f"{bullet['indent']}• {line[bullet.start('item') :]}" if bullet else line


def _spans(text: str, marks: tuple[Mark, ...]) -> list[Piece]:
    """The pieces of a line. A sign that opens or closes nothing stays as it was written."""
    pieces: list[Piece] = []
    opened: dict[str, int] = {}
    position = 0
    for found in _TOKEN.finditer(text):
        pieces.append(Piece(text[position : found.start()], marks))
        position = found.end()
        sign = found["sign"]
        if sign in opened and _closes(text, found):
            at = opened[sign]
            mark = BOLD if len(sign) == 2 else ITALIC
            within = pieces[at + 1 :]
            pieces[at:] = [Piece(each.text, _within(marks, mark, each)) for each in within]
            opened = {other: index for other, index in opened.items() if index < at}
        else:
            if sign and _opens(text, found):
                opened[sign] = len(pieces)
            pieces.append(_piece(found, marks))
    return [*pieces, Piece(text[position:], marks)]


def _piece(found: Match, marks: tuple[Mark, ...]) -> Piece:
    if found["code"]:
        return Piece(found["code"], _as_code(marks))
    if found["url"] and (shown := domain(found["url"])):
        return Piece(shown, (*marks, Mark("a", found["url"])))
    return Piece(found["escaped"] or found[0], marks)


def _opens(text: str, found: Match) -> bool:
    before, after = _beside(text, found)
    return bool(after.strip()) and (found["sign"] == "**" or not _is_of_word(before))


def _closes(text: str, found: Match) -> bool:
    before, after = _beside(text, found)
    return bool(before.strip()) and (found["sign"] == "**" or not _is_of_word(after))


def _beside(text: str, found: Match) -> tuple[str, str]:
    """The characters before and behind a match, empty at the ends of a text."""
    start, end = found.span()
    return text[max(0, start - 1) : start], text[end : end + 1]


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _within(around: tuple[Mark, ...], mark: Mark, piece: Piece) -> tuple[Mark, ...]:
    """The marks of a piece that stands within one more, inside those of its line."""
    if CODE in piece.marks or mark in piece.marks:
        return piece.marks
    return (*around, mark, *piece.marks[len(around) :])


MESSAGE_UNITS = 4096
"""The longest message, in UTF-16 units of the text that is seen."""

MESSAGE_ENTITIES = 100
"""The most marks that Telegram keeps in one message."""

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_JOINER, _KEYCAP = "\u200d", "\u20e3"


def to_telegram_html(markdown: str) -> str:
    """Markdown as Telegram's HTML, in one piece; whatever comes in, the HTML is valid."""
    return to_html(parse(markdown))


def split_messages(markdown: str, limit: int = MESSAGE_UNITS) -> list[str]:
    """Markdown as HTML messages, each within Telegram's limits and none empty.

    A cut is made at the last end of a paragraph that fits, else of a line, a sentence, a word, else
    between two characters. `limit` is in UTF-16 units of visible text and at least 2. A text with
    nothing to see gives no message.
    """
    pieces = parse(markdown)
    text = "".join(piece.text for piece in pieces)
    starts = list(accumulate((len(piece.text) for piece in pieces), initial=0))
    messages = []
    start = 0
    while start < len(text):
        room = _room(_slice(pieces, starts, start, len(text)), limit)
        end = start + _cut(text[start : start + room + 2], room)
        piece = text[start:end]
        if any(unicodedata.category(character) not in _UNSEEN for character in piece):
            shown = _slice(pieces, starts, start, start + len(piece.rstrip()))
            messages.append(to_html(list(shown)))
        start = end
        while text[start : start + 1].isspace():
            start += 1
    return messages


def to_html(pieces: Sequence[Piece]) -> str:
    """Runs as Telegram's HTML: tags are well nested, everything else is escaped."""
    parts: list[str] = []
    open_marks: tuple[Mark, ...] = ()
    for piece in [*pieces, Piece("")]:
        kept = _shared(open_marks, piece.marks)
        parts += [_closing(mark) for mark in reversed(open_marks[kept:])]
        parts += [_opening(mark) for mark in piece.marks[kept:]]
        parts.append(escape_html(piece.text, quote=False))
        open_marks = piece.marks
    return "".join(parts)


def from_html(html: str) -> list[Piece]:
    """The pieces of a message's HTML, the way back from `to_html`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.pieces


def visible_text(html: str) -> str:
    """What a person sees of a message's HTML, without its marks."""
    return "".join(piece.text for piece in from_html(html))


def utf16_units(text: str) -> int:
    """The length of `text` as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _opening(mark: Mark) -> str:
    if mark.tag == "a":
        return f'<a href="{escape_html(mark.value)}">'
    if mark == FOLDED:
        return "<blockquote expandable>"
    if mark.tag == "pre" and mark.value:
        return f'<pre><code class="language-{escape_html(mark.value)}">'
    return f"<{mark.tag}>"


def _closing(mark: Mark) -> str:
    return "</code></pre>" if mark.tag == "pre" and mark.value else f"</{mark.tag}>"


def _shared(before: tuple[Mark, ...], after: tuple[Mark, ...]) -> int:
    """How many outer marks two neighbouring pieces have in common."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _slice(
    pieces: Sequence[Piece], starts: Sequence[int], start: int, stop: int
) -> Iterator[Piece]:
    """The pieces of the characters `start` to `stop`; `starts` is where each piece begins."""
    for at in range(bisect_right(starts, start) - 1, bisect_left(starts, stop)):
        text = pieces[at].text[max(0, start - starts[at]) : stop - starts[at]]
        if text:
            yield Piece(text, pieces[at].marks)


def _room(pieces: Iterable[Piece], limit: int) -> int:
    """How many characters from the start fit into one message; at least one."""
    characters = units = entities = 0
    open_marks: tuple[Mark, ...] = ()
    for piece in pieces:
        entities += len(piece.marks) - _shared(open_marks, piece.marks)
        open_marks = piece.marks
        if entities > MESSAGE_ENTITIES:
            break
        fitting = _prefix(piece.text, limit - units)
        characters += fitting
        if fitting < len(piece.text):
            break
        units += utf16_units(piece.text)
    return max(1, characters)


def _prefix(text: str, limit: int) -> int:
    """How many characters of `text` take at most `limit` UTF-16 units."""
    units = 0
    for index, character in enumerate(text[: limit + 1]):
        units += 1 + (ord(character) > 0xFFFF)
        if units > limit:
            return index
    return len(text)


def _cut(text: str, end: int) -> int:
    """Where to end a message that may hold `end` characters of `text`."""
    if end >= len(text):
        return len(text)
    return next(cut for cut in _cuts(text, end) if cut > 0)


def _cuts(text: str, end: int) -> Iterator[int]:
    yield text.rfind("\n\n", 1, end + 2)
    yield text.rfind("\n", 1, end + 1)
    yield last_sentence_end(text, end)
    yield next((at for at in range(end, 0, -1) if text[at].isspace()), 0)
    yield next((cut for cut in range(end, 0, -1) if not _joined(text, cut)), 0)
    yield end


def _joined(text: str, cut: int) -> bool:
    """Whether the characters around `cut` are drawn as one."""
    before, after = text[cut - 1], text[cut]
    if before == _JOINER or after in (_JOINER, _KEYCAP) or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        flags = takewhile(_is_flag_letter, text[cut - 1 :: -1])
        return sum(1 for _ in flags) % 2 == 1
    return unicodedata.category(after).startswith("M")


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class _Reader(HTMLParser):
    """Collects the pieces of Telegram's HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self._marks: list[Mark] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a mark; the `code` inside a `pre` carries its language."""
        if tag == CODE.tag and self._marks and self._marks[-1].tag == "pre":
            language = (dict(attrs).get("class") or "").removeprefix("language-")
            self._marks[-1] = Mark("pre", language)
        elif tag == FOLDED.tag and "expandable" in dict(attrs):
            self._marks.append(FOLDED)
        elif tag in _TAGS:
            self._marks.append(Mark(_TAGS[tag], dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost mark."""
        if self._marks and self._marks[-1].tag == tag:
            self._marks.pop()

    def handle_data(self, data: str) -> None:
        """Keep a piece of text under the marks that are open."""
        self.pieces.append(Piece(data, tuple(self._marks)))


_TAGS: dict[str, Tag] = {
    "blockquote": "blockquote",
    "pre": "pre",
    "a": "a",
    "b": "b",
    "i": "i",
    "code": "code",
}

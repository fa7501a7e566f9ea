"""What a person sees: Markdown as Telegram's HTML, a long text as several messages. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from html.parser import HTMLParser

from agent.text import last_sentence_end
from bot.telegram.markdown import CODE, FOLDED, Mark, Run, Tag, parse

MESSAGE_UNITS = 4096
"""The longest message, in UTF-16 units of the text that is seen."""

MESSAGE_ENTITIES = 100
"""The most marks that Telegram keeps in one message."""

_SPACE = re.compile(r"\s")
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
    runs = parse(markdown)
    text = "".join(run.text for run in runs)
    messages = []
    start = 0
    while start < len(text):
        rest = _slice(runs, start, len(text))
        end = start + _cut(text[start:], _room(rest, limit))
        piece = text[start:end]
        if any(unicodedata.category(character) not in _UNSEEN for character in piece):
            messages.append(to_html(_slice(runs, start, start + len(piece.rstrip()))))
        start = end + len(text[end:]) - len(text[end:].lstrip())
    return messages


def to_html(runs: Sequence[Run]) -> str:
    """Runs as Telegram's HTML: tags are well nested, everything else is escaped."""
    parts: list[str] = []
    open_marks: tuple[Mark, ...] = ()
    for run in [*runs, Run("")]:
        kept = _shared(open_marks, run.marks)
        parts += [_closing(mark) for mark in reversed(open_marks[kept:])]
        parts += [_opening(mark) for mark in run.marks[kept:]]
        parts.append(escape(run.text, quote=False))
        open_marks = run.marks
    return "".join(parts)


def from_html(html: str) -> list[Run]:
    """The runs of a message's HTML, the way back from `to_html`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.runs


def visible_text(html: str) -> str:
    """What a person sees of a message's HTML, without its marks."""
    return "".join(run.text for run in from_html(html))


def utf16_units(text: str) -> int:
    """The length of `text` as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _opening(mark: Mark) -> str:
    if mark.tag == "a":
        return f'<a href="{escape(mark.value)}">'
    if mark == FOLDED:
        return "<blockquote expandable>"
    if mark.tag == "pre" and mark.value:
        return f'<pre><code class="language-{escape(mark.value)}">'
    return f"<{mark.tag}>"


def _closing(mark: Mark) -> str:
    return "</code></pre>" if mark.tag == "pre" and mark.value else f"</{mark.tag}>"


def _shared(before: tuple[Mark, ...], after: tuple[Mark, ...]) -> int:
    """How many outer marks two neighbouring runs have in common."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _slice(runs: Sequence[Run], start: int, stop: int) -> list[Run]:
    """The runs of the characters `start` to `stop`."""
    sliced = []
    position = 0
    for run in runs:
        text = run.text[max(0, start - position) : max(0, stop - position)]
        if text:
            sliced.append(Run(text, run.marks))
        position += len(run.text)
    return sliced


def _room(runs: Sequence[Run], limit: int) -> int:
    """How many characters from the start fit into one message; at least one."""
    characters = units = entities = 0
    open_marks: tuple[Mark, ...] = ()
    for run in runs:
        entities += len(run.marks) - _shared(open_marks, run.marks)
        open_marks = run.marks
        if entities > MESSAGE_ENTITIES:
            break
        fitting = _prefix(run.text, limit - units)
        characters += fitting
        if fitting < len(run.text):
            break
        units += utf16_units(run.text)
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
    yield max((match.start() for match in _SPACE.finditer(text, 1, end + 1)), default=0)
    yield next((cut for cut in range(end, 0, -1) if not _joined(text, cut)), 0)
    yield end


def _joined(text: str, cut: int) -> bool:
    """Whether the characters around `cut` are drawn as one."""
    before, after = text[cut - 1], text[cut]
    if before == _JOINER or after in (_JOINER, _KEYCAP) or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        flags = re.search("[\U0001f1e6-\U0001f1ff]+$", text[:cut])
        return flags is not None and len(flags[0]) % 2 == 1
    return unicodedata.category(after).startswith("M")


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class _Reader(HTMLParser):
    """Collects the runs of Telegram's HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
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
        self.runs.append(Run(data, tuple(self._marks)))


_TAGS: dict[str, Tag] = {
    "blockquote": "blockquote",
    "pre": "pre",
    "a": "a",
    "b": "b",
    "i": "i",
    "code": "code",
}

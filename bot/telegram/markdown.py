"""Markdown, as language models write it, read into runs of marked text. Pure.

A language model's text is untrusted and rarely quite Markdown, so nothing in it is an error: what
is not understood stays as it was written. Lines stay lines, and no word is lost.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from urllib.parse import quote

Tag = Literal["blockquote", "pre", "a", "b", "i", "code"]


class Mark(NamedTuple):
    """What marks a piece of text.

    `value` is the URL of an `a`, the language of a `pre`, "expandable" for a folded `blockquote`.
    """

    tag: Tag
    value: str = ""


class Run(NamedTuple):
    """A piece of text under the same marks, outermost first."""

    text: str
    marks: tuple[Mark, ...] = ()


class Line(NamedTuple):
    """One line, and the block (quote or code) it belongs to."""

    runs: tuple[Run, ...]
    block: tuple[Mark, ...] = ()


QUOTE = Mark("blockquote")
FOLDED = Mark("blockquote", "expandable")
BOLD = Mark("b")
ITALIC = Mark("i")
CODE = Mark("code")

_FENCE = re.compile(r"\s{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[ \t]*")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<title>.*?)(?:[ \t]+#+)?[ \t]*")
_BULLET = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?=\S)")
_QUOTE = re.compile(r"(?P<folded>\*\*>)(?:[ \t]|$)| {0,3}>[ \t]?")
"""A line of a quote; `**>`, as Telegram's own Markdown has it, of one that is folded."""

# Spans have a longest length, so that a text full of openers costs no quadratic time.
_SPAN = re.compile(
    r"""
      \\(?P<escaped>[\\`*_\[\]()#>~|+.!-])
    | (?<!`)(?P<ticks>`+)(?!`)(?P<code>.{1,1000}?)(?<!`)(?P=ticks)(?!`)
    | \[(?P<label>[^\[\]]{1,500})\]\((?P<url>https?://(?:[^\s()]|\([^\s()]{0,200}\)){1,2000})\)
    | \*\*(?=[^\s])(?P<bold>.{1,1000}?)(?<=[^\s])\*\*(?!\*)
    | (?<!\w)__(?=[^\s_])(?P<bold_>.{1,1000}?)(?<=[^\s_])__(?!\w)
    | (?<![\w*])\*(?=[^\s*])(?P<italic>.{1,1000}?)(?<=[^\s*])\*(?![\w*])
    | (?<!\w)_(?=[^\s_])(?P<italic_>.{1,1000}?)(?<=[^\s_])_(?!\w)
    """,
    re.VERBOSE,
)

_SPECIAL = re.compile(r"[\\`*_\[\]()#>~|+.!-]")
LONGEST_LABEL = 200

_CONTROL = {code: " " for code in [*range(32), 127] if chr(code) not in "\n\t"}


def parse(markdown: str) -> list[Run]:
    """The runs of a whole text; their texts together are what a person sees."""
    runs: list[Run] = []
    before: Line | None = None
    for line in _lines(_clean(markdown).split("\n")):
        if before is not None:
            runs.append(Run("\n", line.block if line.block == before.block else ()))
        runs.extend(run for run in line.runs if run.text)
        before = line
    return runs


def escape(text: str) -> str:
    """Markdown that shows `text` as it is, on one line as far as it was."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def link(label: str, url: str) -> str:
    """Markdown for a link; only the label, escaped, if `url` is none of the web."""
    shown = escape(label[:LONGEST_LABEL].replace("[", "(").replace("]", ")"))
    target = re.sub(r"[\s()<>\"]", lambda found: quote(found[0]), url)
    return f"[{shown}]({target})" if re.match(r"https?://\S", target) else shown


def _clean(text: str) -> str:
    """`text` as any server can take it: no lone surrogates, no control characters."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROL)


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
            yield Line((Run(line, block),), block)
    yield from _language(unsaid)


def _language(unsaid: str) -> Iterator[Line]:
    """The language of a code block that turned out to be empty: a word like any other."""
    if unsaid:
        yield Line((Run(unsaid),))


def _line(line: str) -> Line:
    if quoted := _QUOTE.match(line):
        block = (FOLDED,) if quoted["folded"] else (QUOTE,)
        return Line(tuple(_spans(_bulleted(line[quoted.end() :]), block)), block)
    if heading := _HEADING.fullmatch(line):
        return Line(tuple(_spans(heading["title"], (BOLD,))))
    return Line(tuple(_spans(_bulleted(line), ())))


def _bulleted(line: str) -> str:
    return _BULLET.sub(r"\g<indent>• ", line, count=1) if _BULLET.match(line) else line


def _spans(text: str, marks: tuple[Mark, ...]) -> Iterator[Run]:
    position = 0
    for match in _SPAN.finditer(text):
        if match.start() > position:
            yield Run(text[position : match.start()], marks)
        yield from _span(match, marks)
        position = match.end()
    if position < len(text):
        yield Run(text[position:], marks)


def _span(match: re.Match[str], marks: tuple[Mark, ...]) -> Iterator[Run]:
    if match["escaped"]:
        yield Run(match["escaped"], marks)
    elif match["code"]:
        # Telegram allows no other mark around code, save a quote.
        yield Run(match["code"], (*(mark for mark in marks if mark.tag == QUOTE.tag), CODE))
    elif match["label"]:
        yield from _linked(match, marks)
    elif bold := match["bold"] or match["bold_"]:
        yield from _spans(bold, _with(marks, BOLD))
    else:
        yield from _spans(match["italic"] or match["italic_"], _with(marks, ITALIC))


def _linked(match: re.Match[str], marks: tuple[Mark, ...]) -> Iterator[Run]:
    link = Mark("a", match["url"])
    for run in _spans(match["label"], marks):
        inner = tuple(mark for mark in run.marks if mark not in marks and mark != CODE)
        yield Run(run.text, (*marks, link, *inner))


def _with(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    return marks if mark in marks else (*marks, mark)

"""What a file says under its headings, and the chunks that it is retrieved by. Pure.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from agent.text import pattern, truncate_at_boundary

LIMIT: Final = 1500
"""Characters of a chunk, but for a short rest that would not stand alone."""
REST: Final = 200
"""A rest of a section below this many characters joins the chunk before it."""
BLANK_LINE: Final = pattern(r"\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph (`level` 0) or a heading (`level` from 1, the highest)."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading: paragraphs separated by blank lines."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's title and sections; `title` is empty where the file gives none."""

    title: str
    sections: tuple[Section, ...]


@dataclass(slots=True)
class _Open:
    """A section while it is read."""

    heading: Block
    headings: tuple[str, ...]
    paragraphs: list[str] = field(default_factory=list)


def outline(blocks: Iterable[Block], title: str = "") -> Outline:
    """Return blocks grouped by their headings.

    Without a `title` the first heading of level 1 is the title. The title's own heading is left
    out of the heading chains: it stands beside them already.
    """
    blocks = [block for block in blocks if block.text.strip()]
    title = title or next((block.text for block in blocks if block.level == 1), "")
    return Outline(title, tuple(_sections(_opened(blocks, title))))


def _opened(blocks: Iterable[Block], title: str) -> list[_Open]:
    found = [_Open(Block(""), ())]
    chain: list[Block] = []
    titled = False
    for block in blocks:
        if not block.level:
            found[-1].paragraphs.append(block.text)
            continue
        chain = [above for above in chain if above.level < block.level]
        if block.level == 1 and block.text == title and not titled:
            titled = True
        else:
            chain.append(block)
        found.append(_Open(block, tuple(heading.text for heading in chain)))
    return found


def _sections(opened: list[_Open]) -> Iterator[Section]:
    for number, section in enumerate(opened):
        text = "\n\n".join(section.paragraphs)
        if not text and _is_leaf(opened, number):
            text = section.heading.text
        if text:
            yield Section(section.headings, text)


def _is_leaf(opened: list[_Open], number: int) -> bool:
    """Whether nothing stands below this heading: then it is a text of its own, or would be lost."""
    following = opened[number + 1 : number + 2]
    return all(section.heading.level <= opened[number].heading.level for section in following)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk before it is stored: verbatim text and the headings it stands under."""

    headings: tuple[str, ...]
    text: str


Span = tuple[int, int]


def chunk(sections: Sequence[Section], limit: int = LIMIT) -> list[Piece]:
    """Return the pieces of a document in order, each at most `limit + REST` characters.

    Small paragraphs of one section are merged, long ones cut at sentence ends; no piece holds text
    of two sections.
    """
    return [
        Piece(section.headings, section.text[start:end])
        for section in sections
        for start, end in _merge(list(_units(section.text, limit)), limit)
    ]


def _merge(units: Sequence[Span], limit: int) -> list[Span]:
    """Neighbours joined while they fit."""
    merged: list[Span] = []
    for start, end in units:
        if merged and end - merged[-1][0] <= limit:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    rest = min(REST, limit // 4)
    if len(merged) > 1 and merged[-1][1] - merged[-1][0] < rest:
        (start, _), (_, end) = merged[-2:]
        if end - start <= limit + rest:
            merged[-2:] = [(start, end)]
    return merged


def _units(text: str, limit: int) -> Iterator[Span]:
    """Paragraphs without the white space around them; the parts of those that are too long."""
    edges = [0, *(match.end() for match in BLANK_LINE.finditer(text)), len(text)]
    for start, end in pairwise(edges):
        begin, stop = _strip(text, start, end)
        while stop - begin > limit:
            cut = begin + _cut(text[begin : begin + limit + REST], limit)
            yield _strip(text, begin, cut)
            begin = _next_word(text, cut)
        if stop > begin:
            yield begin, stop


def _strip(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _next_word(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _cut(window: str, limit: int) -> int:
    """Where to cut: after a sentence, else a line, else a word, none of them too early."""
    early = limit // 3
    sentence = len(truncate_at_boundary(window, limit))
    if sentence >= early:
        return sentence
    line = window.rfind("\n", early, limit + 1)
    word = max((at for at, sign in enumerate(window[: limit + 1]) if sign.isspace()), default=-1)
    return next((cut for cut in (line, word) if cut >= early), limit)

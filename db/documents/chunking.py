"""Group the text of a file under its headings, and cut it into chunks.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from agent.text import pattern, truncate_at_boundary

LIMIT: Final = 1500
"""Characters in a chunk; a short rest of the section may be added."""
REST: Final = 200
"""A rest of a section with fewer characters is added to the chunk before it."""
BLANK_LINE: Final = pattern(r"\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph (`level` 0) or a heading (`level` from 1, the highest)."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading; blank lines separate its paragraphs."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The title and sections of a file; `title` is empty if the file has none."""

    title: str
    sections: tuple[Section, ...]


@dataclass(slots=True)
class _OpenSection:
    """A section to which paragraphs are still added."""

    heading: Block
    headings: tuple[str, ...]
    paragraphs: list[str] = field(default_factory=list)


def outline(blocks: Iterable[Block], title: str = "") -> Outline:
    """Group blocks by their headings.

    Without a `title`, the first heading of level 1 becomes the title. The heading that repeats the
    title is left out of the heading chains.
    """
    blocks = [block for block in blocks if block.text.strip()]
    title = title or next((block.text for block in blocks if block.level == 1), "")
    return Outline(title, tuple(_sections(_open_sections(blocks, title))))


def _open_sections(blocks: Iterable[Block], title: str) -> list[_OpenSection]:
    found = [_OpenSection(Block(""), ())]
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
        found.append(_OpenSection(block, tuple(heading.text for heading in chain)))
    return found


def _sections(opened: list[_OpenSection]) -> Iterator[Section]:
    for number, section in enumerate(opened):
        text = "\n\n".join(section.paragraphs)
        if not text and _is_leaf(opened, number):
            text = section.heading.text
        if text:
            yield Section(section.headings, text)


def _is_leaf(opened: list[_OpenSection], number: int) -> bool:
    """Return whether no text or deeper heading follows; the heading is then kept as text."""
    following = opened[number + 1 : number + 2]
    return all(section.heading.level <= opened[number].heading.level for section in following)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk before it is stored: verbatim text and its headings."""

    headings: tuple[str, ...]
    text: str


Span = tuple[int, int]


def chunk(sections: Sequence[Section], limit: int = LIMIT) -> list[Piece]:
    """Cut the sections of a document into pieces of at most `limit + REST` characters.

    Small paragraphs of a section are merged, long ones are cut after a sentence. No piece holds
    text of two sections.
    """
    return [
        Piece(section.headings, section.text[start:end])
        for section in sections
        for start, end in _merge(list(_units(section.text, limit)), limit)
    ]


def _merge(units: Sequence[Span], limit: int) -> list[Span]:
    """Merge neighbours while they fit into one chunk."""
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
    """Yield the paragraphs, and the parts of those that are too long, without outer white space."""
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
    """Return where to cut: after a sentence, else a line, else a word, but not too early."""
    early = limit // 3
    sentence = len(truncate_at_boundary(window, limit))
    if sentence >= early:
        return sentence
    line = window.rfind("\n", early, limit + 1)
    word = max((at for at, sign in enumerate(window[: limit + 1]) if sign.isspace()), default=-1)
    return next((cut for cut in (line, word) if cut >= early), limit)

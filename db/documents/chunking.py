"""Group the text of a file under its headings, and cut it into chunks.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.language import truncate_at_boundary
from agent.text import pattern

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
    """A text under its chain of headings: all of it, or a chunk."""

    headings: tuple[str, ...]
    text: str


def outline(blocks: Iterable[Block], title: str = "") -> tuple[str, list[Section]]:
    """Group blocks by their headings; return the title and the sections.

    Without a `title`, the first heading of level 1 becomes the title. The heading that repeats the
    title is left out of the heading chains. A heading with nothing below it is kept as text.
    """
    blocks = [block for block in blocks if block.text.strip()]
    title = title or next((block.text for block in blocks if block.level == 1), "")
    repeats = next((block for block in blocks if block == Block(title, 1)), None)
    sections: list[Section] = []
    chain: list[Block] = []
    paragraphs: list[str] = []
    for block, following in pairwise([*blocks, Block("", 1)]):
        if block.level:
            chain = [above for above in chain if above.level < block.level] + [block]
        if not block.level or 0 < following.level <= block.level:
            paragraphs.append(block.text)
        if following.level and paragraphs:
            headings = tuple(heading.text for heading in chain if heading is not repeats)
            sections.append(Section(headings, "\n\n".join(paragraphs)))
            paragraphs = []
    return title, sections


Span = tuple[int, int]


def chunk(sections: Sequence[Section], limit: int = LIMIT) -> list[Section]:
    """Cut the sections of a document into chunks of at most `limit + REST` characters.

    Small paragraphs of a section are merged, long ones are cut after a sentence. No chunk holds
    text of two sections.
    """
    return [
        Section(section.headings, section.text[start:end])
        for section in sections
        for start, end in _merge(_units(section.text, limit), limit)
    ]


def _merge(units: Iterable[Span], limit: int) -> list[Span]:
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
            begin, _ = _strip(text, cut, stop)
        if stop > begin:
            yield begin, stop


def _strip(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _cut(window: str, limit: int) -> int:
    """Return where to cut: after a sentence, else a line, else a word, but not too early."""
    early = limit // 3
    word = max((at for at, sign in enumerate(window[: limit + 1]) if sign.isspace()), default=-1)
    cuts = (len(truncate_at_boundary(window, limit)), window.rfind("\n", early, limit + 1), word)
    return next((cut for cut in cuts if cut >= early), limit)

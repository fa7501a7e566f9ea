"""Group the text of a file under its headings, and cut it into chunks.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.language import find_last_sentence_end
from agent.text import pattern

LIMIT: Final = 1500
"""Characters in a chunk; a short rest of the section may be added."""
REST: Final = 200
"""A rest of a section with fewer characters is no chunk of its own."""
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


def chunk(sections: Sequence[Section], limit: int = LIMIT) -> list[Section]:
    """Cut the sections of a document into chunks of at most `limit + REST` characters.

    A chunk ends with a paragraph, else a sentence, else a line. None holds text of two sections.
    """
    return [
        Section(section.headings, part)
        for section in sections
        for part in _parts(section.text.strip(), limit)
    ]


def _parts(text: str, limit: int) -> Iterator[str]:
    while len(text) > limit + min(REST, limit // 4):
        cut = _find_cut(text[: limit + REST], limit)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _find_cut(window: str, limit: int) -> int:
    """Return where to cut a text that begins with `window`: late enough to fill most of a chunk."""
    paragraphs = (match.start() for match in BLANK_LINE.finditer(window))
    cuts = (
        max((end for end in paragraphs if end <= limit), default=0),
        find_last_sentence_end(window, limit),
        window.rfind("\n", 0, limit + 1),
        window.rfind(" ", 0, limit + 1),
    )
    return next((cut for cut in cuts if cut >= limit // 3), limit)

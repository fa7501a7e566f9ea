"""Group the text of a file into sections under its headings, and cut these into chunks.

Chunks are contiguous and verbatim, since quotes are checked against them, and together contain all
text of a document.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.language import find_last_sentence_end
from agent.text import pattern

MAX_CHUNK_CHARS: Final = 1500
"""The maximum length of a chunk, not counting a short rest of its section."""
MAX_REST_CHARS: Final = 200
"""A rest of a section up to this length joins the last chunk."""
BLANK_LINE: Final = pattern(r"\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph (`level` 0) or a heading (`level` from 1, the highest)."""

    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A text under a chain of headings: a whole section, or a chunk of it."""

    headings: tuple[str, ...]
    text: str


def outline(blocks: Iterable[Block], title: str = "") -> tuple[str, list[Section]]:
    """Group blocks by their headings; return the title and the sections.

    `title` defaults to the first heading of level 1. The heading that repeats the title is left out
    of the chains. A heading without text below it is kept as text.
    """
    blocks = [block for block in blocks if block.text.strip()]
    main_headings = [block for block in blocks if block.level == 1]
    if not title and main_headings:
        title = main_headings[0].text
    repeated = None
    for heading in main_headings:
        if heading.text == title:
            repeated = heading
            break
    sections: list[Section] = []
    chain: list[Block] = []
    paragraphs: list[str] = []
    for block, next_block in pairwise([*blocks, Block("", 1)]):
        if block.level:
            chain = [heading for heading in chain if heading.level < block.level]
            chain.append(block)
        is_empty_heading = 0 < next_block.level <= block.level
        if not block.level or is_empty_heading:
            paragraphs.append(block.text)
        if next_block.level and paragraphs:  # the section ends
            headings = [heading.text for heading in chain if heading is not repeated]
            sections.append(Section(tuple(headings), "\n\n".join(paragraphs)))
            paragraphs = []
    return title, sections


def chunk(sections: Sequence[Section], limit: int = MAX_CHUNK_CHARS) -> list[Section]:
    """Cut the sections of a document into chunks of at most `limit + MAX_REST_CHARS`.

    A chunk ends with a paragraph, or else a sentence, or else a line. No chunk spans two sections.
    """
    chunks: list[Section] = []
    for section in sections:
        for part in _split(section.text.strip(), limit):
            chunks.append(Section(section.headings, part))
    return chunks


def _split(text: str, limit: int) -> Iterator[str]:
    while len(text) > limit + min(MAX_REST_CHARS, limit // 4):
        cut = _find_cut(text[: limit + MAX_REST_CHARS], limit)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _find_cut(window: str, limit: int) -> int:
    """Return where to cut the text that begins with `window`, after a third of `limit` or later."""
    paragraph_end = 0
    for match in BLANK_LINE.finditer(window):
        if match.start() <= limit:
            paragraph_end = match.start()
    cuts = (
        paragraph_end,
        find_last_sentence_end(window, limit),
        window.rfind("\n", 0, limit + 1),
        window.rfind(" ", 0, limit + 1),
    )
    for cut in cuts:
        if cut >= limit // 3:
            return cut
    return limit

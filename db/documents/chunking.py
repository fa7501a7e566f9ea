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
"""A rest of a section up to this length joins the last chunk, if chunks are long enough for it."""
BLANK_LINE: Final = pattern(r"\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph (`level` 0) or a heading (`level` from 1, the highest)."""

    text: str
    level: int = 0

    @property
    def is_heading(self) -> bool:
        """Return whether it is a heading."""
        return self.level > 0

    def is_empty_before(self, next_block: "Block") -> bool:
        """Return whether it is a heading with nothing below, as `next_block` shows.

        This is so if a heading of the same or a higher rank follows directly.
        """
        if not (self.is_heading and next_block.is_heading):
            return False
        return next_block.level <= self.level


@dataclass(frozen=True, slots=True)
class Section:
    """A text under a chain of headings. A chunk of a section is a shorter `Section`."""

    headings: tuple[str, ...]
    """The headings above the text, the highest first: ("Grapes", "Reds")."""
    text: str


def outline(blocks: Iterable[Block], title: str = "") -> tuple[str, list[Section]]:
    """Group blocks into sections by their headings, and return the title and the sections.

    If `title` is empty, the first heading of level 1 is the title. The heading that repeats the
    title is left out of the chains of headings. A heading without text below it is kept as text.
    """
    blocks = [block for block in blocks if block.text.strip()]
    title, title_heading = _find_title(blocks, title)
    sections: list[Section] = []
    chain: list[Block] = []
    paragraphs: list[str] = []
    # After the last block, an empty heading ends the last section.
    for block, next_block in pairwise([*blocks, Block("", level=1)]):
        if block.is_heading:
            chain = [heading for heading in chain if heading.level < block.level]
            chain.append(block)
        if not block.is_heading or block.is_empty_before(next_block):
            paragraphs.append(block.text)
        section_ends = next_block.is_heading
        if section_ends and paragraphs:
            headings: list[str] = []
            for heading in chain:
                # Compared by identity: a later heading with this text does not repeat the title.
                if heading is not title_heading:
                    headings.append(heading.text)
            text = "\n\n".join(paragraphs)
            sections.append(Section(tuple(headings), text))
            paragraphs = []
    return title, sections


def _find_title(blocks: Sequence[Block], title: str) -> tuple[str, Block | None]:
    """Return the title, and the heading that repeats it, or None.

    If `title` is empty, the title is the first heading of level 1.
    """
    main_headings = [block for block in blocks if block.level == 1]
    if not title and main_headings:
        title = main_headings[0].text
    for heading in main_headings:
        if heading.text == title:
            return title, heading
    return title, None


def cut_sections(
    sections: Sequence[Section], limit: int = MAX_CHUNK_CHARS
) -> list[Section]:
    """Cut the sections of a document into chunks of at most `limit + MAX_REST_CHARS` characters.

    A chunk ends where a paragraph ends, or else a sentence, a line or a word. No chunk spans two
    sections.
    """
    chunks: list[Section] = []
    for section in sections:
        text = section.text.strip()
        for part in _split(text, limit):
            chunks.append(Section(section.headings, part))
    return chunks


def _split(text: str, limit: int) -> Iterator[str]:
    """Yield the parts of a text, each with at most `limit` characters and a short rest."""
    # A rest must be short beside a chunk, also when a small limit is chosen.
    max_rest = min(MAX_REST_CHARS, limit // 4)
    while len(text) > limit + max_rest:
        window = text[: limit + MAX_REST_CHARS]
        cut = _find_cut(window, limit)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _find_cut(window: str, limit: int) -> int:
    """Return the position, at most `limit`, at which to cut the text that begins with `window`.

    `window` is longer than `limit`, so that it shows what follows a possible end of a sentence. To
    avoid tiny chunks, no position before a third of `limit` is chosen.
    """
    paragraph_end = 0
    for match in BLANK_LINE.finditer(window):
        if match.start() <= limit:
            paragraph_end = match.start()
    sentence_end = find_last_sentence_end(window, limit)
    line_end = window.rfind("\n", 0, limit + 1)
    word_end = window.rfind(" ", 0, limit + 1)
    for cut in (paragraph_end, sentence_end, line_end, word_end):
        if cut >= limit // 3:
            return cut
    return limit

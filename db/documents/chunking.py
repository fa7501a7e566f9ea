"""Cutting a document into chunks: by heading, then by paragraph, then by sentence. Pure.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.text import truncate_at_boundary
from db.documents.outline import Section

LIMIT: Final = 1500
"""Characters of a chunk, but for a short rest that would not stand alone."""
REST: Final = 200
"""A rest of a section below this many characters joins the chunk before it."""

_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk before it is stored: verbatim text and the headings it stands under."""

    headings: tuple[str, ...]
    text: str


Span = tuple[int, int]


def chunk(sections: Sequence[Section], limit: int = LIMIT) -> list[Piece]:
    """The pieces of a document in order, each at most `limit + REST` characters.

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
    edges = [0, *(match.end() for match in _BLANK_LINE.finditer(text)), len(text)]
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
    """Where to cut: after a sentence, else a line, else a word, none of them too early."""
    early = limit // 3
    sentence = len(truncate_at_boundary(window, limit))
    if sentence >= early:
        return sentence
    line = window.rfind("\n", early, limit + 1)
    word = max((found.start() for found in re.finditer(r"\s", window[: limit + 1])), default=-1)
    return next((cut for cut in (line, word) if cut >= early), limit)

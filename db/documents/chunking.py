"""What a file says under its headings, its chunks, and the terms they are found by. Pure.

A chunk is a contiguous, verbatim part of its document's text, since quotes are checked against it;
the chunks of a document together hold all of its text.

Terms are language-neutral where they can be: case and accents are folded in every script, and only
the first letters of a word count, since most languages bend words at their end. Words in Latin
letters are stemmed first. Scripts written without spaces, and Korean, are cut into overlapping
pairs or threes.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zlib import crc32

from agent.text import REMEMBERED, pattern, stem, stop_words, truncate_at_boundary, words

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


MAX_QUERY_TERMS: Final = 64
MAX_LENGTH: Final = 64
LATIN_LETTERS: Final = 7
"""How much of a stem counts: "recommend", "recommandation" and "recomendación" differ later."""
OTHER_LETTERS: Final = 5
"""How much of an unstemmed word of another alphabet counts."""
HEADING_WEIGHT: Final = 2
"""How often a word of title and headings counts."""
MOST_COUNTED: Final = 255
"""Of a word that is written more often no more is counted: bm25 would not tell the difference."""

# Thai, Lao, Burmese and Khmer are spelt: a pair of their letters says less than one of syllables.
_UNSPACED: Final = pattern(
    r"(?P<letters>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\x{20000}-\x{3ffff}]+"
)
_ARABIC_ARTICLE: Final = pattern(r"\A[\u0648\u0641\u0628\u0643\u0644]?\u0627\u0644(\w{3})")


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, with repetitions, without stop words."""
    return [term for word in words(text) for term in _word_terms(word)]


def index_terms(text: str) -> list[str]:
    """Return the terms of `text`, and each character of a syllabic script: it may be a word."""
    return [term for word in words(text) for term in (*_word_terms(word), *_characters(word))]


def query_terms(text: str) -> tuple[str, ...]:
    """Return the terms to look for: each once, at most 64."""
    return tuple(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


def term_number(term: str) -> int:
    """Return 32 bits for a term; among 500,000 terms, 1 in 10,000 shares its own with another."""
    return crc32(term.encode())


def postings(headings: str, text: str) -> bytes:
    """Return what a chunk is found by: how many terms it has, their numbers, and counts of each.

    Numbers have 4 bytes, little end first, counts one; a term of the headings counts twice.
    """
    counts: dict[int, int] = {}
    length = 0
    for said, weight in ((headings, HEADING_WEIGHT), (text, 1)):
        for word, often in Counter(words(said)).items():
            for number in _NUMBERS[word]:
                counts[number] = counts.get(number, 0) + weight * often
                length += often
    most = (min(count, MOST_COUNTED) for count in counts.values())
    return struct.pack(f"<{len(counts) + 1}I", length, *counts) + bytes(most)


class _Numbers(dict[str, tuple[int, ...]]):
    """The numbers of the terms of each word, worked out when it is first met."""

    def __missing__(self, word: str) -> tuple[int, ...]:
        numbers = tuple(map(term_number, (*_word_terms(word), *_characters(word))))
        if len(self) < REMEMBERED:
            self[word] = numbers
        return numbers


_NUMBERS: Final = _Numbers()


def _word_terms(word: str) -> Iterator[str]:
    if not word.isascii():
        yield from (_cut_word if len(word) <= MAX_LENGTH else _cut_word.__wrapped__)(word)
    elif word not in stop_words():
        yield _first(stem(word[:MAX_LENGTH]), LATIN_LETTERS)


def _first(word: str, letters: int) -> str:
    """The start of a word; a number, and a name with one in it, is kept whole."""
    return word[:letters] if word.isalpha() else word


@lru_cache(maxsize=REMEMBERED)
def _cut_word(word: str) -> tuple[str, ...]:
    """The start of what has spaces around it, and the overlapping parts of what has none."""
    parts, end = list[str](), 0
    for run in _UNSPACED.finditer(word):
        parts.append(_start(word[end : run.start()]))
        size, end = 3 if run["letters"] else 2, run.end()
        parts += (run[0][at : at + size] for at in range(max(len(run[0]) - size + 1, 1)))
    return tuple(filter(None, [*parts, _start(word[end:])]))


def _start(word: str) -> str:
    """What counts of a word of an alphabet: without the Arabic article, its first letters."""
    bare = _ARABIC_ARTICLE.sub(lambda found: found[1], word)
    return bare[: MAX_LENGTH if any(map(str.isdigit, bare)) else OTHER_LETTERS]


def _characters(word: str) -> str:
    runs = () if word.isascii() else _UNSPACED.finditer(word)
    return "".join(run[0] for run in runs if len(run[0]) > 1 and not run["letters"])

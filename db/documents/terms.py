"""The terms a text is indexed and found by. Pure.

Language-neutral where it can be: case and accents are folded in every script, and only the first
letters of a word count, since most languages bend words at their end. Words in Latin letters are
stemmed first. Scripts written without spaces, and Korean, are cut into overlapping pairs or threes.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from zlib import crc32

from agent.text import REMEMBERED, pattern, stem, stop_words, words

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
        yield from (_cut if len(word) <= MAX_LENGTH else _cut.__wrapped__)(word)
    elif word not in stop_words():
        yield _first(stem(word[:MAX_LENGTH]), LATIN_LETTERS)


def _first(word: str, letters: int) -> str:
    """The start of a word; a number, and a name with one in it, is kept whole."""
    return word[:letters] if word.isalpha() else word


@lru_cache(maxsize=REMEMBERED)
def _cut(word: str) -> tuple[str, ...]:
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

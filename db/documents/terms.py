"""The terms a text is indexed and found by, the same for both databases. Pure.

Language-neutral where it can be: case and accents are folded in every script, and only the first
letters of a word count, since most languages bend words at their end. Words in Latin letters are
stemmed first. Scripts written without spaces, and Korean, are cut into overlapping pairs or threes.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agent.text import REMEMBERED, pattern, stem, stop_words, words

MAX_QUERY_TERMS: Final = 64
MAX_LENGTH: Final = 64
LATIN_LETTERS: Final = 7
"""How much of a stem counts: "recommend", "recommandation" and "recomendación" differ later."""
OTHER_LETTERS: Final = 5
"""How much of an unstemmed word of another alphabet counts."""

# Thai, Lao, Burmese and Khmer are spelt: a pair of their letters says less than one of syllables.
_UNSPACED: Final = pattern(
    r"(?P<letters>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\x{20000}-\x{3ffff}]+"
)
_ARABIC_ARTICLE: Final = pattern(r"\A[\u0648\u0641\u0628\u0643\u0644]?\u0627\u0644(\w{3})")


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, with repetitions, without stop words.

    A term holds letters, digits and marks only, at most 64 of them, so that none can break the
    syntax of a query or outgrow an index.
    """
    return [term for word in words(text) for term in _word_terms(word)]


def index_terms(text: str) -> list[str]:
    """Return the terms of `text`, and each character of a syllabic script: it may be a word."""
    return [term for word in words(text) for term in (*_word_terms(word), *_characters(word))]


def query_terms(text: str) -> tuple[str, ...]:
    """Return the terms to look for: each once, at most 64."""
    return tuple(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


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

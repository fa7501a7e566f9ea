"""The terms a text is indexed and found by, the same for both databases. Pure.

Language-neutral where it can be: case and accents are folded in every script, and only the first
letters of a word count, since most languages bend words at their end. Words in Latin letters are
stemmed first. Scripts written without spaces, and Korean, are cut into overlapping pairs or threes.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from db.documents.stemming import MAX_LENGTH, stem
from db.search_text import fold

MAX_QUERY_TERMS: Final = 64
LATIN_LETTERS: Final = 7
"""How much of a stem counts: "recommend", "recommandation" and "recomendación" differ later."""
OTHER_LETTERS: Final = 5
"""How much of an unstemmed word of another alphabet counts."""

# Letters and digits of every script, with the marks that are part of a word in theirs.
_WORD: Final = re.compile(
    r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a])+"
)
# Thai, Lao, Burmese and Khmer are spelt: a pair of their letters says less than one of syllables.
_UNSPACED: Final = re.compile(
    r"(?P<letters>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)
_INVISIBLE: Final = str.maketrans("", "", "\u00ad\u200d\u2060\ufeff")
_ARABIC_ARTICLE: Final = re.compile(r"^[\u0648\u0641\u0628\u0643\u0644]?\u0627\u0644(?=\w{3})")

STOP_WORDS: Final = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before
    being below between both but by can could did do does doing down during each few for from
    further had has have having he her here hers herself him himself his how i if in into is it its
    itself just me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own s same she should so some such t than that the their theirs them
    themselves then there these they this those through to too under until up very was we were
    what when where which while who whom why will with would you your yours yourself yourselves
    """.split()
)


def terms(text: str) -> list[str]:
    """The terms of `text` in order, with repetitions, without stop words.

    A term holds letters, digits and marks only, at most 64 of them, so that none can break the
    syntax of a query or outgrow an index.
    """
    return [term for word in _words(text) for term in _word_terms(word)]


def index_terms(text: str) -> list[str]:
    """The terms of `text`, and each character of a syllabic script, which may be a word alone."""
    return [term for word in _words(text) for term in (*_word_terms(word), *_characters(word))]


def query_terms(text: str) -> tuple[str, ...]:
    """The terms to look for: each once, at most 64."""
    return tuple(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.translate(_INVISIBLE))


@lru_cache(maxsize=65_536)
def _word_terms(word: str) -> tuple[str, ...]:
    folded = fold(word)
    if folded.isascii() and folded:
        parts = (part[:MAX_LENGTH] for part in folded.split() if part not in STOP_WORDS)
        return tuple(_first(stem(part), LATIN_LETTERS) for part in parts)
    return tuple(term for term in _cut(_without_accents(word)) if _WORD.fullmatch(term))


def _first(word: str, letters: int) -> str:
    """The start of a word; a number, and a name with one in it, is kept whole."""
    return word[:letters] if word.isalpha() else word


def _without_accents(word: str) -> str:
    """Folded without loss to scripts where a mark is a letter: Indic vowels, Japanese voicing."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    kept = (char for char in decomposed if not _is_accent(unicodedata.combining(char)))
    return unicodedata.normalize("NFC", "".join(kept))


def _is_accent(combining_class: int) -> bool:
    return 10 <= combining_class <= 35 or 200 <= combining_class <= 240


def _cut(word: str) -> Iterator[str]:
    """The start of what has spaces around it, and the overlapping parts of what has none."""
    end = 0
    for run in _UNSPACED.finditer(word):
        yield _start(word[end : run.start()])
        size, end = 3 if run["letters"] else 2, run.end()
        for at in range(max(len(run[0]) - size + 1, 1)):
            yield run[0][at : at + size]
    yield _start(word[end:])


def _start(word: str) -> str:
    """What counts of a word of an alphabet: without the Arabic article, its first letters."""
    bare = _ARABIC_ARTICLE.sub("", word)
    return bare[: MAX_LENGTH if any(map(str.isdigit, bare)) else OTHER_LETTERS]


def _characters(word: str) -> Iterator[str]:
    if word.isascii():
        return
    for run in _UNSPACED.finditer(_without_accents(word)):
        if len(run[0]) > 1 and not run["letters"]:
            yield from run[0]

"""The terms a text is indexed and found by, the same for both databases. Pure.

Language-neutral where it can be: case and accents are folded in every script; scripts written
without spaces, and Korean, are cut into pairs of characters; words in Latin letters are stemmed.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from db.documents.stemming import MAX_LENGTH, stem
from db.search_text import fold

MAX_QUERY_TERMS: Final = 64

# Letters and digits of every script, with the marks that are part of a word in theirs.
_WORD: Final = re.compile(
    r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a])+"
)
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)

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
    return [term for word in _WORD.findall(text) for term in _word_terms(word)]


def query_terms(text: str) -> tuple[str, ...]:
    """The terms to look for: each once, at most 64."""
    return tuple(dict.fromkeys(terms(text)))[:MAX_QUERY_TERMS]


@lru_cache(maxsize=65_536)
def _word_terms(word: str) -> tuple[str, ...]:
    folded = fold(word)
    if folded.isascii() and folded:
        return tuple(stem(part[:MAX_LENGTH]) for part in folded.split() if part not in STOP_WORDS)
    return tuple(_pairs(_without_accents(word)))


def _without_accents(word: str) -> str:
    """Folded without loss to scripts where a mark is a letter: Indic vowels, Japanese voicing."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    kept = (char for char in decomposed if not _is_accent(unicodedata.combining(char)))
    return unicodedata.normalize("NFC", "".join(kept))


def _is_accent(combining_class: int) -> bool:
    return 10 <= combining_class <= 35 or 200 <= combining_class <= 240


def _pairs(word: str) -> list[str]:
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        found += [word[end : run.start()][:MAX_LENGTH]]
        text, end = run[0], run.end()
        found += [text[at : at + 2] for at in range(max(len(text) - 1, 1))]
    return [term for term in [*found, word[end:][:MAX_LENGTH]] if _WORD.fullmatch(term)]

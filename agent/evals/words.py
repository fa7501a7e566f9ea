"""Texts made comparable, for evaluators: case, accents, dashes and markup aside."""

import re
import unicodedata
from typing import Final

WORD: Final = re.compile(r"[^\W_]+")
DASHES: Final = re.compile(r"\s*[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*")
UNSEEN: Final = re.compile(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")
LIGATURES: Final = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l"})


def fold(text: str) -> str:
    """`text` in lower case and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(LIGATURES))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def plain(text: str) -> str:
    """`text` folded, with one kind of dash and without what a reader does not see, markup say."""
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(fold(DASHES.sub("-", seen)).split())


def words(text: str) -> list[str]:
    """The words of `text`, folded."""
    return WORD.findall(fold(text))


def has_words(text: str, asked: str) -> bool:
    """Whether words stand in `text`, whole and in a row."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted} " in f" {' '.join(words(text))} "


def begins_words(text: str, asked: str) -> bool:
    """Whether `text` has words that begin with `asked`: "oxidative" begins with "oxida"."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted}" in f" {' '.join(words(text))}"

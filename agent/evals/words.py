"""Texts made comparable, for evaluators: case, accents, dashes and markup aside."""

import re
import unicodedata
from typing import Final

from agent.text import fold, words

DASHES: Final = re.compile(r"\s*[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*")
UNSEEN: Final = re.compile(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")


def plain(text: str) -> str:
    """`text` folded, with one kind of dash and without what a reader does not see, markup say."""
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(fold(DASHES.sub("-", seen)).split())


def has_words(text: str, asked: str) -> bool:
    """Whether words stand in `text`, whole and in a row."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted} " in f" {' '.join(words(text))} "


def begins_words(text: str, asked: str) -> bool:
    """Whether `text` has words that begin with `asked`: "oxidative" begins with "oxida"."""
    wanted = " ".join(words(asked))
    return bool(wanted) and f" {wanted}" in f" {' '.join(words(text))}"

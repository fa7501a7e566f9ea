"""Quotes compared with their sources: which contiguous part of a text a quote is, to the letter.

White space and case make no difference, nor do kinds of quotation marks and dashes, which models
level as they copy.
"""

import unicodedata
from functools import lru_cache
from typing import Final

from agent.text import pattern

INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂"
LEVELLED: Final = str.maketrans(
    dict.fromkeys(QUOTATION_MARKS, "'")
    | dict.fromkeys("‐‑‒–—―−", "-")
    # Passages are shown without square brackets, which would be citations.
    | {"[": "(", "]": ")"}
    | dict.fromkeys(f"*_{INVISIBLE}")
)
UNSPACED: Final = pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\x{20000}-\x{3ffff}]+"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean: scripts without spaces, or with few."""


def verbatim(content: str, text: str) -> str | None:
    """Return the contiguous part of `text` that `content` quotes, to the letter, or None.

    Quotation marks and an ellipsis around the content may be the model's. A quote begins and ends
    with a word.
    """
    quoted = _compared(content.strip(f"{QUOTATION_MARKS}… "))[0].strip()
    source, places = _compared_source(text)
    start = source.find(quoted) if quoted else -1
    while start >= 0:
        end = start + len(quoted)
        if not any(_is_within_word(source[max(0, at - 1) : at + 1]) for at in (start, end)):
            return text[places[start] : places[end - 1] + 1]
        start = source.find(quoted, start + 1)
    return None


def _compared(text: str) -> tuple[str, list[int]]:
    """Return a text made comparable, and for each of its characters its place in the text."""
    characters: list[str] = []
    places: list[int] = []
    for place, original in enumerate(text):
        for character in _level(original):
            is_space = character.isspace()
            if is_space and (not characters or characters[-1] == " "):
                continue
            characters.append(" " if is_space else character)
            places.append(place)
    return "".join(characters), places


_compared_source: Final = lru_cache(maxsize=64)(_compared)


@lru_cache(maxsize=4096)
def _level(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character.translate(LEVELLED)).casefold()
    return plain.translate(LEVELLED)


def _is_within_word(around: str) -> bool:
    return len(around) == 2 and around.isalnum() and not UNSPACED.search(around)

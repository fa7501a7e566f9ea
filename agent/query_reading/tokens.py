"""The tokens of a message: its words, numbers and punctuation marks. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agent.language import all_common_words
from agent.text import fold, pattern

MAX_TEXT_CHARS: Final = 2000
"""The part of a message that is read; the rest is ignored."""
CACHED_TEXTS: Final = 64
"""The size of the cache of tokens. A turn reads its message several times."""
MIN_PLURAL_LETTERS: Final = 4
"""Shorter words are not taken for plurals."""
TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*"
    r"|[A-Za-z]{1,3}[$]"
    r"|円"  # no space follows it: "5000円以下"
    r"|[\p{L}\p{M}\p{Nl}\p{No}]+"
    r"|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
"""A number ("1'500,00"), a dollar sign with its country ("A$"), a word, or a punctuation mark."""
CONTRACTED_NOT: Final = pattern(
    r"(?i)\b(do|does|did|would|could|should|wo|ca|will|is|are|was|has|have)n['’´`]?t\b"
    r"|\b(can)not\b"
)
"""A verb with its "not": "don't", "DONT", "cannot"."""
DASHES: Final = frozenset("-–—")
AMOUNT_STARTS: Final = frozenset("0123456789€$£")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a punctuation mark of a text, which stands at `text[start:end]`."""

    written: str
    stem: str
    """The token folded, and without the ending of a plural."""
    start: int
    end: int

    @property
    def is_alphanumeric(self) -> bool:
        """Return whether this is a word or a number."""
        return self.written[0].isalnum()

    @property
    def is_capitalised(self) -> bool:
        """Return whether this begins with a capital letter."""
        return self.written[0].isupper()


def expand_not(text: str) -> str:
    """Return a text with its contracted "not" as a word: "do not" for "don't" and "DONT"."""
    return CONTRACTED_NOT.sub(lambda match: f"{match[1] or match[2]} not", text)


@lru_cache(CACHED_TEXTS)
def tokenize(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text.

    A dash is a token only before an amount ("20-30 €") or at the end of the text. Other dashes join
    words, and are left out.
    """
    text = text[:MAX_TEXT_CHARS]
    tokens: list[Token] = []
    for match in TOKEN.finditer(text):
        written = match[0]
        start, end = match.span()
        if written in DASHES:
            joins_words = end < len(text) and text[end] not in AMOUNT_STARTS
            if joins_words:
                continue
        stem = strip_plural(fold(written))
        tokens.append(Token(written, stem, start, end))
    return tuple(tokens)


def get_stem(tokens: Sequence[Token], index: int) -> str:
    """Return the stem of the token at an index, or "" if the index is outside of the message."""
    if not 0 <= index < len(tokens):
        return ""
    return tokens[index].stem


def strip_plural(word: str) -> str:
    """Return a folded word without the most common plural endings: "berry" for "berries"."""
    if word in all_common_words():  # "sans" is no plural of "san"
        return word
    if not word.endswith("s") or word.endswith("ss"):
        return word
    if len(word) < MIN_PLURAL_LETTERS:
        return word
    if word.endswith("ies") and len(word) > MIN_PLURAL_LETTERS:
        return word.removesuffix("ies") + "y"
    if word.endswith(("shes", "ches", "xes", "zes", "oes")):
        return word.removesuffix("es")
    return word.removesuffix("s")

"""Normalize a message for phrases and classifier: words and punctuation marks. No I/O."""

from typing import Final

from agent.text import CharacterMap, fold, pattern

MAX_READ_CHARS: Final = 4096
"""The length of the longest message of Telegram. Of a longer text, both ends are read."""
MAX_NORMALIZED_CHARS: Final = 5000
"""Only a text that is half punctuation marks becomes longer than this."""
MARKS: Final = frozenset(".,!?;:")
MAX_WORD_CHARS: Final = 30
"""A longer word is cut: one repeated letter would count like many n-grams."""
MAX_MIXED_CHARS: Final = 12
"""A longer word of digits and letters is no age or amount, and left as it is."""
_DIGITS_OR_LETTERS: Final = pattern(r"[0-9]+|[^0-9]+")


def _keep_char(char: str) -> str:
    """Return a letter, digit or mark as it is, a full stop for a line end, or else a space."""
    if char == "\n":
        return "."
    if char.isalpha() or char.isdecimal() or char in MARKS:
        return char
    return " "


_KEPT_CHARS: Final = CharacterMap(_keep_char)


def normalize_message(text: str) -> str:
    """Return the text's words and punctuation marks, folded and separated by single spaces.

    Of several marks in a row the first is kept: `Ich bin 15J!!` becomes ` . ich bin 15 j ! . `.
    """
    folded = fold(_cut_middle(text, MAX_READ_CHARS))
    kept = folded.translate(_KEPT_CHARS)
    for mark in MARKS:
        kept = kept.replace(mark, f" {mark} ")
    tokens: list[str] = []
    for token in kept.split():
        if token not in MARKS:
            tokens += _split_word(token)
            continue
        follows_mark = bool(tokens) and tokens[-1] in MARKS
        if not follows_mark:
            tokens.append(token)
    limit = MAX_NORMALIZED_CHARS - len(" .  . ")
    spaced = _cut_middle(" ".join(tokens), limit)
    # With full stops around the text, a pattern matches at both ends too.
    return f" . {spaced} . "


def _split_word(word: str) -> list[str]:
    """Return the parts of a word: `15` and `j` of "15j". A word without digits is one part."""
    is_mixed = not word.isalpha() and not word.isdecimal()
    if is_mixed and len(word) <= MAX_MIXED_CHARS:
        return _DIGITS_OR_LETTERS.findall(word)
    return [word[:MAX_WORD_CHARS]]


def _cut_middle(text: str, limit: int) -> str:
    """Return a text, without its middle if it is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 1
    return f"{text[:half]} {text[-half:]}"

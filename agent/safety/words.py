"""Normalize a message for phrases and classifier: words and punctuation marks. No I/O."""

from typing import Final

from agent.text import CharacterMap, fold, pattern

MAX_READ_CHARS: Final = 4096
"""As many characters as a message of Telegram has; of a longer text, both ends are read."""
MAX_NORMALIZED_CHARS: Final = 5000
"""Only a text that is half punctuation marks becomes longer than this."""
MARKS: Final = frozenset(".,!?;:")
MAX_WORD_CHARS: Final = 30
"""A longer word is cut: one repeated letter would count like many n-grams."""
MAX_MIXED_CHARS: Final = 12
"""A longer word of digits and letters is no age or amount, and left as it is."""
_DIGITS_OR_LETTERS: Final = pattern(r"[0-9]+|[^0-9]+")


def _keep_char(char: str) -> str:
    """Keep a letter, a digit or a mark; the end of a line is a full stop."""
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
    folded = fold(_cut_middle(text, MAX_READ_CHARS)).translate(_KEPT_CHARS)
    for mark in MARKS:
        folded = folded.replace(mark, f" {mark} ")
    tokens = list[str]()
    for token in folded.split():
        if token in MARKS:
            if not tokens or tokens[-1] not in MARKS:
                tokens.append(token)
        elif token.isalpha() or token.isdecimal() or len(token) > MAX_MIXED_CHARS:
            tokens.append(token[:MAX_WORD_CHARS])
        else:
            tokens += _DIGITS_OR_LETTERS.findall(token)
    spaced = _cut_middle(" ".join(tokens), MAX_NORMALIZED_CHARS - len(" .  . "))
    # Full stops around it let a pattern match at both ends.
    return f" . {spaced} . "


def _cut_middle(text: str, limit: int) -> str:
    """Return a text, without the middle of one that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 1
    return f"{text[:half]} {text[-half:]}"

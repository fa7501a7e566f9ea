"""Regular expressions in linear time, the normalization of texts, and work on long texts."""

import asyncio
import re  # noqa: TID251 - only to translate our own patterns, never run on text from outside
import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, TypeVar, cast

R = TypeVar("R")

Match = re.Match[str]
"""A match of a pattern, with the methods of `re.Match`. `span` does not accept names of groups."""
escape_pattern: Final = re.escape

MAX_INLINE_CHARS: Final = 4_000
"""The longest text that is not processed in a thread.

Longer texts are, so that other chats do not wait.
"""
CACHE_SIZE: Final = 65_536
"""The most entries of a cache by character, or by word. Unicode has some 150,000 characters."""


async def in_thread_if_long(
    chars: int, work: Callable[..., R], *arguments: object
) -> R:
    """Return `work(*arguments)`, called in a thread if it concerns over `MAX_INLINE_CHARS` chars.

    Example: `await in_thread_if_long(len(text), split_messages, text)`
    """
    if chars <= MAX_INLINE_CHARS:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


class Pattern:
    r"""An RE2 regular expression, which takes linear time by construction.

    The syntax is that of `re`: `\w`, `\d` and `\s` match every script, and flags are written in
    front, as in `(?i)`. There are no back references and no look-around, and `\b` is ASCII-only.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        # Imported and compiled at the first use, to keep the start fast.
        import re2  # noqa: PLC0415

        options = re2.Options()
        options.log_errors = False
        elements = _ELEMENT.findall(self.source)
        source = "".join(map(_to_re2, elements))
        return cast(re.Pattern[str], re2.compile(source, options))

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield all matches from left to right."""
        return self._compiled.finditer(_replace_surrogates(text))

    def search(self, text: str) -> Match | None:
        """Return the first match, or None."""
        return self._compiled.search(_replace_surrogates(text))

    def match(self, text: str) -> Match | None:
        """Return the match at the beginning of `text`, or None."""
        return self._compiled.match(_replace_surrogates(text))

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole `text`, or None."""
        return self._compiled.fullmatch(_replace_surrogates(text))

    def findall(self, text: str) -> list[str]:
        """Return the text of every match. Unlike in `re`, these are never its groups."""
        return [match[0] for match in self.finditer(text)]

    def sub(self, replacement: str | Callable[[Match], str], text: str) -> str:
        """Return a text with every match replaced.

        Unlike in `re`, a backslash in `replacement` is literal.
        """

        def replace(match: Match) -> str:
            if callable(replacement):
                return replacement(match)
            return replacement

        return self._compiled.sub(replace, _replace_surrogates(text))

    def split(self, text: str) -> list[str]:
        """Return the parts between the matches, and the groups of the matches."""
        return self._compiled.split(_replace_surrogates(text))


pattern: Final = Pattern
"""An alias, so that `pattern(…)` reads like `re.compile(…)`."""

_UNICODE_CLASSES: Final = {
    r"\w": r"\p{L}\p{N}_",
    r"\d": r"\p{Nd}",
    r"\s": r"\t-\r\x1c-\x20\x{85}\p{Z}",
}
"""Character classes that are Unicode in `re` but ASCII in RE2."""
_NEGATED_CLASSES: Final = (r"\W", r"\D", r"\S")
_ELEMENT: Final = re.compile(
    r"""(?xs)
    \[ \^? \]? (?: \\. | [^\]\\] )* \]  # a class in brackets; "]" may be its first member
    | \\u [0-9a-fA-F]{4}                # a character by its code
    | \\.                               # another escape; of `\p{L}` only `\p`
    | .                                 # a single character
    """
)
"""An element of a pattern."""


def _to_re2(element: str) -> str:
    """Translate an element of the syntax of `re` to RE2."""
    if element[0] == "[":
        inner_elements = _ELEMENT.findall(element[1:-1])
        inner = "".join(map(_to_re2_in_class, inner_elements))
        return f"[{inner}]"
    if element in _UNICODE_CLASSES:
        return f"[{_UNICODE_CLASSES[element]}]"
    if element in _NEGATED_CLASSES:
        return f"[^{_UNICODE_CLASSES[element.lower()]}]"
    if element == r"\Z":
        return r"\z"
    return _to_re2_in_class(element)


def _to_re2_in_class(element: str) -> str:
    if element in _NEGATED_CLASSES:
        raise ValueError(
            rf"{element} in a class: list its contents, such as \p{{L}} for letters"
        )
    if element.startswith(r"\u"):
        return rf"\x{{{element[2:]}}}"
    return _UNICODE_CLASSES.get(element, element)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which RE2 cannot read, by question marks."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def strip_unstorable(text: str) -> str:
    """Remove NULs and replace lone surrogates, which can be neither sent nor stored."""
    return _replace_surrogates(text.replace("\x00", ""))


MAX_MARKS: Final = 8
"""The most combining marks in a row. No language needs more than five."""
_LONG_RUN_OF_MARKS: Final = pattern(rf"(\p{{M}}{{{MAX_MARKS}}})\p{{M}}+")


def sanitize(text: str, limit: int) -> str:
    """Return the first `limit` characters of a text from outside, in a form that can be stored.

    Too many marks on one character are left out, because normalizing sorts them in quadratic time.
    """
    return _bound_marks(strip_unstorable(text[:limit]))


def compose(text: str) -> str:
    """Return a text in Unicode's form NFC."""
    return unicodedata.normalize("NFC", _bound_marks(text))  # noqa: TID251 - here it is bounded


def compose_compatible(text: str) -> str:
    """Return a text in Unicode's form NFKC, in which `１８ ㎖` is `18 ml`."""
    return unicodedata.normalize("NFKC", _bound_marks(text))  # noqa: TID251 - here it is bounded


def _bound_marks(text: str) -> str:
    """Return a text with at most `MAX_MARKS` combining marks in a row."""
    if text.isascii():
        return text
    return _LONG_RUN_OF_MARKS.sub(lambda match: match[1], text)


_INVISIBLE_CHARS: Final = "\u00ad\u200d\u2060\ufeff"
"""The soft hyphen, joiners and the byte order mark, which are removed."""
_REPLACEMENTS: Final = str.maketrans(
    {
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ı": "i",
        **dict.fromkeys(_INVISIBLE_CHARS),
    }
)
"""Letters that Unicode does not decompose, and the invisible characters."""
_ACCENT_CLASSES: Final = frozenset({*range(10, 36), *range(200, 241)})
"""The Unicode combining classes of accents."""
_WORD_MARKS: Final = pattern(
    r"[\u0300-\u036f"  # strokes through letters; `fold` drops the accents
    r"\u0591-\u05c7"  # the Hebrew hyphen; `fold` drops the points
    r"\u0900-\u0963\u0966-\u0dff"  # vowels of the scripts of India
    r"\u0e00-\u109f"  # vowels and tones of Thai, Lao, Tibetan and Burmese
    r"\u1780-\u17dd"  # vowels of Khmer
    r"\u3099\u309a]"  # Japanese voicing
)
"""Characters in folded texts that are part of words, although they are no letters.

The letters between them in a range are part of words as well.
"""


def fold(text: str) -> str:
    """Normalize `text` for comparison: no case, accents, ligatures or invisible characters.

    Marks that act as letters (Indic vowels, Japanese voicing), spaces and punctuation are kept.
    """
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDED_CHARS)


class CharacterMap(dict[int, str]):
    """A table for `str.translate`, filled by `replace` when a character first occurs.

    The table takes a tenth of the time of a pattern.
    """

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str:
        replacement = self._replace(chr(code))
        if len(self) < CACHE_SIZE:
            self[code] = replacement
        return replacement


def _fold_char(char: str) -> str:
    # Each character is normalized alone, because a long run of marks takes quadratic time.
    decomposed = unicodedata.normalize("NFKD", char)  # noqa: TID251 - of one character
    plain = decomposed.casefold().translate(_REPLACEMENTS)
    kept = ""
    for part in plain:
        if unicodedata.combining(part) not in _ACCENT_CLASSES:
            kept += part
    return unicodedata.normalize("NFC", kept)  # noqa: TID251 - of one character


def _keep_word_char(char: str) -> str:
    """Return a character that is part of a word, or a space for any other character."""
    if char.isalnum() or _WORD_MARKS.match(char):
        return char
    return " "


_FOLDED_CHARS: Final = CharacterMap(_fold_char)
_WORD_CHARS: Final = CharacterMap(_keep_word_char)


def split_words(text: str) -> list[str]:
    """Return the folded words of `text` in order: `cote`, `rotie` for `Côte-Rôtie`."""
    return fold(text).translate(_WORD_CHARS).split()


UNSPACED_SCRIPTS: Final = pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\x{20000}-\x{3ffff}]+"
)
"""A run of characters of a script with few or no spaces: Thai, Lao, Burmese, Khmer or CJK."""


def clip(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters, with an ellipsis if something was cut off."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1]}…"


def strip_control_chars(text: str) -> str:
    """Return a text without characters that control a terminal."""
    kept = [char for char in text if char.isprintable() or char in "\n\t"]
    return "".join(kept)


def to_one_line(text: str) -> str:
    """Return a text on one line, without characters that control a terminal."""
    line = " ".join(text.splitlines())
    return strip_control_chars(line).replace("\t", " ")

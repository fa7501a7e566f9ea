"""Patterns of linear time, and texts in one spelling. Pure."""

import re  # noqa: TID251 - to translate our own patterns, never for a text from outside
import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, cast

Match = re.Match[str]
"""A match of a pattern, with the methods that one of `re` has; `span` takes numbers alone."""
escape_pattern: Final = re.escape

MAX_INLINE_CHARS: Final = 4_000
"""A longer text is read in a thread: no chat waits then for another's."""
CACHE_SIZE: Final = 65_536
"""The most results remembered, of characters and of stems; there are some 150,000 characters."""


class Pattern:
    r"""A regular expression of RE2, which takes linear time by construction.

    Written as for `re`: `\w`, `\d` and `\s` are of every script, flags go in front, as `(?i)`.
    There are no back references, nothing is looked at beside a match, and `\b` knows ASCII alone.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        # When first needed: no start pays for what it does not use.
        import re2  # noqa: PLC0415

        options = re2.Options()
        options.log_errors = False
        source = "".join(map(_in_re2, _SIGN.findall(self.source)))
        return cast(re.Pattern[str], re2.compile(source, options))

    def finditer(self, text: str) -> Iterator[Match]:
        """Find each match from left to right."""
        return self._compiled.finditer(_encodable(text))

    def search(self, text: str) -> Match | None:
        """Find the first match."""
        return self._compiled.search(_encodable(text))

    def match(self, text: str) -> Match | None:
        """Find a match at the beginning of `text`."""
        return self._compiled.match(_encodable(text))

    def fullmatch(self, text: str) -> Match | None:
        """Find a match that is the whole of `text`."""
        return self._compiled.fullmatch(_encodable(text))

    def findall(self, text: str) -> list[str]:
        """Return each match as a whole."""
        return [found[0] for found in self.finditer(text)]

    def sub(self, new: str | Callable[[Match], str], text: str) -> str:
        """Replace each match by `new` as it is, or by what it makes of the match."""
        return self._compiled.sub(new if callable(new) else lambda _: new, _encodable(text))

    def split(self, text: str) -> list[str]:
        """Return what is between the matches, and what the groups of a match hold."""
        return self._compiled.split(_encodable(text))


pattern: Final = Pattern

_OF_UNICODE: Final = {
    "w": r"\p{L}\p{N}_",
    "d": r"\p{Nd}",
    "s": r"\t-\r\x1c-\x20\x{85}\p{Z}",
}
"""Classes of every script, which RE2 takes for classes of ASCII."""
_SIGN: Final = re.compile(r"(?s)\[\^?\]?(?:\\.|[^\]\\])*\]|\\u[0-9a-fA-F]{4}|\\.|.")


def _in_re2(sign: str) -> str:
    if sign[0] == "[":
        return f"[{''.join(map(_in_class, _SIGN.findall(sign[1:-1])))}]"
    if sign[0] == "\\" and sign[1].lower() in _OF_UNICODE:
        return f"[{'^' * sign[1].isupper()}{_OF_UNICODE[sign[1].lower()]}]"
    return r"\z" if sign == r"\Z" else _in_class(sign)


def _in_class(sign: str) -> str:
    if sign in (r"\W", r"\D", r"\S"):
        raise ValueError(rf"{sign} in a class: name what it holds, as \p{{L}} for letters")
    if sign[:2] == r"\u":
        return rf"\x{{{sign[2:]}}}"
    return _OF_UNICODE.get(sign[1:], sign) if sign[0] == "\\" else sign


def _encodable(text: str) -> str:
    """Return `text` with a question mark for each half of a character, which RE2 cannot read."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def strip_unstorable(text: str) -> str:
    """Return `text` without what cannot be sent or stored: NULs, and halves of characters."""
    return _encodable(text.replace("\x00", ""))


_UNDECOMPOSED: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
    | dict.fromkeys("\u00ad\u200d\u2060\ufeff")
)
_ACCENTS: Final = frozenset({*range(10, 36), *range(200, 241)})
"""The combining classes of accents."""
_MARKS: Final = pattern(
    r"[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a]"
)
"""Marks that are part of a word in their scripts."""


def fold(text: str) -> str:
    """Return `text` in one spelling: no case, no accents, ligatures as letters, nothing invisible.

    A mark that is a letter (Indic vowels, Japanese voicing) stays, as do spaces and punctuation.
    """
    return text.lower() if text.isascii() else text.translate(_FOLDED)


class CharacterMap(dict[int, str]):
    """Maps characters to the result of `replace`, computed when they are first met.

    For `str.translate`, which takes a tenth of the time of a pattern.
    """

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str:
        new = self._replace(chr(code))
        if len(self) < CACHE_SIZE:
            self[code] = new
        return new


def _folded(sign: str) -> str:
    # One by one, because normalizing a long run of marks as a whole takes quadratic time.
    spelled = sign.casefold().translate(_UNDECOMPOSED)
    apart = unicodedata.normalize("NFKD", spelled).casefold().translate(_UNDECOMPOSED)
    kept = (part for part in apart if unicodedata.combining(part) not in _ACCENTS)
    return unicodedata.normalize("NFC", "".join(kept))


_FOLDED: Final = CharacterMap(_folded)
_WORDS: Final = CharacterMap(lambda sign: sign if sign.isalnum() or _MARKS.match(sign) else " ")
"""Letters and digits of every script, with the marks that are part of a word in theirs."""


def split_words(text: str) -> list[str]:
    """Return the words of `text` in order, folded: `Côte-Rôtie` is `cote`, `rotie`."""
    return fold(text).translate(_WORDS).split()


UNSPACED_SCRIPTS: Final = pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\x{20000}-\x{3ffff}]+"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean: scripts without spaces, or with few."""


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, with an ellipsis if it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"

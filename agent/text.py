"""Patterns of linear time, and text folded, cut and told by language. Pure.

The words that languages are told by are data, in `text.toml`.
"""

import re  # noqa: TID251 - to translate our own patterns, never for a text from outside
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, cast, get_args

from pydantic import BeforeValidator

from agent.tables import StrictModel, read_toml

Language = Literal["en", "de", "fr", "es", "it", "nl"]
Spoken = Literal["en", "de", "fr", "es", "it", "nl", "pt"]
"""The languages that are told apart; of Portuguese nothing else is known."""
SPOKEN: Final[tuple[Spoken, ...]] = get_args(Spoken)
Match = re.Match[str]
"""A match of a pattern, with the methods that one of `re` has; `span` takes numbers alone."""

FORWARDED: Final = "[forwarded, written by somebody else]"
"""The line above words that somebody passes on: for models, and no words of the sender's."""
MAX_INLINE_CHARS: Final = 4_000
"""A longer text is read in a thread: no chat waits then for another's."""
REMEMBERED: Final = 65_536
"""Characters and stems that are worked out once; there are some 150,000 characters."""


class Pattern:
    """A regular expression that takes linear time, whatever the text; `pattern` makes it."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        # When first needed: no start pays for what it does not use.
        import re2  # noqa: PLC0415

        options = re2.Options()
        options.log_errors = False
        try:
            source = "".join(map(_in_re2, _SIGN.findall(self.source)))
            return cast(re.Pattern[str], re2.compile(source, options))
        except re2.error as error:
            raise ValueError(f"{self.source!r} is no pattern of linear time: {error}") from None

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
        """Return what is between the matches."""
        spans = [found.span() for found in self.finditer(text)]
        begins, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
        return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def pattern(source: str) -> Pattern:
    r"""Make a pattern of RE2, of linear time by construction; compiled when it is first used.

    Written as for `re`: `\w`, `\d` and `\s` are of every script, flags go in front, as `(?i)`.
    There are no back references, nothing is looked at beside a match, and `\b` knows ASCII alone.
    """
    return Pattern(source)


def escape(text: str) -> str:
    """Write `text` as a pattern that finds it as it is."""
    return "".join(
        sign if sign.isalnum() or sign == "_" or not sign.isascii() else f"\\{sign}"
        for sign in text
    )


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


def storable(text: str) -> str:
    """Return `text` without what cannot be sent or stored: NULs, and halves of characters."""
    return _encodable(text.replace("\x00", ""))


_UNDECOMPOSED: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
    | dict.fromkeys("\u00ad\u200d\u2060\ufeff")
)
_MARKS: Final = pattern(
    r"[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a]"
)
"""Marks that are part of a word in their scripts."""


def fold(text: str) -> str:
    """Return `text` in one spelling: no case, no accents, ligatures as letters, nothing invisible.

    A mark that is a letter of its own (Indic vowels, Japanese voicing) stays. What is between words
    stays too.
    """
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDED)


class _Characters(dict[int, str]):
    """Maps characters to the result of `replace`, computed when they are first met."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str:
        new = self._replace(chr(code))
        if len(self) < REMEMBERED:
            self[code] = new
        return new


def _folded(sign: str) -> str:
    # One by one, because normalizing a long run of marks as a whole takes quadratic time.
    spelled = sign.casefold().translate(_UNDECOMPOSED)
    apart = unicodedata.normalize("NFKD", spelled).casefold().translate(_UNDECOMPOSED)
    kept = (part for part in apart if not _is_accent(unicodedata.combining(part)))
    return unicodedata.normalize("NFC", "".join(kept))


def _is_accent(combining_class: int) -> bool:
    return 10 <= combining_class <= 35 or 200 <= combining_class <= 240


_FOLDED: Final = _Characters(_folded)
_WORDS: Final = _Characters(lambda sign: sign if sign.isalnum() or _MARKS.match(sign) else " ")
"""Letters and digits of every script, with the marks that are part of a word in theirs."""
_LETTERS: Final = _Characters(lambda sign: sign if sign.isalpha() or sign == "'" else " ")


def words(text: str) -> list[str]:
    """Return the words of `text` in order, folded: `Côte-Rôtie` is `cote`, `rotie`."""
    return fold(text).translate(_WORDS).split()


UNSPACED: Final = pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\x{20000}-\x{3ffff}]+"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean: scripts without spaces, or with few."""

_STEMMERS: Final[Mapping[Language, str]] = {
    "en": "porter", "de": "german", "fr": "french",
    "es": "spanish", "it": "italian", "nl": "dutch",
}  # fmt: skip
LONGEST_STEMMED: Final = 64


def stem(word: str, language: Language = "en") -> str:
    """Return the stem of a folded word; one of more than 64 letters is left as it is."""
    return _stem(word, _STEMMERS[language]) if len(word) <= LONGEST_STEMMED else word


@lru_cache(maxsize=REMEMBERED)
def _stem(word: str, algorithm: str) -> str:
    # Imported late: it brings every language along, and only who indexes or looks up stems.
    import snowballstemmer  # noqa: PLC0415

    # A stemmer holds the word it works on, so that threads cannot share one.
    stemmed: str = snowballstemmer.stemmer(algorithm).stemWord(word)
    return stemmed


_SENTENCE_END: Final = pattern(
    r"([.!?…]+[\"'»”’)\]]*)\s"  # a stop, then white space
    r"|([。！？]+[」』”’）]*)"  # no space follows
)
_PARAGRAPH_END: Final = pattern(r"\n[ \t]*\n")
_LAST_SPACE: Final = pattern(r"\s+\S*\Z")
_LOOK_BACK: Final = 40
"""Characters around a full stop that say whether it ends a sentence."""


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order; a missed boundary is better than a false one."""
    edges = [0, *_sentence_ends(text, len(text)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(edges))
    return [part for part in parts if part]


def truncate_at_boundary(text: str, limit: int) -> str:
    """Return `text` cut at the last paragraph or sentence boundary within `limit` characters.

    A text with no such boundary is cut at the last white space, or at `limit` if there is none.
    Source of the rule: R-006 of the structured-output research.
    """
    if len(text) <= limit:
        return text
    begin = len(text) - len(text.lstrip())
    ends = (match.start() for match in _PARAGRAPH_END.finditer(text[: limit + 2]))
    paragraph = max((end for end in ends if begin < end <= limit), default=0)
    cut = max(paragraph, last_sentence_end(text, limit))
    if cut <= 0:
        space = _LAST_SPACE.search(text[: limit + 1])
        cut = space.start() if space and space.start() else limit
    return text[:cut].rstrip()


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, with an ellipsis if it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def last_sentence_end(text: str, limit: int) -> int:
    """Return where the last sentence ends within the first `limit` characters, 0 if none does."""
    return max(_sentence_ends(text, limit), default=0)


def _sentence_ends(text: str, limit: int) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text[: limit + 1]):
        start, end = match.span(2 if match[2] else 1)
        if end <= limit and _ends_sentence(text, start, end):
            yield end


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Tell if a stop ends a sentence: not in "1.5 l", "Dr. No", "e.g. this", "3. item"."""
    if text[start:end].strip("\"'»”’)]") != ".":
        return True
    before = text[max(0, start - 2 * _LOOK_BACK) : start]
    last = "" if before[-1:].isspace() else "".join(before[-_LOOK_BACK:].split()[-1:])
    word = last.strip("([\"'«„“").lower()
    if word in _abbreviations() or (len(word) == 1 and word.isalpha()):
        return False
    line = before[: len(before) - len(last)].rstrip(" \t*#>-")
    if word.isdigit() and line[-1:] in {"", "\n"}:
        return False
    following = text[end : end + _LOOK_BACK].lstrip()
    return not following[:1].islower()


LEAST_LEAD: Final = 1.4
"""A language must score this many times more than the next one."""
LEAST_WORDS, LEAST_COMMON, LEAST_SHARE = 3, 2, 0.2
"""Words in all, and common words of the language among them: in number and as a share."""


def language_of(text: str) -> Spoken | None:
    """Return the language of `text`, None where there is too little of it or it is not clear.

    Told by the commonest words and letters of each: a short message has enough of them. A common
    word that no other language has is evidence of 1.
    """
    evidence, found = language_evidence(text), _tokens(text)
    best, second = sorted(evidence, key=evidence.__getitem__, reverse=True)[:2]
    common = sum(word in _weights()[best] for word in found)
    is_clear = evidence[best] >= max(1, LEAST_LEAD * evidence[second])
    is_enough = len(found) >= LEAST_WORDS and common >= max(LEAST_COMMON, LEAST_SHARE * len(found))
    return best if is_clear and is_enough else None


def language_evidence(text: str) -> dict[Spoken, float]:
    """Return how much the common words of `text`, and a little its letters, speak for languages."""
    found, written, evidence = _tokens(text), text.casefold(), dict[Spoken, float]()
    for language, traits in _data().languages.items():
        letters = sum(written.count(letter) for letter in traits.letters)
        pairs = sum(any(pair in word for pair in traits.pairs) for word in found)
        weights = sum(_weights()[language].get(word, 0.0) for word in found)
        evidence[language] = weights + 0.25 * min(4, letters + pairs)
    return evidence


def _tokens(text: str) -> list[str]:
    """List the words that languages are told by: "l'" is one, but no English "wine's"."""
    found = []
    for token in text.casefold().replace("’", "'").translate(_LETTERS).split():
        parts = token.split("'")
        for part, behind in zip(parts, [*parts[1:], ""], strict=True):
            if part:
                found.append(part + "'" * (len(behind) >= 2))
    return found


def stop_words() -> frozenset[str]:
    """Return the English words that tell nothing in a search, folded."""
    return _data().stop_words


def common_words(language: str) -> frozenset[str]:
    """Return the commonest words of a language, folded; none of one that is not told apart."""
    known = {code: traits for code, traits in _data().languages.items() if code == language}
    return frozenset(fold(word) for traits in known.values() for word in traits.common)


_Words = Annotated[frozenset[str], BeforeValidator(str.split)]


class _Traits(StrictModel):
    """The marks of a language, and its abbreviations."""

    common: _Words
    letters: str
    pairs: _Words
    abbreviations: _Words


class _Data(StrictModel):
    """The content of `text.toml`."""

    stop_words: _Words
    languages: dict[Spoken, _Traits]


@cache
def _data() -> _Data:
    return read_toml(_Data, Path(__file__).with_suffix(".toml"))


@cache
def _abbreviations() -> frozenset[str]:
    return frozenset().union(*(traits.abbreviations for traits in _data().languages.values()))


@cache
def _weights() -> Mapping[Spoken, Mapping[str, float]]:
    """Return the weights of each language's common words: less for those that others have too."""
    common = {language: traits.common for language, traits in _data().languages.items()}
    shared = Counter(word for words in common.values() for word in words)
    return {
        language: {word: 1 / shared[word] ** 2 for word in words}
        for language, words in common.items()
    }

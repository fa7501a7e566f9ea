"""Text made comparable, cut and told by language: what every room needs, in linear time. Pure.

The words it goes by are data, in `text.toml` beside it.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict

Language = Literal["en", "de", "fr", "es", "it", "nl"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)

LONGEST_STEMMED: Final = 64
REMEMBERED: Final = 65_536
"""Characters and stems that are worked out once; there are some 150,000 characters."""
LEAST_EVIDENCE: Final = 1.6
"""What must speak for a language; a word that only one has counts 1."""
LEAST_LEAD: Final = 1.4
"""How many times more must speak for a language than for the next."""
LEAST_SHARE: Final = 0.12
"""How many of a text's words must be common: one in a seventh language has a few by chance."""

_UNDECOMPOSED: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
    | dict.fromkeys("\u00ad\u200d\u2060\ufeff")
)
# Letters and digits of every script, with the marks that are part of a word in theirs.
_WORD: Final = re.compile(
    r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a])++"
)
_APART: Final = re.compile("[\u1100-\u11ff]{2,}|[\u3046-\u30fd][\u3099\u309a]")
"""Syllables of Korean and Japanese that were written in parts."""
_SENTENCE_END: Final = re.compile(
    r"""(?<![.!?…])(?P<stop>[.!?…]++["'»”’)\]]*+)(?=\s)  # western: a stop, then white space
      | (?P<full>[。！？]++[」』”’）]*+)                  # CJK: no space follows""",
    re.VERBOSE,
)
_PARAGRAPH_END: Final = re.compile(r"\n[ \t]*+\n")
_LOOK_BACK: Final = 40
"""Characters around a full stop that say whether it ends a sentence."""
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]++(?:'(?=[^\W\d_]{2}))?")
"""As languages are told by: "l'" is a word, but no English "wine's"."""
_STEMMERS: Final[Mapping[Language, str]] = {
    "en": "porter",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "nl": "dutch",
}


def fold(text: str) -> str:
    """Return `text` in one spelling: no case, no accents, ligatures as letters, nothing invisible.

    A mark that is a letter of its own (Indic vowels, Japanese voicing) stays. What is between words
    stays too.
    """
    if text.isascii():
        return text.lower()
    folded = text.translate(_FOLDED)
    return _APART.sub(lambda found: unicodedata.normalize("NFC", found[0]), folded)


class _Folded(dict[int, str]):
    """The folded form of each character, worked out when it is first met.

    Characters one by one, because normalizing a long run of marks as a whole takes quadratic time.
    """

    def __missing__(self, code: int) -> str:
        spelled = chr(code).casefold().translate(_UNDECOMPOSED)
        apart = unicodedata.normalize("NFKD", spelled).casefold().translate(_UNDECOMPOSED)
        kept = (each for each in apart if not _is_accent(unicodedata.combining(each)))
        folded = unicodedata.normalize("NFC", "".join(kept))
        if len(self) < REMEMBERED:
            self[code] = folded
        return folded


_FOLDED: Final = _Folded()


def _is_accent(combining_class: int) -> bool:
    return 10 <= combining_class <= 35 or 200 <= combining_class <= 240


def words(text: str) -> list[str]:
    """Return the words of `text` in order, folded: `Côte-Rôtie` is `cote`, `rotie`."""
    return _WORD.findall(fold(text))


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


def stop_words() -> frozenset[str]:
    """Return the English words that tell nothing in a search, folded."""
    return _data().stop_words


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order; a missed boundary is better than a false one."""
    ends = list(_sentence_ends(text, len(text)))
    parts = (text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part.strip() for part in parts if part.strip()]


def truncate_at_boundary(text: str, limit: int) -> str:
    """Return `text` cut at the last paragraph or sentence boundary within `limit` characters.

    A text with no such boundary is cut at the last white space, or at `limit` if there is none.
    Source of the rule: R-006 of the structured-output research.
    """
    if len(text) <= limit:
        return text
    cut = max(_last_paragraph_end(text, limit), last_sentence_end(text, limit))
    if cut <= 0:
        cut = _last_white_space(text, limit)
    return text[:cut].rstrip()


def last_sentence_end(text: str, limit: int) -> int:
    """Return where the last sentence ends within the first `limit` characters, 0 if none does."""
    return max(_sentence_ends(text, limit), default=0)


def _sentence_ends(text: str, limit: int) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text, 0, limit + 1):
        if match.end() <= limit and _ends_sentence(text, match):
            yield match.end()


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether a stop really ends a sentence: not in "1.5 l", "Dr. No", "e.g. this", "3. item"."""
    if match["full"] or match["stop"].strip("\"'»”’)]") != ".":
        return True
    before = text[max(0, match.start() - 2 * _LOOK_BACK) : match.start()]
    last = "" if before[-1:].isspace() else "".join(before[-_LOOK_BACK:].split()[-1:])
    word = last.strip("([\"'«„“").lower()
    if word in _abbreviations() or (len(word) == 1 and word.isalpha()):
        return False
    line = before[: len(before) - len(last)].rstrip(" \t*#>-")
    if word.isdigit() and line[-1:] in {"", "\n"}:
        return False
    following = text[match.end() : match.end() + _LOOK_BACK].lstrip()
    return not following[:1].islower()


def _last_paragraph_end(text: str, limit: int) -> int:
    begin = len(text) - len(text.lstrip())
    ends = (match.start() for match in _PARAGRAPH_END.finditer(text, 0, limit + 2))
    return max((end for end in ends if begin < end <= limit), default=0)


def _last_white_space(text: str, limit: int) -> int:
    head = text[: limit + 1]
    return max((match.start() for match in re.finditer(r"\s+", head)), default=0) or limit


def language_of(text: str) -> Language | None:
    """Return the language of `text`, None when there is too little of it or it is not clear.

    Told by its commonest words and letters: an answer of two sentences has enough of them.
    """
    lowered = text.casefold().replace("’", "'")
    said = _PLAIN_WORD.findall(lowered)
    weights = _weights()
    known = sum(any(word in each for each in weights.values()) for word in said)
    if not said or known / len(said) < LEAST_SHARE:
        return None
    found = {language: _evidence(language, said, lowered) for language in LANGUAGES}
    (best, most), (_, second), *_ = sorted(found.items(), key=lambda each: -each[1])
    return best if most >= LEAST_EVIDENCE and most >= LEAST_LEAD * second else None


def _evidence(language: Language, said: list[str], text: str) -> float:
    """How much speaks for a language: its words, and a little for its letters."""
    weights, traits = _weights()[language], _data().languages[language]
    letters = sum(text.count(letter) for letter in traits.letters)
    pairs = sum(any(pair in word for pair in traits.pairs) for word in said)
    return sum(weights.get(word, 0.0) for word in said) + 0.25 * min(4, letters + pairs)


_Words = Annotated[frozenset[str], BeforeValidator(str.split)]


class _Traits(BaseModel):
    """What a language is told by, and its abbreviations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    common: _Words
    letters: str
    pairs: _Words
    abbreviations: _Words


class _Data(BaseModel):
    """What `text.toml` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stop_words: _Words
    languages: dict[Language, _Traits]


@cache
def _data() -> _Data:
    file = Path(__file__).with_suffix(".toml")
    return _Data.model_validate(tomllib.loads(file.read_text("utf-8")))


@cache
def _abbreviations() -> frozenset[str]:
    return frozenset().union(*(each.abbreviations for each in _data().languages.values()))


@cache
def _weights() -> Mapping[Language, Mapping[str, float]]:
    """The weight of each language's common words: less for those that others have too."""
    languages = _data().languages
    shared = Counter(word for traits in languages.values() for word in traits.common)
    return {
        language: {word: 1 / shared[word] ** 2 for word in traits.common}
        for language, traits in languages.items()
    }

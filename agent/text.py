"""Text made comparable, cut and told by language: what every room needs, in linear time. Pure.

The words it goes by are data, in `text.toml` beside it.
"""

import asyncio
import re  # noqa: TID251 - for our own patterns, never for a text from outside
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args
from weakref import WeakSet

from pydantic import BeforeValidator

from agent.tables import Strict, read_toml

Language = Literal["en", "de", "fr", "es", "it", "nl"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
Spoken = Literal["en", "de", "fr", "es", "it", "nl", "pt"]
"""The languages that are told apart; of Portuguese nothing else is known."""
SPOKEN: Final[tuple[Spoken, ...]] = get_args(Spoken)
R = TypeVar("R")
S = TypeVar("S", bound=Spoken)
_Weights = Mapping[S, Mapping[str, float]]
"""The weight of each common word of each language."""

MAX_INLINE_CHARS: Final = 4_000
"""A longer text is read in a thread."""
FORWARDED: Final = "[forwarded, written by somebody else]"
"""Stands above words that somebody passes on: for models, and no words of anybody's."""
LONGEST_STEMMED: Final = 64
REMEMBERED: Final = 65_536
"""Characters and stems that are worked out once; there are some 150,000 characters."""
LEAST_EVIDENCE: Final = 1.6
"""What must speak for a language; a word that only one has counts 1."""
LEAST_LEAD: Final = 1.4
"""How many times more must speak for a language than for the next."""
LEAST_SHARE: Final = 0.12
"""How many of a text's words must be common: one in a seventh language has a few by chance."""
LEAST_SAID: Final = 3
SHORT_EVIDENCE, SHORT_SHARE, SHORT_COMMON = 1.0, 0.3, 2
"""The same for a short message, of which so many words must be common in the language."""


class Match:
    """Where a pattern was found in a text; a group by its number or name, 0 is the whole."""

    __slots__ = ("_names", "_spans", "string")

    def __init__(
        self, text: str, spans: Sequence[tuple[int, int]], names: Mapping[str, int]
    ) -> None:
        self.string = text
        self._spans = spans
        self._names = names

    def __getitem__(self, group: int | str) -> str | Any:
        start, end = self._spans[self._names[group] if isinstance(group, str) else group]
        return None if start < 0 else self.string[start:end]

    def groups(self) -> tuple[str | Any, ...]:
        """Return what each group found, None for one that took no part."""
        return tuple(self[group] for group in range(1, len(self._spans)))

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Return where a group begins and ends, (-1, -1) for one that took no part."""
        return self._spans[self._names[group] if isinstance(group, str) else group]

    def start(self, group: int | str = 0) -> int:
        """Return where a group begins."""
        return self._spans[self._names[group] if isinstance(group, str) else group][0]

    def end(self, group: int | str = 0) -> int:
        """Return where a group ends."""
        return self._spans[self._names[group] if isinstance(group, str) else group][1]


class Pattern:
    """A regular expression that takes linear time, whatever the text; `pattern` makes it."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def _forms(self) -> "_Forms":
        # Compiled when first needed: no start pays for what it does not use.
        return _compiled(self.source)

    def finditer(self, text: str) -> Iterator[Match]:
        """Find each match from left to right."""
        data, forms = text.encode("utf-8", "surrogatepass"), self._forms
        places = None if text.isascii() else _Places(data)
        for found in _found(data, forms):
            yield _match(text, found, forms, places)

    def search(self, text: str) -> Match | None:
        """Find the first match."""
        data, forms = text.encode("utf-8", "surrogatepass"), self._forms
        found = forms.first.search(data)
        return _match(text, found, forms, _Places(data)) if found else None

    def match(self, text: str) -> Match | None:
        """Find a match at the beginning of `text`."""
        data = text.encode("utf-8", "surrogatepass")
        found = self._forms.first.match(data)
        begins = found and found.start(1) == 0
        return _match(text, found, self._forms, _Places(data)) if begins else None

    def fullmatch(self, text: str) -> Match | None:
        """Find a match that is the whole of `text`."""
        data = text.encode("utf-8", "surrogatepass")
        found = self._forms.first.fullmatch(data)
        whole = found and found.span(1) == (0, len(data))
        return _match(text, found, self._forms, _Places(data)) if whole else None

    def findall(self, text: str) -> list[str]:
        """Return each match as a whole."""
        data = text.encode("utf-8", "surrogatepass")
        spans = (found.span(1) for found in _found(data, self._forms))
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in spans]

    def sub(self, new: str | Callable[[Match], str], text: str) -> str:
        """Replace each match by `new` as it stands, or by what it makes of the match."""
        parts, done = list[str](), 0
        for found in self.finditer(text):
            parts += text[done : found.start()], new if isinstance(new, str) else new(found)
            done = found.end()
        return "".join([*parts, text[done:]]) if parts else text

    def split(self, text: str) -> list[str]:
        """Return what stands between the matches."""
        parts, done = list[str](), 0
        for found in self.finditer(text):
            parts.append(text[done : found.start()])
            done = found.end()
        return [*parts, text[done:]]


class _Forms(NamedTuple):
    """A pattern as RE2 has it, its whole as group 1."""

    first: Any
    further: Callable[[], Any] | None
    """For where a text goes on, if the pattern looks at what stands before a match."""
    looks_beside: bool
    groups: range
    names: Mapping[str, int]


class _Places:
    """Places in a text, told from those in its UTF-8: each counted on from the last match."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._last = 0, 0

    def of(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Tell these of a match, the first of which is the whole."""
        told, (at, place) = {-1: -1}, self._last
        for end in sorted({each for span in spans for each in span if each >= 0}):
            place += len(self._data[at:end].decode("utf-8", "surrogatepass"))
            told[end], at = place, end
        self._last = spans[0][0], told[spans[0][0]]
        return [(told[start], told[end]) for start, end in spans]


def _match(text: str, found: Any, forms: _Forms, places: _Places | None) -> Match:
    """A match of RE2; without `places` the text is ASCII."""
    spans = [found.span(group) for group in forms.groups]
    return Match(text, places.of(spans) if places else spans, forms.names)


def _found(data: bytes, forms: _Forms) -> Iterator[Any]:
    if data.isascii() and not forms.looks_beside:
        plain: Iterator[Any] = forms.first.finditer(data)
        return plain
    return _found_one_by_one(data, forms)


def _found_one_by_one(data: bytes, forms: _Forms) -> Iterator[Any]:
    found = forms.first.search(data)
    while found:
        yield found
        start, end = found.span(1)
        at = end if end > start else _one_behind(data, start)
        if at > len(data):
            return
        if forms.further is None:
            found = forms.first.search(data, at)
        else:
            found = forms.further().search(data, _one_before(data, at))


def _one_before(data: bytes, at: int) -> int:
    at -= at > 0
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _one_behind(data: bytes, at: int) -> int:
    at += 1
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


_MADE: Final[WeakSet[Pattern]] = WeakSet()


def pattern(source: str) -> Pattern:
    r"""Make a pattern of RE2, of linear time by construction; compiled when it is first used.

    Written as for `re`, `\w`, `\d` and `\s` of every script too; flags go in front, as `(?i)`.
    There are no back references, and what stands beside a match is looked at in front and at the
    end only, one character of it: `\b`, `(?<!\d)`, `(?<=€)`; `\b`, `(?!\w)`, `(?=\s|\Z)`.
    """
    made = Pattern(source)
    _MADE.add(made)
    return made


def patterns() -> list[Pattern]:
    """Return every pattern that was made and is in use."""
    return list(_MADE)


def escape(text: str) -> str:
    """Write `text` as a pattern that finds it as it is."""
    return "".join(
        each if each.isalnum() or each == "_" or not each.isascii() else f"\\{each}"
        for each in text
    )


_OF_UNICODE: Final = {
    "w": r"\p{L}\p{N}_",
    "d": r"\p{Nd}",
    "s": r"\t-\r\x1c-\x20\x{85}\p{Z}",
}
"""What a class holds for all that `re` means by it; RE2 means ASCII alone."""
_CLASS: Final = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_ONE: Final = rf"(?:{_CLASS}|\\[pPx]\{{[^}}]*\}}|\\u[0-9a-fA-F]{{4}}|\\.|[^\\()])"
_AROUND: Final = (
    r"(?s)\A(?P<flags>\(\?[ims]+\))?"
    rf"(?:(?P<word_begins>\\b)|\(\?<(?P<before>[=!])(?P<one_before>{_ONE})\))?(?P<body>.*?)"
    rf"(?:(?P<word_ends>\\b)|\(\?(?P<after>[=!])(?P<one_after>{_ONE})(?P<or_end>\|\\Z)?\))?\Z"
)
_SIGN: Final = r"\\u[0-9a-fA-F]{4}|\\.|."
_SIGNS: Final = re.compile(f"(?s){_CLASS}|{_SIGN}")


def _compiled(source: str) -> _Forms:
    """The pattern as group 1, and around it what is looked at beside it."""
    found = re.match(_AROUND, source)
    parts = found.groupdict("") if found else {}
    before = start = after = ""
    if one := parts["one_before"] or (parts["word_begins"] and r"\w"):
        before = one if parts["before"] == "=" else _none_of(one)
        start = before if parts["before"] == "=" else rf"(?:\A|{before})"
    if one := parts["one_after"] or (parts["word_ends"] and r"\w"):
        at_end = r"|\Z" if parts["after"] != "=" or parts["or_end"] else ""
        after = f"(?:{one if parts['after'] == '=' else _none_of(one)}{at_end})"
    within = f"({parts['body']}){after}"
    first = _by_re2(parts["flags"] + start + within)
    further = cache(partial(_by_re2, parts["flags"] + before + within)) if before else None
    names = {name: group - 1 for name, group in first.groupindex.items()}
    return _Forms(first, further, bool(before or after), range(1, first.groups + 1), names)


def _by_re2(source: str) -> Any:
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile("".join(map(_as_re2_sign, _SIGNS.findall(source))), options)
    except re2.error as error:
        raise ValueError(f"{source!r} is no pattern of linear time: {error}") from None


def _none_of(one: str) -> str:
    if one in (r"\W", r"\D", r"\S"):
        return one.lower()
    return "[" + one[2:] if one[:2] == "[^" else f"[^{one.removeprefix('[').removesuffix(']')}]"


def _as_re2_sign(sign: str) -> str:
    kind = sign[1:2]
    if sign[0] == "[":
        return f"[{''.join(map(_in_class, re.findall(f'(?s){_SIGN}', sign[1:-1])))}]"
    if sign[0] == "\\" and kind.lower() in _OF_UNICODE:
        return f"[{'^' * kind.isupper()}{_OF_UNICODE[kind.lower()]}]"
    if sign in (r"\b", r"\B"):
        raise ValueError(rf"{sign} stands at an end of a pattern only")
    return r"\z" if sign == r"\Z" else _in_class(sign)


def _in_class(sign: str) -> str:
    if sign in (r"\W", r"\D", r"\S"):
        raise ValueError(rf"{sign} in a class: name what it holds, as \p{{L}} for letters")
    if sign[:2] == r"\u":
        return rf"\x{{{sign[2:]}}}"
    return _OF_UNICODE.get(sign[1:], sign) if sign[0] == "\\" else sign


_UNDECOMPOSED: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
    | dict.fromkeys("\u00ad\u200d\u2060\ufeff")
)
_MARKS: Final = pattern(
    r"[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e00-\u109f\u1780-\u17dd\u3099\u309a]"
)
"""Marks that are part of a word in their scripts."""
_APART: Final = pattern(r"[\u1100-\u11ff]{2,}|[\u3046-\u30fd][\u3099\u309a]")
"""Syllables of Korean and Japanese that were written in parts."""
_SENTENCE_END: Final = pattern(
    r"(?P<western>[.!?…]+[\"'»”’)\]]*)\s"  # a stop, then white space
    r"|(?P<full>[。！？]+[」』”’）]*)"  # no space follows
)
_PARAGRAPH_END: Final = pattern(r"\n[ \t]*\n")
_LAST_SPACE: Final = pattern(r"\s+\S*\Z")
_LOOK_BACK: Final = 40
"""Characters around a full stop that say whether it ends a sentence."""
_STEMMERS: Final[Mapping[Language, str]] = {
    "en": "porter",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "nl": "dutch",
}


def storable(text: str) -> str:
    """Return `text` without what a database cannot hold: NUL characters and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


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
    return fold(text).translate(_WORDS).split()


class _Kept(dict[int, str]):
    """Characters that stay; every other one becomes a space."""

    def __init__(self, stays: Callable[[str], bool]) -> None:
        super().__init__()
        self._stays = stays

    def __missing__(self, code: int) -> str:
        kept = chr(code) if self._stays(chr(code)) else " "
        if len(self) < REMEMBERED:
            self[code] = kept
        return kept


# Letters and digits of every script, with the marks that are part of a word in theirs.
_WORDS: Final = _Kept(lambda each: each.isalnum() or _MARKS.match(each) is not None)
_LETTERS: Final = _Kept(lambda each: each.isalpha() or each == "'")


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
    for match in _SENTENCE_END.finditer(text[: limit + 1]):
        start, end = match.span("full" if match["full"] else "western")
        if end <= limit and _ends_sentence(text, start, end):
            yield end


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether a stop really ends a sentence: not in "1.5 l", "Dr. No", "e.g. this", "3. item"."""
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


def _last_paragraph_end(text: str, limit: int) -> int:
    begin = len(text) - len(text.lstrip())
    ends = (match.start() for match in _PARAGRAPH_END.finditer(text[: limit + 2]))
    return max((end for end in ends if begin < end <= limit), default=0)


def _last_white_space(text: str, limit: int) -> int:
    found = _LAST_SPACE.search(text[: limit + 1])
    return found.start() if found and found.start() else limit


def language_of(text: str) -> Language | None:
    """Return the language of `text`, None when there is too little of it or it is not clear.

    Told by its commonest words and letters: an answer of two sentences has enough of them.
    """
    lowered, said, weights = *_read(text), _weights(LANGUAGES)
    known = sum(any(word in each for each in weights.values()) for word in said)
    if not said or known / len(said) < LEAST_SHARE:
        return None
    best, most = _likeliest(lowered, said, weights)
    return best if most >= LEAST_EVIDENCE else None


def spoken_in(text: str) -> Spoken | None:
    """Return the language that a person writes in, also of a short message; None if not clear."""
    lowered, said, weights = *_read(text), _weights(SPOKEN)
    best, most = _likeliest(lowered, said, weights)
    if best is None or len(said) < LEAST_SAID or most < SHORT_EVIDENCE:
        return None
    common = sum(word in weights[best] for word in said)
    return best if common >= SHORT_COMMON and common / len(said) >= SHORT_SHARE else None


def common_words(language: str) -> frozenset[str]:
    """Return the commonest words of a language, folded; none of one that is not told apart."""
    traits = next((each for code, each in _data().languages.items() if code == language), None)
    return frozenset(map(fold, traits.common)) if traits else frozenset()


def language_evidence(text: str) -> dict[Spoken, float]:
    """Return how much the common words and the letters of `text` speak for each language."""
    lowered, said = _read(text)
    weights = _weights(SPOKEN)
    return {language: _evidence(language, said, lowered, weights) for language in SPOKEN}


def _read(text: str) -> tuple[str, list[str]]:
    lowered = text.casefold().replace("’", "'")
    return lowered, list(_said(lowered))


def _likeliest(text: str, said: list[str], weights: _Weights[S]) -> tuple[S | None, float]:
    """The language for which most speaks, and how much; None where another is as likely."""
    found = {language: _evidence(language, said, text, weights) for language in weights}
    (best, most), (_, second), *_ = sorted(found.items(), key=lambda each: -each[1])
    return best if most >= LEAST_LEAD * second else None, most


def _said(text: str) -> Iterator[str]:
    """The words that languages are told by: "l'" is one, but no English "wine's"."""
    for token in text.translate(_LETTERS).split():
        parts = token.split("'")
        for part, behind in zip(parts, [*parts[1:], ""], strict=True):
            if part:
                yield part + "'" * (len(behind) >= 2)


def _evidence(language: S, said: list[str], text: str, of: _Weights[S]) -> float:
    """How much speaks for a language: its words, and a little for its letters."""
    weights, traits = of[language], _data().languages[language]
    letters = sum(text.count(letter) for letter in traits.letters)
    pairs = sum(any(pair in word for pair in traits.pairs) for word in said)
    return sum(weights.get(word, 0.0) for word in said) + 0.25 * min(4, letters + pairs)


_Words = Annotated[frozenset[str], BeforeValidator(str.split)]


class _Traits(Strict):
    """What a language is told by, and its abbreviations."""

    common: _Words
    letters: str
    pairs: _Words
    abbreviations: _Words


class _Data(Strict):
    """What `text.toml` holds."""

    stop_words: _Words
    languages: dict[Spoken, _Traits]


@cache
def _data() -> _Data:
    file = Path(__file__).with_suffix(".toml")
    return read_toml(_Data, file)


@cache
def _abbreviations() -> frozenset[str]:
    return frozenset().union(*(each.abbreviations for each in _data().languages.values()))


@cache
def _weights(languages: tuple[S, ...]) -> _Weights[S]:
    """The weight of each language's common words: less for those that others have too."""
    common = {language: _data().languages[language].common for language in languages}
    shared = Counter(word for words in common.values() for word in words)
    return {
        language: {word: 1 / shared[word] ** 2 for word in words}
        for language, words in common.items()
    }


async def run_in_thread_if_large(
    work: Callable[[], R], *, size: int, most: int = MAX_INLINE_CHARS
) -> R:
    """Return what `work` returns; on more than `most` characters it runs in a thread.

    No chat waits then for another's long text.
    """
    return await asyncio.to_thread(work) if size > most else work()


def spaced(said: Iterable[str]) -> str:
    """Return words as patterns of `of_words` look at them: two spaces between, one around."""
    return f" {'  '.join(said)} "


def of_words(sources: Iterable[str]) -> Pattern:
    """Make a pattern of any of these: a space parts words, `\\b` begins or ends one in it."""
    source = "|".join(f"(?:{each})" for each in sources)
    return pattern(source.replace(" ", "  ").replace(r"\b", " ").replace("  *$", " *$"))

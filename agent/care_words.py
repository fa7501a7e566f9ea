"""The words of a message, and the classes of words and phrases that care is told by. Pure.

The lexicons, the rules that combine them and the idioms that say nothing are in `care.toml`.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from agent.text import LANGUAGES, Language, fold, language_of, pattern

STOPS: Final = frozenset(".;!?\n")
_BEFORE: Final = 9
_BEHIND: Final = 3
_IDIOM: Final = "idiom"
_TELLING: Final = frozenset("self other link no taking beneficiary may giving wish".split())
_LONGEST_AFFIX: Final = 24
_SHORTEST_AFFIX: Final = 3
_REMEMBERED: Final = 8192
_TOKEN: Final = pattern(r"[0-9]+|\p{L}+|[.,;:!?()/\n-]")

Words = tuple[str, ...]


class Rule(BaseModel):
    """A concern, and the classes that tell of it within so many words of the first.

    They stand in one sentence, or in several if it goes `across`. It does not hold in a sentence
    that has one of the classes of `unless`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    concern: str
    all: tuple[str, ...]
    within: int = 0
    unless: tuple[str, ...] = ()
    negatable: bool = False
    across: bool = False


class _File(BaseModel):
    """What `care.toml` holds; `numbers` are the words from two to eighteen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: tuple[Rule, ...]
    spelt: dict[str, str]
    idioms: dict[str, str]
    numbers: dict[Language, str]
    classes: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What each phrase, beginning and ending of words belongs to, and the rules.

    A class is named alone and with its language: "self" and "en:self".
    """

    rules: tuple[Rule, ...]
    spelt: Mapping[Words, Words]
    phrases: Mapping[Words, frozenset[str]]
    openings: Mapping[Words, Sequence[tuple[str, frozenset[str]]]]
    """Of phrases whose last word may end in any way: that word behind the others."""
    beginnings: Mapping[str, frozenset[str]]
    endings: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]
    longest: Mapping[str, int]
    """How many words the longest phrase has that begins with a word."""


@cache
def lexicon() -> Lexicon:
    """The lexicon, read when the first message comes.

    Raises:
        ValidationError: the file is not as it must be.
    """
    written = tomllib.loads(Path(__file__).with_name("care.toml").read_text("utf-8"))
    file = _File.model_validate(written)
    phrases: dict[Words, frozenset[str]] = {}
    beginnings: dict[str, frozenset[str]] = {}
    endings: dict[str, frozenset[str]] = {}
    openings: dict[Words, list[tuple[str, frozenset[str]]]] = {}
    listed = [
        (word, frozenset({name, *(f"{each}:{name}" for each in _languages(language))}))
        for language, classes in (*file.classes.items(), ("any", {_IDIOM: file.idioms["any"]}))
        for name, words in classes.items()
        for word in words.split()
    ]
    for word, names in listed:
        plain = word.strip("*_")
        if word.startswith("*"):
            endings[plain] = endings.get(plain, frozenset()) | names
        elif word.endswith("*") and "_" in plain:
            *head, last = plain.split("_")
            openings.setdefault(tuple(head), []).append((last, names))
        elif word.endswith("*"):
            beginnings[plain] = beginnings.get(plain, frozenset()) | names
        else:
            key = tuple(plain.split("_"))
            phrases[key] = phrases.get(key, frozenset()) | names
    longest: dict[str, int] = {}
    for key in (*phrases, *openings):
        longest[key[0]] = max(longest.get(key[0], 0), len(key))
    numbers = {
        word: number
        for words in file.numbers.values()
        for number, word in enumerate(words.split(), start=2)
    }
    spelt = {tuple(key.split("_")): tuple(value.split()) for key, value in file.spelt.items()}
    return Lexicon(file.rule, spelt, phrases, openings, beginnings, endings, numbers, longest)


def _languages(language: str) -> Iterable[str]:
    return LANGUAGES if language == "any" else (language,)


@lru_cache(maxsize=_REMEMBERED)
def _by_affix(word: str) -> frozenset[str]:
    """The classes of a word by its beginning and its ending."""
    known = lexicon()
    sizes = range(_SHORTEST_AFFIX, min(len(word), _LONGEST_AFFIX) + 1)
    found = (
        part
        for size in sizes
        for part in (known.beginnings.get(word[:size]), known.endings.get(word[-size:]))
    )
    return frozenset().union(*filter(None, found))


def _spelt_out(words: Sequence[str]) -> Iterator[str]:
    """The words with what is written short in full: "don't" is "do not"."""
    at, spelt = 0, lexicon().spelt
    while at < len(words):
        length = next((n for n in (3, 2, 1) if tuple(words[at : at + n]) in spelt), 0)
        yield from spelt[tuple(words[at : at + length])] if length else (words[at],)
        at += length or 1


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that belong to classes, from `start` to before `end`."""

    start: int
    end: int
    names: frozenset[str]


class Message:
    """The words of a message, and the classes of the phrases that begin and end at each."""

    def __init__(self, text: str) -> None:
        self.words = list(_spelt_out(_TOKEN.findall(fold(text))))
        found = list(self._phrases())
        idioms = {
            at for each in found if _IDIOM in each.names for at in range(each.start, each.end)
        }
        self._begins: list[list[Phrase]] = [[] for _ in self.words]
        self._until: list[frozenset[str]] = [frozenset()] * len(self.words)
        for each in found:
            if idioms.isdisjoint(range(each.start, each.end)):
                self._begins[each.start].append(each)
                self._until[each.end - 1] |= each.names
        self._at = [frozenset[str]().union(*(each.names for each in at)) for at in self._begins]
        self.said = frozenset[str]().union(*self._at)
        self._sentence = self._sentences()
        self._sentences_of: dict[str, frozenset[int]] = {}
        self.language = language_of(text) or self._likely_language()

    def _phrases(self) -> Iterator[Phrase]:
        known = lexicon()
        for at, word in enumerate(self.words):
            if names := _by_affix(word):
                yield Phrase(at, at + 1, names)
            longest = min(known.longest.get(word, 0), len(self.words) - at)
            for length in range(1, longest + 1):
                run, end = tuple(self.words[at : at + length]), at + length
                if found := known.phrases.get(run):
                    yield Phrase(at, end, found)
                for last, names in known.openings.get(run, ()):
                    if end < len(self.words) and self.words[end].startswith(last):
                        yield Phrase(at, end + 1, names)

    def _sentences(self) -> list[int]:
        """The number of the sentence that each word stands in."""
        numbers, number = [], 0
        for at, word in enumerate(self.words):
            number += word in STOPS and not (word == "." and self.words[at - 1].isdecimal())
            numbers.append(number)
        return numbers

    def _likely_language(self) -> Language | None:
        """The language that most telling words are of; None if two have as many."""
        votes = Counter(
            each.partition(":")[0]
            for names in self._at
            for each in names
            if ":" in each and f"{each.partition(':')[2]}" in _TELLING
        )
        best = sorted(LANGUAGES, key=lambda language: -votes[language])
        return best[0] if votes[best[0]] > votes[best[1]] else None

    def own(self, name: str) -> str:
        """A class in the language of the message, in every language if that is not known."""
        return f"{self.language}:{name}" if self.language else name

    def is_at(self, at: int, *names: str) -> bool:
        """Whether a phrase of one of these classes begins at a word."""
        return 0 <= at < len(self._at) and not self._at[at].isdisjoint(names)

    def ends_at(self, at: int, name: str) -> bool:
        """Whether a phrase of a class ends with a word."""
        return 0 <= at < len(self._until) and name in self._until[at]

    def places(self, name: str) -> Iterator[int]:
        """Where phrases of a class begin."""
        if name in self.said:
            yield from (at for at, names in enumerate(self._at) if name in names)

    def phrases(self, name: str) -> Iterator[Phrase]:
        """The phrases of a class."""
        if name in self.said:
            yield from (each for at in self._begins for each in at if name in each.names)

    def is_near(self, name: str, at: int, within: int, *, across: bool = False) -> bool:
        """Whether another phrase of a class begins within so many words, and in the sentence."""
        places = range(max(0, at - within), min(len(self._at), at + within + 1))
        return any(
            name in self._at[each]
            for each in places
            if each != at and (across or self._sentence[each] == self._sentence[at])
        )

    def is_in_sentence(self, name: str, at: int) -> bool:
        """Whether a phrase of a class begins in the sentence of a word."""
        if name not in self._sentences_of:
            found = (self._sentence[each] for each in self.places(name))
            self._sentences_of[name] = frozenset(found)
        return self._sentence[at] in self._sentences_of[name]

    def is_before(self, name: str, at: int, within: int) -> bool:
        """Whether a phrase of a class begins within so many words before, in the same sentence."""
        places = range(max(0, at - within), at)
        return any(
            name in self._at[each] and self._sentence[each] == self._sentence[at] for each in places
        )

    def number(self, at: int) -> int | None:
        """The number that stands at a place, None if none does."""
        if not 0 <= at < len(self.words):
            return None
        word = self.words[at]
        return int(word[:4]) if word.isdecimal() else lexicon().numbers.get(word)

    def is_about_other(self, start: int, end: int) -> bool:
        """Whether a phrase is said of somebody else than who writes: the nearest person decides.

        Those before it come first ("my wife is pregnant"), then those behind ("a pregnant friend").
        """
        selves, others = self.own("self"), self.own("other")
        behind = takewhile(
            lambda at: self.words[at] != ",", range(end, min(len(self.words), end + _BEHIND))
        )
        for at in (*range(start, end), *range(start - 1, max(-1, start - _BEFORE), -1), *behind):
            if self._sentence[at] == self._sentence[start] and self.is_at(at, selves, others):
                return not self.is_at(at, selves)
        return False

"""The words by which sentences are compared: `lexicon.toml`, read once.

Words are compared by their stems, by what they mean in six languages and by their beginnings,
numbers by what they are worth.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agent.classifier import Meanings
from agent.text import LANGUAGES, REMEMBERED, Language, fold, language_of, pattern, stem

LONGEST: Final = 2_000
"""Characters of a sentence that are looked at."""
BEGINNING: Final = 5
"""Letters by which words of one origin are alike in several languages."""
COMPOUND: Final = 8
"""Letters of a word that may be made of two."""
HALF: Final = 4
TOKEN: Final = pattern("\\d+(?:[.,\u00a0\u202f]\\d+)*|\\p{L}+")

Keys = frozenset[str]
Words = Annotated[frozenset[str], BeforeValidator(str.split)]
Rows = Annotated[
    Sequence[Sequence[str]], BeforeValidator(lambda rows: [row.split(";") for row in rows])
]


class _File(BaseModel):
    """What `lexicon.toml` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    anaphors: Words
    same: Rows
    numbers: Mapping[Language, str]
    harmless: Mapping[Language, Words]
    denials: Mapping[Language, str]
    qualifiers: Mapping[Language, str]


class Vocabulary:
    """The words of one language."""

    def __init__(self, language: Language) -> None:
        file = _file()
        self._language: Language = language
        place = LANGUAGES.index(language)
        same = {f"={number}": self._stems(row[place]) for number, row in enumerate(file.same)}
        counts = {"denial": file.denials[language], "other": file.qualifiers[language]}
        self._same = Meanings(same)
        self._qualifiers = Meanings({kind: self._stems(each) for kind, each in counts.items()})
        self._harmless = file.harmless[language]
        worth = map(float, (*range(1, 21), *range(30, 101, 10), 1000))
        said = file.numbers[language].split()
        self._numbers: dict[str, float] = dict(zip(said, worth, strict=True))

    def keys(self, word: str) -> Keys:
        """Return what a folded word is compared by; nothing for a short one."""
        value = self._value(word)
        if value is not None:
            return frozenset({f"#{value:g}"} if word[0].isdecimal() or value > 1 else ())
        if len(word) < 3:
            return frozenset()
        halves = self._halves(word) if len(word) >= COMPOUND else Keys()
        own = (stem(word, self._language), f"{word[:BEGINNING]}~")
        return frozenset({*own, *self._meant(word), *halves})

    def exact(self, token: str) -> str:
        """Return what a word is the same by in its own language."""
        word = fold(token)
        value = self._value(word)
        return stem(word, self._language) if value is None else f"#{value:g}"

    def telling(self, text: str) -> list[str]:
        """Return the words of a text without those that may stand in it or not."""
        return [each for each in TOKEN.findall(text[:LONGEST]) if fold(each) not in self._harmless]

    def is_qualifier(self, word: str) -> bool:
        """Say whether a sentence says something else without a folded word."""
        return bool(self._qualifiers.of(stem(word, self._language)))

    def denies(self, word: str) -> bool:
        """Say whether a folded word denies something."""
        return "denial" in self._qualifiers.of(stem(word, self._language))

    def _stems(self, words: str) -> str:
        """Words by their stems, those that stand for beginnings as they are."""
        each = (w if w.endswith("*") else stem(w, self._language) for w in words.split())
        return " ".join(each)

    def _meant(self, word: str) -> frozenset[str]:
        return self._same.of(word) | self._same.of(stem(word, self._language))

    def _halves(self, word: str) -> Keys:
        """What the halves of a compound mean, if both mean something."""
        for at in range(HALF, len(word) - HALF + 1):
            first, second = self._meant(word[:at]), self._meant(word[at:])
            if first and second:
                return first | second
        return Keys()

    def _value(self, word: str) -> float | None:
        """What a number is worth, in digits or in words; None for any other word."""
        if word[0].isdecimal():
            return _worth(word)
        for at in range(len(word), 1, -1):
            rest = word[at:].removeprefix("und").removeprefix("en")
            if word[:at] in self._numbers and (at == len(word) or rest in self._numbers):
                return self._numbers[word[:at]] + self._numbers.get(rest, 0.0)
        return None


def _worth(digits: str) -> float:
    """What digits are worth; before three of them stand thousands."""
    signs = digits.replace("\u00a0", ",").replace("\u202f", ",").replace(".", ",")
    first, *groups = signs.split(",")
    if groups and first.strip("0") and all(len(group) == 3 for group in groups):
        return float(first + "".join(groups))
    return float(".".join([first, "".join(groups)]) if groups else first)


@cache
def _file() -> _File:
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return _File.model_validate(tomllib.loads(text))


@cache
def vocabulary(language: Language) -> Vocabulary:
    """Return the words of a language."""
    return Vocabulary(language)


def is_anaphor(word: str) -> bool:
    """Say whether a folded word points back to another sentence."""
    return word in _file().anaphors


def items(text: str, language: Language | None) -> Iterator[Keys]:
    """Yield what the words of a text are compared by; of every language if its own is not known."""
    found = (_keys(fold(token), language) for token in TOKEN.findall(text[:LONGEST]))
    return (keys for keys in found if keys)


def numbers(text: str) -> Keys:
    """Return what the numbers of a text are compared by."""
    found = (key for keys in items(text, language_of(text)) for key in keys)
    return Keys(key for key in found if key.startswith("#"))


@lru_cache(maxsize=REMEMBERED)
def _keys(word: str, language: Language | None) -> Keys:
    languages = (language,) if language else LANGUAGES
    return Keys().union(*(vocabulary(each).keys(word) for each in languages))

"""What a message holds for care: its words and what they mean, numbers, ages, reactions. Pure.

Words and patterns are in `care.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import combinations, groupby, pairwise, product
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from agent.classifier import LONGEST_WORD, Meanings, hashed
from agent.text import Pattern, fold, pattern

PARTS: Final = (3, 4, 5)
"""Letters of the parts of words that the classifier looks at."""
WINDOW: Final = 80
"""Words that the classifier looks at together; half of them again with the next."""
REMEMBERED: Final = 8192
"""Words whose parts are kept."""
YOUNGEST: Final = 8
"""From how many years on a number may be the age of somebody who writes."""
_TOKEN: Final = pattern(r"[0-9]+|\p{L}+|[^\s\p{L}0-9]")
_STOPS: Final = frozenset(".!?,")
_END: Final = (
    r"(?:\s*(?:[.,!?;:)]|\Z)|\s(?:and|but|so|lol|what|can|und|aber|was|darf|et|mais|je|on|quel"
    r"|y|pero|que|e|ma|che|quale|en|maar|wat|welke|mas|qual))"
)
_LONGEST_PHRASE: Final = 3


class _File(BaseModel):
    """What `care.toml` holds; `numbers` are the words from two to eighteen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    meanings: dict[str, str]
    numbers: dict[str, str]
    reactions: dict[str, str]
    certain: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What words mean to the classifier, what people react to, what is certain by its words."""

    meanings: Meanings
    reactions: Meanings
    numbers: Mapping[str, int]
    certain: Mapping[str, Pattern]


@cache
def lexicon() -> Lexicon:
    """The lexicon, read when the first message comes.

    Raises:
        ValidationError: the file is not as it must be.
    """
    written = tomllib.loads(Path(__file__).with_name("care.toml").read_text("utf-8"))
    file = _File.model_validate(written)
    numbers = {
        word: number
        for words in file.numbers.values()
        for number, word in enumerate(words.split(), start=2)
    }
    age = f"(?:[0-9]{{1,2}}|{'|'.join(numbers)})"
    certain = {
        concern: pattern(rf"\b(?:{each.replace('{age}', age).replace('{end}', _END)})(?!\w)")
        for concern, each in ((name, "|".join(each)) for name, each in file.certain.items())
    }
    return Lexicon(Meanings(file.meanings), Meanings(file.reactions), numbers, certain)


class Message:
    """The words of a message, folded, and what stands in them."""

    def __init__(self, text: str) -> None:
        self._text = fold(text)
        self._tokens = _TOKEN.findall(self._text)

    def certain(self, full_age: int) -> Iterator[str]:
        """Tell the concerns that some words leave no doubt of."""
        for concern, words in lexicon().certain.items():
            for found in words.finditer(self._text):
                before = _TOKEN.findall(
                    self._text[max(0, found.start() - LONGEST_WORD) : found.start()]
                )[-1:]
                if any("not" in _meaning(each) for each in before):
                    continue
                ages = filter(None, map(_number, _TOKEN.findall(found[0])))
                if concern != "under_age" or any(YOUNGEST <= each < full_age for each in ages):
                    yield concern
                    break

    def windows(self, full_age: int) -> Iterator[frozenset[int]]:
        """Tell the features of the message for the classifier, a part of a long one at a time."""
        step = WINDOW // 2
        for start in range(0, max(1, len(self._tokens) - step), step):
            part = self._tokens[start : start + WINDOW]
            yield _features([_written(each, full_age) for each in part])

    @cached_property
    def reactions(self) -> Sequence[frozenset[str]]:
        """What is said at each word of who wine is for, and of what somebody reacts to."""
        of, runs = lexicon().reactions.of, range(1, _LONGEST_PHRASE + 1)
        return [
            frozenset().union(*(of(" ".join(self._tokens[at : at + size])) for size in runs))
            for at in range(len(self._tokens))
        ]

    def has(self, kind: str) -> bool:
        """Tell whether anything of a kind is said."""
        return any(kind in said for said in self.reactions)

    def people(self, behind: str = "") -> frozenset[str]:
        """Tell the people that are named, those behind a word of a kind if one is given."""
        return frozenset(
            self._tokens[at]
            for at, said in enumerate(self.reactions)
            if "person" in said and (not behind or (at and behind in self.reactions[at - 1]))
        )

    def is_near(self, one: str, other: str, within: int) -> bool:
        """Tell whether a word of one kind stands within so many words of one of another kind."""
        places = [at for at, said in enumerate(self.reactions) if other in said]
        return any(
            one in said and any(abs(at - place) <= within for place in places)
            for at, said in enumerate(self.reactions)
        )


def _number(word: str) -> int | None:
    return int(word[:4]) if word.isdecimal() else lexicon().numbers.get(word)


def _written(word: str, full_age: int) -> str:
    """A word as the classifier knows it: a number by whose age it may be, "sooo" as "soo"."""
    number = _number(word)
    if number is not None and (word.isdecimal() or number >= YOUNGEST):
        return _kind(number, full_age)
    return "".join(letter for letter, run in groupby(word) for letter in [*run][:2])[:LONGEST_WORD]


def _kind(number: int, full_age: int) -> str:
    if number < YOUNGEST:
        return "#few" if number < YOUNGEST // 2 else "#some"
    if number <= full_age:
        return "#full" if number == full_age else "#minor"
    return "#year" if 1900 < number < 2100 else "#many"


@lru_cache(maxsize=REMEMBERED)
def _meaning(word: str) -> frozenset[str]:
    if word[0] == "#":
        return frozenset({word})
    return frozenset({","}) if word in _STOPS else lexicon().meanings.of(word)


@lru_cache(maxsize=REMEMBERED)
def _of_word(word: str) -> frozenset[int]:
    """The features of a word alone: itself, its parts, its meanings."""
    whole = f"^{word}$"
    parts = {whole[at : at + n] for n in PARTS for at in range(len(whole) - n + 1)}
    return hashed({f"w {word}", *parts, *(f"m {each}" for each in _meaning(word))})


def _features(words: Sequence[str]) -> frozenset[int]:
    said = ["<", *words, ">"]
    return hashed(_pairs(said)).union(*map(_of_word, said))


def _pairs(said: Sequence[str]) -> Iterator[str]:
    """Words beside each other and one apart, and the same of what they mean."""
    meanings = [*map(_meaning, said)]
    meant = [*filter(None, meanings)]
    yield from (f"b {one} {two}" for one, two in pairwise(said))
    yield from (f"s {one} {two}" for one, two in zip(said, said[2:], strict=False))
    beside = (("d", meant, meant[1:]), ("e", meant, meant[2:]))
    mixed = (("f", [*zip(said)], meanings[1:]), ("g", meanings, [*zip(said[1:])]))
    for kind, first, second in (*beside, *mixed):
        for pair in zip(first, second, strict=False):
            yield from (f"{kind} {one} {two}" for one, two in product(*pair))
    for one, two in combinations(sorted(frozenset().union(*meant)), 2):
        yield f"m {one} {two}"

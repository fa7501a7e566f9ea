"""Who should not be offered alcohol and who needs help, told by what a message says. Pure.

Small lexicons are combined, near each other in a clause: who, which state, since when, denied or
not. The words, the rules that combine them and the idioms that say nothing are in `care.toml`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict

from agent.text import fold

Concern = Literal[
    "crisis", "dependence", "under_age", "pregnancy", "medication", "health", "driving"
]
"""Why somebody is offered no alcohol, the gravest first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes", "histamine"]
Intolerance = Literal["", "histamine", "sulphites", "severe"]

FULL_AGE: Final = 18
LONGEST: Final = 8000
"""Characters of a message that are looked at."""

_YOUNGEST: Final = 4
_SCHOOL_YEARS: Final = range(3, 14)
_NEAR: Final = 4
_MANY_GLASSES: Final = 4
_LONGEST_AFFIX: Final = 24
_SHORTEST_AFFIX: Final = 3
_REMEMBERED: Final = 8192
_TOKEN: Final = re.compile(r"[0-9]+|[^\W\d_]+|[.,;:!?()/\n-]")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Care:
    """What a message tells of those who should not be offered alcohol.

    `own` is said of who writes, `others` of somebody else whom wine may be for. `allergies` are
    what who writes must not be given. `people` are the persons it names, `beneficiaries` those of
    them that wine is wanted for.
    """

    own: frozenset[Concern] = frozenset()
    others: frozenset[Concern] = frozenset()
    allergies: frozenset[Allergy] = frozenset()
    intolerance: Intolerance = ""
    has_drunk: bool = False
    people: frozenset[str] = frozenset()
    beneficiaries: frozenset[str] = frozenset()

    @property
    def gravest(self) -> Concern | None:
        """The gravest concern, whoever it is about; None without one."""
        return next((each for each in CONCERNS if each in self.own | self.others), None)


NO_CARE: Final = Care()


def care_of(text: str, full_age: int = FULL_AGE) -> Care:
    """Read what `text`, a message in any supported language, tells of who should not drink.

    `full_age` is the age in years from which wine is offered.
    """
    return _Reading(text[:LONGEST], full_age).care()


class _Rule(BaseModel):
    """A concern, and the classes that tell of it within so many words of the first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concern: Concern
    all: tuple[str, ...]
    within: int = 0
    negatable: bool = False


class _File(BaseModel):
    """What `care.toml` holds; `numbers` are the words from two to seventeen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    spelt: dict[str, str]
    classes: dict[str, str]
    rule: tuple[_Rule, ...]
    numbers: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The classes of each phrase, beginning and ending of words, and the rules."""

    spelt: Mapping[Words, Words]
    phrases: Mapping[Words, frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    endings: Mapping[str, frozenset[str]]
    longest: int
    rules: tuple[_Rule, ...]
    numbers: Mapping[str, int]


@cache
def _lexicon() -> _Lexicon:
    """The lexicon, read when the first message comes.

    Raises:
        ValidationError: the file is not as it must be.
    """
    written: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    file = _File.model_validate(written)
    phrases: dict[Words, frozenset[str]] = {}
    beginnings: dict[str, frozenset[str]] = {}
    endings: dict[str, frozenset[str]] = {}

    def add(table: dict[Any, frozenset[str]], key: object, name: str) -> None:
        table[key] = table.get(key, frozenset()) | {name}

    for name, listed in file.classes.items():
        for word in listed.split():
            plain = word.strip("*_")
            if word.startswith("*"):
                add(endings, plain, name)
            elif word.endswith("*") and "_" not in plain:
                add(beginnings, plain, name)
            else:
                add(phrases, tuple(plain.split("_")), name)
    numbers = {
        word: number
        for listed in file.numbers.values()
        for number, word in enumerate(listed.split(), start=2)
    }
    spelt = {tuple(key.split("_")): tuple(value.split()) for key, value in file.spelt.items()}
    longest = max(map(len, phrases))
    return _Lexicon(spelt, phrases, beginnings, endings, longest, file.rule, numbers)


@lru_cache(maxsize=_REMEMBERED)
def _by_affix(word: str) -> frozenset[str]:
    """The classes of a word by its beginning and its ending."""
    lexicon = _lexicon()
    sizes = range(_SHORTEST_AFFIX, min(len(word), _LONGEST_AFFIX) + 1)
    found = (
        part
        for size in sizes
        for part in (lexicon.beginnings.get(word[:size]), lexicon.endings.get(word[-size:]))
    )
    return frozenset().union(*filter(None, found))


def _spelt_out(words: Sequence[str]) -> Iterator[str]:
    """The words with what is written short in full: "don't" is "do not"."""
    at, spelt = 0, _lexicon().spelt
    while at < len(words):
        length = next((n for n in (3, 2, 1) if tuple(words[at : at + n]) in spelt), 0)
        yield from spelt[tuple(words[at : at + length])] if length else (words[at],)
        at += length or 1


class _Reading:
    """The words of a message, and the classes that each belongs to or begins a phrase of."""

    def __init__(self, text: str, full_age: int) -> None:
        self._words = list(_spelt_out(_TOKEN.findall(fold(text))))
        self._full_age = full_age
        self._at = [_by_affix(word) for word in self._words]
        lexicon = _lexicon()
        for at in range(len(self._words)):
            for length in range(1, lexicon.longest + 1):
                found = lexicon.phrases.get(tuple(self._words[at : at + length]))
                if found:
                    self._at[at] |= found
        self._said = frozenset[str]().union(*self._at)

    def care(self) -> Care:
        """Everything that the message tells."""
        found: set[Concern] = {rule.concern for rule in _lexicon().rules if self._holds(rule)}
        found |= {"dependence"} if self._drinks_much() else set()
        found |= {"health"} if self._has_bad_organ() or self._abstains() else set()
        found |= {"under_age"} if self._is_of_minors() else set()
        return Care(
            own=frozenset(found),
            allergies=frozenset({"grapes"}) if self._reacts_to_grapes() else frozenset(),
            intolerance=self._intolerance(),
            has_drunk="drunk" in self._said,
            people=frozenset(self._words[at] for at in self._places("others")),
            beneficiaries=frozenset(
                self._words[at]
                for at in self._places("others")
                if at and "beneficiary" in self._at[at - 1]
            ),
        )

    def _intolerance(self) -> Intolerance:
        """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
        reacts = bool(self._said & {"intolerant", "severe"})
        if "histamine" in self._said:
            return "histamine"
        if "sulphites" in self._said and reacts:
            return "sulphites"
        return "severe" if {"severe", "intolerant"} <= self._said else ""

    def _reacts_to_grapes(self) -> bool:
        return "grapes" in self._said or {"reaction", "grape"} <= self._said

    def _places(self, name: str) -> Iterator[int]:
        return (at for at, names in enumerate(self._at) if name in names)

    def _near(self, name: str, at: int, within: int, *, after: bool = False) -> bool:
        start = at + 1 if after else max(0, at - within)
        places = range(start, min(len(self._at), at + within + 1))
        return any(name in self._at[each] for each in places if each != at)

    def _holds(self, rule: _Rule) -> bool:
        first, *others = rule.all
        return self._said.issuperset(rule.all) and any(
            all(self._near(name, at, rule.within) for name in others)
            and not (rule.negatable and self._is_denied(at))
            for at in self._places(first)
        )

    def _is_denied(self, at: int) -> bool:
        return any("no" in self._at[each] for each in range(max(0, at - 3), at))

    def _abstains(self) -> bool:
        """Whether somebody "does not drink" at all, no "does not drink red"."""
        return any(
            not self._near("wine_kind", at, _NEAR, after=True) for at in self._places("abstains")
        )

    def _number(self, at: int) -> int | None:
        if not 0 <= at < len(self._words):
            return None
        word = self._words[at]
        return int(word[:4]) if word.isdecimal() else _lexicon().numbers.get(word)

    def _drinks_much(self) -> bool:
        """Bottles a day, or four glasses and more."""
        for at in self._places("measure"):
            if self._near("per_day", at, _NEAR) and self._is_amount(at):
                return True
        for at in self._places("glass"):
            number = self._number(at - 1) or 0
            if number >= _MANY_GLASSES and self._near("per_day", at, _NEAR):
                return True
        return False

    def _is_amount(self, at: int) -> bool:
        """Whether a number or an article counts the bottles, no "how many"."""
        before = range(max(0, at - 3), at)
        classes = frozenset[str]().union(*(self._at[each] for each in before))
        amount = "single" in classes or any(self._number(each) is not None for each in before)
        return amount and "how_many" not in classes

    def _has_bad_organ(self) -> bool:
        return any(
            self._near("illness", at, 5) and not self._is_denied(at) for at in self._places("organ")
        )

    def _is_of_minors(self) -> bool:
        if any("beneficiary" in self._at[max(0, at - 1)] for at in self._places("grown")):
            return False
        if any(not self._is_denied(at) for at in self._places("youth")):
            return True
        if any(
            any("giving" in self._at[each] for each in range(max(0, at - 2), at))
            or self._near("drinks_along", at, _NEAR)
            for at in self._places("kids")
        ):
            return True
        return any(self._is_age(at) or self._is_school_year(at) for at in range(len(self._at)))

    def _is_age(self, at: int) -> bool:
        """An age below the legal one: "daughter of 16", "a 16-year-old boy", "I am 16"."""
        number = self._number(at)
        if number is None:
            return self._is_german_age(at)
        if not _YOUNGEST <= number < self._full_age:
            return False
        behind = at + 1
        while behind < len(self._words) and self._words[behind] in ("-", "th", ".", "e"):
            behind += 1
        is_years = behind < len(self._at) and "years" in self._at[behind]
        if is_years and self._near("child", behind, 3, after=True):
            return True
        counts = behind < len(self._at) and "counted" in self._at[behind]
        if self._follows_child(at):
            return is_years or not counts
        return self._is_own_age(at) and (is_years or not counts)

    def _is_own_age(self, at: int) -> bool:
        """Whether a number stands behind "I am"."""
        links = at - 1
        while links > 0 and "link" in self._at[links] and not self._being(links):
            links -= 1
        return self._being(links)

    def _being(self, at: int) -> bool:
        """Whether "I am", "j'ai", "tengo" ends at a word."""
        return any(
            tuple(self._words[max(0, at + 1 - length) : at + 1]) in _beings()
            for length in range(1, 4)
        )

    def _is_german_age(self, at: int) -> bool:
        """ "Sechzehnjährig": a number and "-jährig" in one word."""
        word = self._words[at]
        heads = (word.partition(ending)[0] for ending in ("jahrig", "jarig"))
        return any(
            _YOUNGEST <= _lexicon().numbers.get(head, 0) < self._full_age
            for head in heads
            if head != word
        )

    def _follows_child(self, at: int) -> bool:
        """Whether a number stands behind a child, over words that link them."""
        for before in range(at - 1, max(-1, at - 7), -1):
            if "child" in self._at[before]:
                return True
            is_number = self._number(before) is not None
            if not self._at[before] & {"link", "years"} and not is_number:
                return False
        return False

    def _is_school_year(self, at: int) -> bool:
        number = self._number(at)
        if number not in _SCHOOL_YEARS or not self._near("school", at, 2):
            return False
        return self._near("self", at, 6) or self._near("child", at, 6)


@cache
def _beings() -> frozenset[Words]:
    """The phrases that an own age stands behind."""
    return frozenset(
        phrase for phrase, names in _lexicon().phrases.items() if "being_of_age" in names
    )

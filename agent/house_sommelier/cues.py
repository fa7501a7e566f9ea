"""Who should not be offered alcohol, told by classes of words that are heard near each other. Pure.

No sentence is known here: an age beside a child, bottles beside "a day", the name of a medicine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.house_sommelier.data import load
from agent.house_sommelier.lexicon import Token, lexicon
from agent.text import LANGUAGES, fold

_FULL_AGE: Final = 18
_YOUNGEST: Final = 4
_SCHOOL_YEARS: Final = range(3, 14)
_NEAR: Final = 4
_MANY_GLASSES: Final = 4
_LONGEST_AFFIX: Final = 24
_SHORTEST_AFFIX: Final = 3
_COUNTED: Final = frozenset(
    "currency people bottles cases hours clock percent wine hue max_after min_after each".split()
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A care, and the classes that tell of it within so many words of the first."""

    care: str
    all: tuple[str, ...]
    within: int = 0
    negatable: bool = False


@dataclass(frozen=True, slots=True)
class _Cues:
    """The classes of each word, beginning, ending and phrase, and the rules."""

    phrases: Mapping[tuple[str, ...], frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    endings: Mapping[str, frozenset[str]]
    longest: int
    rules: tuple[_Rule, ...]
    numbers: Mapping[str, int]


@cache
def _cues() -> _Cues:
    """The cues, read when the first message comes."""
    file = load("cues")
    phrases: dict[tuple[str, ...], frozenset[str]] = {}
    beginnings: dict[str, frozenset[str]] = {}
    endings: dict[str, frozenset[str]] = {}
    for name, listed in file["classes"].items():
        for word in map(fold, listed.split()):
            plain = word.strip("*_")
            if word.startswith("*"):
                endings[plain] = endings.get(plain, frozenset()) | {name}
            elif word.endswith("*") and "_" not in plain:
                beginnings[plain] = beginnings.get(plain, frozenset()) | {name}
            else:
                key = tuple(plain.split("_"))
                phrases[key] = phrases.get(key, frozenset()) | {name}
    rules = tuple(_Rule(**{**each, "all": tuple(each["all"])}) for each in file["rule"])
    numbers = {
        fold(word.strip()): number
        for code in LANGUAGES
        for number, written in enumerate(load("numbers")["cardinals"][code].split(","), start=2)
        for word in written.split("/")
    }
    return _Cues(phrases, beginnings, endings, max(map(len, phrases)), rules, numbers)


class Cues:
    """The classes that each word of a message belongs to."""

    def __init__(self, words: Sequence[Token]) -> None:
        self._words = [fold(word.written) for word in words]
        self._at: list[frozenset[str]] = [_of_word(word) for word in self._words]
        for at in range(len(self._words)):
            for length in range(1, _cues().longest + 1):
                found = _cues().phrases.get(tuple(self._words[at : at + length]))
                if found:
                    self._at[at] |= found

    def cares(self) -> frozenset[str]:
        """Every reason to offer no alcohol that a message gives."""
        found = {rule.care for rule in _cues().rules if self._holds(rule)}
        found |= {"dependence"} if self._drinks_much() else set()
        found |= {"health"} if self._has_bad_organ() else set()
        found |= {"minor"} if self._is_of_minors() else set()
        return frozenset(found)

    def intolerance(self) -> str:
        """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
        reacts = any(self._has(name) for name in ("intolerant", "severe"))
        if self._has("histamine"):
            return "histamine"
        if self._has("sulphites") and reacts:
            return "sulphites"
        return "severe" if self._has("severe") and self._has("intolerant") else ""

    def _has(self, name: str) -> bool:
        return any(name in names for names in self._at)

    def people(self) -> frozenset[str]:
        """The persons a message names, of those wine may be for."""
        return frozenset(self._words[at] for at in self._places("others"))

    def beneficiaries(self) -> frozenset[str]:
        """The persons that wine is wanted for: "for the others", "per mia moglie"."""
        return frozenset(
            self._words[at]
            for at in self._places("others")
            if at and "beneficiary" in self._at[at - 1]
        )

    def _places(self, name: str) -> Iterator[int]:
        return (at for at, names in enumerate(self._at) if name in names)

    def _near(self, name: str, at: int, within: int, *, after: bool = False) -> bool:
        start = at + 1 if after else max(0, at - within)
        places = range(start, min(len(self._at), at + within + 1))
        return any(name in self._at[each] for each in places if each != at)

    def _holds(self, rule: _Rule) -> bool:
        first, *others = rule.all
        return any(
            all(self._near(name, at, rule.within) for name in others)
            and not (rule.negatable and self._is_denied(at))
            for at in self._places(first)
        )

    def _is_denied(self, at: int) -> bool:
        return any("no" in self._at[each] for each in range(max(0, at - 3), at))

    def _number(self, at: int) -> int | None:
        if not 0 <= at < len(self._words):
            return None
        word = self._words[at]
        return int(word[:4]) if word.isdecimal() else _cues().numbers.get(word)

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
        counted = (self._words[each] for each in range(max(0, at - 3), at))
        singles = "a one eine einer ne une un una een n half halbe demi media mezza halve couple"
        before = list(counted)
        asked = {"many", "viele", "wieviele", "combien", "cuantas", "quante", "hoeveel", "sell"}
        amount = any(word.isdecimal() or word in _cues().numbers for word in before)
        return (amount or bool(set(singles.split()) & set(before))) and not asked & set(before)

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
        """An age under 18 with a child: "daughter of 16", "a 16-year-old boy"."""
        number = self._number(at)
        if number is None:
            return self._is_german_age(at)
        if not _YOUNGEST <= number < _FULL_AGE:
            return False
        behind = at + 1
        while behind < len(self._words) and self._words[behind] in ("-", "th", ".", "e"):
            behind += 1
        is_years = behind < len(self._at) and "years" in self._at[behind]
        if is_years and self._near("child", behind, 3, after=True):
            return True
        return self._follows_child(at) and (is_years or not self._counts(behind))

    def _is_german_age(self, at: int) -> bool:
        """ "Sechzehnjährig": a number and "-jährig" in one word."""
        word = self._words[at]
        heads = (word.partition(ending)[0] for ending in ("jahrig", "jarig"))
        return any(
            _YOUNGEST <= _cues().numbers.get(head, 0) < _FULL_AGE for head in heads if head != word
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

    def _counts(self, at: int) -> bool:
        """Whether a word is what a number counts: euros, people, bottles."""
        word = (self._words[at],) if at < len(self._words) else ()
        stems = (word, (word[0].removesuffix("s"),)) if word else ()
        entries = [entry for each in stems for entry in lexicon().phrases.get(each, ())]
        return any(field in _COUNTED for entry in entries for field, _ in entry.meanings)

    def _is_school_year(self, at: int) -> bool:
        number = self._number(at)
        if number not in _SCHOOL_YEARS or not self._near("school", at, 2):
            return False
        return self._near("self", at, 6) or self._near("child", at, 6)


def _of_word(word: str) -> frozenset[str]:
    """The classes of a word by its beginning and its ending."""
    cues = _cues()
    sizes = range(_SHORTEST_AFFIX, min(len(word), _LONGEST_AFFIX) + 1)
    found = (
        part
        for size in sizes
        for part in (cues.beginnings.get(word[:size]), cues.endings.get(word[-size:]))
    )
    return frozenset().union(*filter(None, found))

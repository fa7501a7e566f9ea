"""Who should not be offered alcohol and who needs help, told by what a message says. Pure.

Small lexicons are combined, near each other in a clause: who, which state, since when, denied or
not. The words, the rules that combine them and the idioms that say nothing are in `care.toml`.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict

from agent.text import LANGUAGES, Language, fold, language_of, pattern

Concern = Literal[
    "crisis", "dependence", "under_age", "pregnancy", "medication", "health", "driving"
]
"""Why somebody is offered no alcohol, the gravest first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING: Final[frozenset[Concern]] = frozenset({"crisis", "dependence", "under_age"})
"""Those for which nothing with alcohol is offered; for the others what is without comes first."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes", "histamine"]
Intolerance = Literal["", "histamine", "sulphites", "severe"]

FULL_AGE: Final = 18
LONGEST: Final = 8000
"""Characters of a message that are looked at."""

_YOUNGEST: Final = 4
_SCHOOL_YEARS: Final = range(3, 14)
_NEAR: Final = 4
_WIDE: Final = 6
_DENIED: Final = 3
_BEFORE: Final = 9
_BEHIND: Final = 3
_STOPS: Final = frozenset(".;!?\n")
_LINKED: Final = frozenset({"-", ".", "th", "e", "eme", "er", "o", "a", "st", "nd", "rd"})
_HAVING: Final = ("fr", "es", "it")
_IDIOM: Final = "idiom"
_TELLING: Final = frozenset({"self", "other", "link", "no", "taking", "beneficiary", "may", "giving", "wish"})
_SPARED: Final[frozenset[Concern]] = frozenset(CONCERNS) - {"crisis"}
_MANY_GLASSES: Final = 4
_LONGEST_AFFIX: Final = 24
_SHORTEST_AFFIX: Final = 3
_REMEMBERED: Final = 8192
_TOKEN: Final = pattern(r"[0-9]+|[^\W\d_]+|[.,;:!?()/\n-]")

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
    language: Language | None = None

    @property
    def is_crisis(self) -> bool:
        """Whether help comes before everything else."""
        return "crisis" in self.own

    @property
    def forbids_alcohol(self) -> bool:
        """Whether who writes is offered nothing with alcohol at all."""
        return bool(self.own & FORBIDDING)

    @property
    def is_cautious(self) -> bool:
        """Whether who writes is offered what is without alcohol first."""
        return bool(self.own) and not self.forbids_alcohol

    @property
    def gravest(self) -> Concern | None:
        """The gravest concern, whoever it is about; None without one."""
        return next((each for each in CONCERNS if each in self.own | self.others), None)


NO_CARE: Final = Care()


def care_of(text: str, full_age: int = FULL_AGE) -> Care:
    """Read what `text`, a message in any supported language, tells of who should not drink.

    `full_age` is the age in years from which wine is offered.
    """
    return _Reading(_Message(text[:LONGEST]), full_age).care()


class _Rule(BaseModel):
    """A concern, and the classes that tell of it within so many words of the first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concern: Concern
    all: tuple[str, ...]
    within: int = 0
    negatable: bool = False


class _File(BaseModel):
    """What `care.toml` holds; `numbers` are the words from two to eighteen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: tuple[_Rule, ...]
    spelt: dict[str, str]
    idioms: dict[str, str]
    numbers: dict[Language, str]
    classes: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """What each phrase, beginning and ending of words belongs to, and the rules.

    A class is named alone and with its language: "self" and "en:self".
    """

    rules: tuple[_Rule, ...]
    spelt: Mapping[Words, Words]
    phrases: Mapping[Words, frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    endings: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]
    longest: Mapping[str, int]
    """How many words the longest phrase has that begins with a word."""


@cache
def _lexicon() -> _Lexicon:
    """The lexicon, read when the first message comes.

    Raises:
        ValidationError: the file is not as it must be.
    """
    written = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    file = _File.model_validate(written)
    phrases: dict[Words, frozenset[str]] = {}
    beginnings: dict[str, frozenset[str]] = {}
    endings: dict[str, frozenset[str]] = {}
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
        elif word.endswith("*") and "_" not in plain:
            beginnings[plain] = beginnings.get(plain, frozenset()) | names
        else:
            key = tuple(plain.split("_"))
            phrases[key] = phrases.get(key, frozenset()) | names
    longest: dict[str, int] = {}
    for key in phrases:
        longest[key[0]] = max(longest.get(key[0], 0), len(key))
    numbers = {
        word: number
        for words in file.numbers.values()
        for number, word in enumerate(words.split(), start=2)
    }
    spelt = {tuple(key.split("_")): tuple(value.split()) for key, value in file.spelt.items()}
    return _Lexicon(file.rule, spelt, phrases, beginnings, endings, numbers, longest)


def _languages(language: str) -> Iterable[str]:
    return LANGUAGES if language == "any" else (language,)


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
        length = next((n for n in (2, 1) if tuple(words[at : at + n]) in spelt), 0)
        yield from spelt[tuple(words[at : at + length])] if length else (words[at],)
        at += length or 1


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Words that belong to classes, from `start` to before `end`."""

    start: int
    end: int
    names: frozenset[str]


class _Message:
    """The words of a message, and the classes of the phrases that begin and end at each."""

    def __init__(self, text: str) -> None:
        self.words = list(_spelt_out(_TOKEN.findall(fold(text))))
        found = list(self._phrases())
        idioms = {at for each in found if _IDIOM in each.names for at in range(each.start, each.end)}
        self._begins: list[list[_Phrase]] = [[] for _ in self.words]
        self._until: list[frozenset[str]] = [frozenset()] * len(self.words)
        for each in found:
            if idioms.isdisjoint(range(each.start, each.end)):
                self._begins[each.start].append(each)
                self._until[each.end - 1] |= each.names
        self._at = [frozenset[str]().union(*(each.names for each in at)) for at in self._begins]
        self.said = frozenset[str]().union(*self._at)
        self._sentence = self._sentences()
        self.language = language_of(text) or self._likely_language()

    def _phrases(self) -> Iterator[_Phrase]:
        lexicon = _lexicon()
        for at, word in enumerate(self.words):
            if names := _by_affix(word):
                yield _Phrase(at, at + 1, names)
            longest = min(lexicon.longest.get(word, 0), len(self.words) - at)
            for length in range(1, longest + 1):
                found = lexicon.phrases.get(tuple(self.words[at : at + length]))
                if found:
                    yield _Phrase(at, at + length, found)

    def _sentences(self) -> list[int]:
        """The number of the sentence that each word stands in."""
        numbers, number = [], 0
        for at, word in enumerate(self.words):
            number += word in _STOPS and not (word == "." and self.words[at - 1].isdecimal())
            numbers.append(number)
        return numbers

    def _likely_language(self) -> Language | None:
        """The language that most words of classes are of; None without any, or if two have as many."""
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

    def phrases(self, name: str) -> Iterator[_Phrase]:
        """The phrases of a class."""
        if name in self.said:
            yield from (each for at in self._begins for each in at if name in each.names)

    def is_near(self, name: str, at: int, within: int) -> bool:
        """Whether another phrase of a class begins within so many words, in the same sentence."""
        places = range(max(0, at - within), min(len(self._at), at + within + 1))
        return any(
            name in self._at[each]
            for each in places
            if each != at and self._sentence[each] == self._sentence[at]
        )

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
        return int(word[:4]) if word.isdecimal() else _lexicon().numbers.get(word)

    def is_about_other(self, start: int, end: int) -> bool:
        """Whether a phrase is said of somebody else than who writes: the nearest person decides.

        Those before it come first ("my wife is pregnant"), then those behind ("a pregnant friend").
        """
        selves, others = self.own("self"), self.own("other")
        behind = takewhile(lambda at: self.words[at] != ",", range(end, min(len(self.words), end + _BEHIND)))
        for at in (*range(start, end), *range(start - 1, max(-1, start - _BEFORE), -1), *behind):
            if self._sentence[at] == self._sentence[start] and self.is_at(at, selves, others):
                return self.is_at(at, others)
        return False


@dataclass(slots=True)
class _Found:
    """The concerns of who writes, and of others."""

    own: set[Concern] = field(default_factory=set)
    others: set[Concern] = field(default_factory=set)

    def add(self, concern: Concern, *, is_other: bool) -> None:
        """Take in a concern."""
        (self.others if is_other else self.own).add(concern)

class _Reading:
    """What a message tells, read from its phrases."""

    def __init__(self, message: _Message, full_age: int) -> None:
        self._message = message
        self._full_age = full_age

    def care(self) -> Care:
        """Everything that the message tells."""
        message, found = self._message, _Found()
        for concern, start, end in self._told():
            found.add(concern, is_other=message.is_about_other(start, end))
        for at in range(len(message.words)):
            if (is_other := self._is_age(at)) is not None:
                found.add("under_age", is_other=is_other)
        if self._is_for_minors():
            found.add("under_age", is_other=True)
        if message.said & {"ours", "spared"}:
            found.others -= _SPARED
        return Care(
            own=frozenset(found.own),
            others=frozenset(found.others - found.own),
            allergies=frozenset({"grapes"}) if self._reacts_to_grapes() else frozenset(),
            intolerance=self._intolerance(),
            has_drunk="drunk" in message.said,
            people=frozenset(message.words[at] for at in message.places("others")),
            beneficiaries=frozenset(
                message.words[at]
                for at in message.places("others")
                if message.is_at(at - 1, "beneficiary")
            ),
            language=message.language,
        )

    def _told(self) -> Iterator[tuple[Concern, int, int]]:
        """Every concern that rules and amounts tell of, and the words that are said of somebody."""
        for rule in _lexicon().rules:
            for language in LANGUAGES:
                yield from ((rule.concern, *span) for span in self._held(rule, language))
        message = self._message
        yield from (("dependence", at, at + 1) for at in self._heavy_drinking())
        for at in message.places("organ"):
            if message.is_near("illness", at, _WIDE) and not message.is_before("no", at, _DENIED):
                yield "health", at, at + 1
        for each in message.phrases("abstains"):
            if not any(message.is_at(each.end + on, "drunk_kind") for on in range(_DENIED)):
                yield "health", each.start, each.end

    def _held(self, rule: _Rule, language: Language) -> Iterator[tuple[int, int]]:
        """Where a rule holds in a language: the first class of it, with all others near."""
        first, *others = (f"{language}:{name}" for name in rule.all)
        message = self._message
        if not message.said.issuperset((first, *others)):
            return
        for each in message.phrases(first):
            near = all(message.is_near(name, each.start, rule.within) for name in others)
            if near and not (rule.negatable and self._is_denied(each)):
                yield each.start, each.end

    def _is_denied(self, phrase: _Phrase) -> bool:
        """Whether "not" or "was" stands before a phrase, or "last year" near it."""
        message = self._message
        return message.is_before("no", phrase.start, _DENIED) or message.is_near(
            message.own("past"), phrase.start, _DENIED
        )

    def _heavy_drinking(self) -> Iterator[int]:
        """Where bottles a day are named, or four glasses and more."""
        message = self._message
        for at in message.places("measure"):
            if message.is_near("per_day", at, _NEAR) and self._is_amount(at):
                yield at
        for at in message.places("glass"):
            number = message.number(at - 1) or 0
            if number >= _MANY_GLASSES and message.is_near("per_day", at, _NEAR):
                yield at

    def _is_amount(self, at: int) -> bool:
        """Whether a number or an article counts the bottles, no "how many"."""
        message, before = self._message, range(max(0, at - 3), at)
        amount = any(
            message.is_at(each, "single") or message.number(each) is not None for each in before
        )
        return amount and not any(message.is_at(each, "how_many") for each in before)

    def _is_for_minors(self) -> bool:
        """Whether wine is for the young: "for the kids", "teenagers", "Sekt zum Anstoßen"."""
        message = self._message
        if any(not message.is_before("no", at, _DENIED) for at in message.places("youth")):
            return True
        return any(
            any(message.is_at(each, "giving") for each in range(max(0, at - 2), at))
            or message.is_near("drinks_along", at, _NEAR)
            for at in message.places("kids")
        )

    def _is_age(self, at: int) -> bool | None:
        """Whether a number is an age below the legal one, of another or of who writes; None if not.

        "Daughter of 16", "a 16-year-old boy", "I am 16", "not 18 yet", "in 10th grade".
        """
        message, number = self._message, self._message.number(at)
        if number is None:
            return True if self._is_compound_age(at) else None
        if message.is_at(at, "years"):
            return None
        if number in _SCHOOL_YEARS and self._is_school_year(at):
            return message.is_about_other(at, at + 1)
        if number <= self._full_age and self._is_not_yet(at):
            return message.is_about_other(at, at + 1)
        if not _YOUNGEST <= number < self._full_age:
            return None
        behind = self._behind(at)
        is_years = message.is_at(behind, "years") and not self._is_span(behind)
        if is_years and any(message.is_at(behind + on, message.own("child")) for on in range(1, 4)):
            return True
        if message.is_at(behind, "counted", "currency"):
            return None
        if (is_beside := self._follows_child(at)) is not None:
            return True if is_years or not is_beside or self._ends(behind) else None
        return False if self._is_own(at, is_years=is_years) else None

    def _behind(self, at: int) -> int:
        """The word behind a number: "16-year", "16th", "16e"."""
        behind = at + 1
        while behind < len(self._message.words) and self._message.words[behind] in _LINKED:
            behind += 1
        return behind

    def _is_span(self, at: int) -> bool:
        """Whether years are how long something lasts: "17 years married"."""
        return any(self._message.is_at(at + on, "married") for on in range(1, 4))

    def _is_own(self, at: int, *, is_years: bool) -> bool:
        """Whether a number stands behind "I am", or behind "j'ai" and before years or nothing more."""
        message, links = self._message, at - 1
        while links > 0 and message.is_at(links, "link") and not message.ends_at(links, "being"):
            links -= 1
        if not message.ends_at(links, "being") or self._is_span(at):
            return False
        has = any(message.ends_at(links, f"{language}:being") for language in _HAVING)
        return is_years or not has or self._ends(at + 1)

    def _ends(self, at: int) -> bool:
        """Whether nothing that could be counted stands at a place."""
        words = self._message.words
        return at >= len(words) or words[at] in _STOPS or self._message.is_at(at, "link", "may", "wish", "drinks_along")

    def _is_not_yet(self, at: int) -> bool:
        """Whether a number stands behind "not", as an age: "not 18 till march", "under 16 may I"."""
        message = self._message
        if message.is_at(at + 1, "currency", "counted") or self._full_age - (message.number(at) or 0) > 2:
            return False
        if not message.ends_at(at - 1, "not_yet"):
            return False
        return message.is_near("may", at, _WIDE) or (
            message.number(at) == self._full_age and message.is_before("no", at, _DENIED)
        )

    def _is_compound_age(self, at: int) -> bool:
        """ "Sechzehnjährig": a number and "-jährig" in one word."""
        word = self._message.words[at]
        heads = (word.partition(ending)[0] for ending in ("jahrig", "jarig"))
        numbers = _lexicon().numbers
        return any(
            _YOUNGEST <= numbers.get(head, 0) < self._full_age for head in heads if head != word
        )

    def _follows_child(self, at: int) -> bool | None:
        """Whether a number stands behind a child over a comma, or over words that link; else None."""
        message, commas = self._message, 0
        for before in range(at - 1, max(-1, at - 7), -1):
            commas += message.words[before] == ","
            if message.is_at(before, message.own("child")):
                return commas > 0
            if not message.is_at(before, "link", "years") and message.number(before) is None:
                return None
        return None

    def _is_school_year(self, at: int) -> bool:
        """Whether a number is that of a grade that who writes, or a child, is in."""
        message = self._message
        if not message.is_near("school", at, 4):
            return False
        return message.ends_at(at - 1, "in_school") or message.is_before(message.own("child"), at, _WIDE)

    def _intolerance(self) -> Intolerance:
        """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
        said = self._message.said
        if "histamine" in said:
            return "histamine"
        if "sulphites" in said and said & {"intolerant", "severe"}:
            return "sulphites"
        return "severe" if {"severe", "intolerant"} <= said else ""

    def _reacts_to_grapes(self) -> bool:
        said = self._message.said
        return "grapes" in said or ("grape" in said and bool(said & {"reaction", "intolerant"}))

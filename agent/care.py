"""Who should not be offered alcohol and who needs help, told by what a message says. Pure.

Small lexicons are combined, near each other in a clause: who, which state, since when, denied or
not. What no lexicon holds is told by a classifier that was fitted to labelled sentences.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, cast, get_args

from agent.care_words import STOPS, Message, Phrase, Rule, lexicon
from agent.classifier import classifier
from agent.text import LANGUAGES, Language, sentences

Concern = Literal[
    "crisis", "dependence", "under_age", "pregnancy", "medication", "health", "driving"
]
"""Why somebody is offered no alcohol, the gravest first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING: Final[frozenset[Concern]] = frozenset({"crisis", "dependence", "under_age"})
"""Those for which nothing with alcohol is offered; for the others what is without comes first."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes", "histamine"]
ALLERGIES: Final[tuple[Allergy, ...]] = get_args(Allergy)
Intolerance = Literal["", "histamine", "sulphites", "severe"]

FULL_AGE: Final = 18
LONGEST: Final = 4096
"""Characters of a message that are looked at."""

CARE_CLASSIFIER: Final = Path(__file__).with_name("care.bin")
_LIKELY: Final[Mapping[Concern, float]] = {
    "crisis": 0.8,
    "dependence": 0.8,
    "under_age": 0.8,
    "pregnancy": 0.8,
    "medication": 0.8,
    "driving": 0.8,
}
"""From which likelihood on the classifier is believed."""
_FEWEST: Final = 4
"""Words of a text that the classifier is asked about."""

_YOUNGEST: Final = 4
_SCHOOL_YEARS: Final = range(3, 14)
_NEAR: Final = 4
_WIDE: Final = 6
_DENIED: Final = 3
_NEARLY: Final = 2
_TEENS: Final = 12
_LINKED: Final = frozenset({"-", ".", "th", "e", "eme", "er", "o", "a", "st", "nd", "rd"})
_HAVING: Final = ("fr", "es", "it")
_SPARED: Final[frozenset[Concern]] = frozenset(CONCERNS) - {"crisis"}
_MANY_GLASSES: Final = 4


def gravest(concerns: Collection[Concern]) -> Concern | None:
    """Return the gravest of some concerns; None of none."""
    return next((each for each in CONCERNS if each in concerns), None)


@dataclass(frozen=True, slots=True)
class Care:
    """What a message tells of those who should not be offered alcohol.

    `own` is said of who writes, `others` of somebody else whom wine may be for. `allergies` are
    what is not to be offered. `people` are the persons it names, `beneficiaries` those of them that
    wine is wanted for. `held` is what was known before of who writes, who may do so `in_group`.
    """

    own: frozenset[Concern] = frozenset()
    others: frozenset[Concern] = frozenset()
    allergies: frozenset[Allergy] = frozenset()
    intolerance: Intolerance = ""
    has_drunk: bool = False
    people: frozenset[str] = frozenset()
    beneficiaries: frozenset[str] = frozenset()
    language: Language | None = None
    held: frozenset[Concern] = frozenset()
    in_group: bool = False

    @property
    def all(self) -> frozenset[Concern]:
        """Every concern, whoever it is about and whenever it was told."""
        return self.own | self.others | self.held

    @property
    def is_crisis(self) -> bool:
        """Whether this very message tells of a crisis: help comes before everything else."""
        return "crisis" in self.own | self.others

    @property
    def forbids_alcohol(self) -> bool:
        """Whether nothing with alcohol is offered at all."""
        return bool(self.all & FORBIDDING)

    @property
    def is_cautious(self) -> bool:
        """Whether what is without alcohol comes first, unless wine is wanted for somebody else."""
        is_told, is_held = bool(self.own | self.others), bool(self.held) and not self.beneficiaries
        return (is_told or is_held) and not self.forbids_alcohol

    @property
    def gravest(self) -> Concern | None:
        """The gravest concern; None without one."""
        return gravest(self.all)

    @property
    def news(self) -> Concern | None:
        """The gravest concern that was not known before; None without one."""
        return gravest((self.own | self.others) - self.held)

    @property
    def kept(self) -> frozenset[str]:
        """What is to be remembered of who writes, as names for `holding`."""
        return self.own | self.held | self.allergies

    def adding(self, concern: Concern) -> "Care":
        """Return the same with a concern that a model heard, of who writes if nobody is named."""
        known = self.own | self.others if concern == "crisis" else self.all
        if concern in known:
            return self
        if self.people:
            return replace(self, others=self.others | {concern})
        return replace(self, own=self.own | {concern})

    def holding(self, names: Iterable[str]) -> "Care":
        """Return the same with what is remembered of who writes; unknown names are left out."""
        known = frozenset(names)
        held = frozenset(each for each in CONCERNS if each in known)
        allergies = frozenset(each for each in ALLERGIES if each in known)
        return replace(self, held=self.held | held, allergies=self.allergies | allergies)


NO_CARE: Final = Care()


def care_of(text: str, full_age: int = FULL_AGE) -> Care:
    """Read what `text`, a message in any supported language, tells of who should not drink.

    `full_age` is the age in years from which wine is offered.
    """
    message = Message(text[:LONGEST])
    care, told = _Reading(message, full_age).care(), likely_concerns(text[:LONGEST])
    if full_age < FULL_AGE:
        told -= {"under_age"}
    if known := care.own | care.others:
        told &= {"crisis"} - known
    if not told:
        return care
    if message.is_about_other(0, len(message.words)):
        return replace(care, others=care.others | (told - care.own))
    return replace(care, own=care.own | told, others=care.others - told)


def care_of_rules(text: str) -> Care:
    """Read the same by the lexicons alone."""
    return _Reading(Message(text[:LONGEST]), FULL_AGE).care()


def likely_concerns(text: str) -> frozenset[Concern]:
    """Return what the classifier is sure enough of, in a text or in one of its sentences."""
    model, told = classifier(CARE_CLASSIFIER), set[Concern]()
    for each in {text, *sentences(text)}:
        if each.count(" ") + 1 < _FEWEST:
            continue
        likely = model.likelihoods(each)
        told |= {concern for concern, least in _LIKELY.items() if likely[concern] >= least}
    return frozenset(told)


def care_in_talk(said: Sequence[str], full_age: int = FULL_AGE) -> Care:
    """Read the last of a person's messages, with what the ones before told of them."""
    *before, last = (care_of(text, full_age) for text in said)
    return last.holding(name for care in before for name in care.kept)


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

    def __init__(self, message: Message, full_age: int) -> None:
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
            allergies=frozenset(self._allergies()),
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
        for rule in lexicon().rules:
            for language in LANGUAGES:
                yield from (
                    (cast("Concern", rule.concern), *span) for span in self._held(rule, language)
                )
        message = self._message
        yield from (("dependence", at, at + 1) for at in self._heavy_drinking())
        for at in message.places("organ"):
            if message.is_near("illness", at, _WIDE) and not message.is_before("no", at, _DENIED):
                yield "health", at, at + 1
        for each in message.phrases("abstains"):
            if not any(message.is_at(each.end + on, "drunk_kind") for on in range(_DENIED)):
                yield "health", each.start, each.end

    def _held(self, rule: Rule, language: Language) -> Iterator[tuple[int, int]]:
        """Where a rule holds in a language: the first class of it, with all others near."""
        first, *others = (f"{language}:{name}" for name in rule.all)
        message = self._message
        if not message.said.issuperset((first, *others)):
            return
        for each in message.phrases(first):
            near = all(
                message.is_near(name, each.start, rule.within, across=rule.across)
                for name in others
            )
            out = any(
                message.is_in_sentence(f"{language}:{name}", each.start) for name in rule.unless
            )
            if near and not out and not (rule.negatable and self._is_denied(each)):
                yield each.start, each.end

    def _is_denied(self, phrase: Phrase) -> bool:
        """Whether "not" or "was" stands before a phrase, or "last year" near it."""
        message = self._message
        return message.is_before("no", phrase.start, _DENIED) or message.is_near(
            message.own("past"), phrase.start, _DENIED
        )

    def _heavy_drinking(self) -> Iterator[int]:
        """Where bottles a day are named, or four glasses and more."""
        message = self._message
        for at in message.places("measure"):
            if self._is_daily(at) and self._is_amount(at):
                yield at
        for at in message.places("glass"):
            number = message.number(at - 1) or 0
            if number >= _MANY_GLASSES and self._is_daily(at):
                yield at

    def _is_daily(self, at: int) -> bool:
        """Whether "a day" stands near, and not "for each day"."""
        message = self._message
        return any(
            message.is_at(day, "per_day") and not message.is_at(day - 1, "giving")
            for day in range(at - _NEAR, at + _NEAR + 1)
        )

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
        is_grade = number in _SCHOOL_YEARS and self._is_school_year(at)
        if is_grade or self._is_not_yet(at, number):
            return message.is_about_other(at, at + 1)
        if not _YOUNGEST <= number < self._full_age or message.is_at(at, "years"):
            return None
        return self._whose_age(at)

    def _whose_age(self, at: int) -> bool | None:
        """Whether a number is the age of another, or of who writes; None if it is no age."""
        message, behind = self._message, self._behind(at)
        is_years = message.is_at(behind, "years") and not self._is_span(behind)
        if is_years and message.is_at(behind + 1, "here"):
            return False
        if is_years and any(message.is_at(behind + on, message.own("child")) for on in (1, 2, 3)):
            return True
        if is_years and any(message.is_at(behind + on, "drinks_along", "wish") for on in (1, 2)):
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
        """Whether a number stands behind "I am", or between "j'ai" and years or nothing more."""
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
        return (
            at >= len(words)
            or words[at] in STOPS
            or self._message.is_at(at, "link", "may", "wish", "drinks_along")
        )

    def _is_not_yet(self, at: int, number: int) -> bool:
        """Whether a number is an age that is not reached: "not 18 yet", "may I at 15"."""
        message = self._message
        counted = ("currency", "counted")
        if message.is_at(self._behind(at), *counted) or message.is_near("currency", at, _NEAR):
            return False
        may = message.is_near("may", at, _WIDE)
        if message.ends_at(at - 1, "not_yet") and 0 <= self._full_age - number <= _NEARLY:
            denied = number == self._full_age and message.is_before("no", at, _DENIED)
            return may or denied
        return may and _TEENS <= number < self._full_age and message.ends_at(at - 1, "at_age")

    def _is_compound_age(self, at: int) -> bool:
        """ "Sechzehnjährig": a number and "-jährig" in one word."""
        word = self._message.words[at]
        heads = (word.partition(ending)[0] for ending in ("jahrig", "jarig"))
        numbers = lexicon().numbers
        return any(
            _YOUNGEST <= numbers.get(head, 0) < self._full_age for head in heads if head != word
        )

    def _follows_child(self, at: int) -> bool | None:
        """Whether a number stands behind a child over a comma, or over links; else None."""
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
        return message.ends_at(at - 1, "in_school") or message.is_before(
            message.own("child"), at, _WIDE
        )

    def _intolerance(self) -> Intolerance:
        """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
        said = self._message.said
        if "histamine" in said:
            return "histamine"
        if "sulphites" in said and said & {"intolerant", "severe"}:
            return "sulphites"
        return "severe" if {"severe", "intolerant"} <= said else ""

    def _allergies(self) -> Iterator[Allergy]:
        """What somebody is said to be allergic to."""
        message = self._message
        for allergy in ALLERGIES:
            if any(message.is_near("intolerant", at, _WIDE) for at in message.places(allergy)):
                yield allergy
        if "grape_allergy" in message.said or {"grapes", "reaction"} <= message.said:
            yield "grapes"

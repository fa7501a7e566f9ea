"""Who should not be offered alcohol and who needs help, told by what a message says. Pure.

A classifier that was fitted to labelled messages tells the concern and whose it is; what some words
leave no doubt of is told by patterns.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, cast, get_args

from agent.care_words import Message
from agent.classifier import classifier

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
"""Tells a concern, or none."""
WHOSE_CLASSIFIER: Final = Path(__file__).with_name("care_whose.bin")
"""Tells whether a concern is of who writes or of somebody else."""
LANGUAGE_CLASSIFIER: Final = Path(__file__).with_name("care_language.bin")
"""Tells the language of a short message, so that help is said in it."""
LEAST: Final = 0.6
"""From which likelihood on there is a concern, whichever."""
LEAST_OF_EACH: Final = 0.25
"""From which likelihood on a concern is told beside a likelier one."""
LEAST_OF_OTHERS: Final = 0.3
"""From which likelihood on a concern is of somebody else."""
LEAST_OF_LANGUAGE: Final = 0.5
NEAR: Final = 6
"""Words between what somebody reacts to and the reaction."""


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
    language: str = ""
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
    own, others = set[Concern](), set[Concern]()
    language = ""
    for found in message.windows(full_age):
        if concerns := frozenset(_concerns(found)):
            whose = classifier(WHOSE_CLASSIFIER).likelihoods_of(found)
            (others if whose["other"] >= LEAST_OF_OTHERS else own).update(concerns)
        language = language or _language(found)
    certain = {cast("Concern", each) for each in message.certain(full_age)}
    own |= certain - (others & {"crisis"})
    return Care(
        own=frozenset(own),
        others=frozenset(others - own),
        allergies=frozenset(_allergies(message)),
        intolerance=_intolerance(message),
        has_drunk=message.has("drunk"),
        people=message.people(),
        beneficiaries=message.people(behind="beneficiary"),
        language=language,
    )


def _concerns(found: Collection[int]) -> Iterator[Concern]:
    """What the classifier is sure enough of."""
    likely = classifier(CARE_CLASSIFIER).likelihoods_of(found)
    if 1 - likely["none"] >= LEAST:
        best = max(CONCERNS, key=likely.__getitem__)
        yield from (each for each in CONCERNS if each == best or likely[each] >= LEAST_OF_EACH)


def _language(found: Collection[int]) -> str:
    """The language that is likely; empty if none is."""
    likely = classifier(LANGUAGE_CLASSIFIER).likelihoods_of(found)
    best = max(likely, key=likely.__getitem__)
    return best if likely[best] >= LEAST_OF_LANGUAGE else ""


def _intolerance(message: Message) -> Intolerance:
    """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
    if message.has("histamine"):
        return "histamine"
    if message.has("sulphites") and (message.has("intolerant") or message.has("severe")):
        return "sulphites"
    return "severe" if message.has("severe") and message.has("intolerant") else ""


def _allergies(message: Message) -> Iterator[Allergy]:
    """What somebody is said to be allergic to."""
    yield from (each for each in ALLERGIES if message.is_near(each, "intolerant", NEAR))
    if message.has("grape_allergy") or (message.has("grapes") and message.has("reaction")):
        yield "grapes"


def care_in_talk(said: Sequence[str], full_age: int = FULL_AGE) -> Care:
    """Read the last of a person's messages, with what the ones before told of them."""
    *before, last = (care_of(text, full_age) for text in said)
    return last.holding(name for care in before for name in care.kept)

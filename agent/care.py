"""Tell who should be offered no alcohol, who is allergic, and where help is to be had. Pure.

The phrases of `care_phrases.toml`, which do not occur in ordinary talk, are the first of three
layers, and the only one without a model. The model adds the concerns that it notices, and every
search is narrowed for them; neither removes a concern that is found here. Notices and help lines
are in `care_help.toml`; an admin's own file replaces any of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter

from agent.i18n import current_language
from agent.language import DetectedLanguage
from agent.tables import StrictModel, WordSet, read_toml
from agent.text import Match, Pattern, fold, pattern

Concern = Literal["crisis", "dependence", "under_age", "pregnancy", "medication", "driving"]
"""Why somebody is offered no alcohol, the gravest first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING: Final[frozenset[Concern]] = frozenset(
    {"crisis", "dependence", "under_age", "pregnancy"}
)
"""Concerns that forbid alcohol; for all others alcohol-free wines come first."""
RETRACTABLE: Final[frozenset[Concern]] = frozenset(CONCERNS) - {"dependence", "under_age"}
"""Concerns that the button "I was misunderstood" removes."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes"]
ALLERGIES: Final[tuple[Allergy, ...]] = get_args(Allergy)

DRINKING_AGE: Final = 18
YOUNGEST: Final = 8
"""From how many years on a number may be the age of somebody who writes."""
MAX_CHARS: Final = 4096
MAX_HELP_CHARS: Final = 2_000
"""The longest sentence or help line of an admin; a longer one fills a message of Telegram."""
FORWARDED_HEADER: Final = "[forwarded, written by somebody else]"
"""The line above a forwarded message: for models, and no word of the sender."""
_TOKEN: Final = pattern(r"[0-9]+|\p{L}+|[.,!?;:\n]")
_I_AM: Final = "(?:i am|i m|im)"


@dataclass(frozen=True, slots=True)
class SafetyState:
    """The concerns of a person, and their allergies.

    `stated` are the concerns of this turn: those that the message states, and those that a model
    added; `remembered` are those of earlier turns. `own_allergies` are allergies that the message
    states in the first person: only these are stored. `language` is that of the phrase that states
    the gravest concern.
    """

    stated: frozenset[Concern] = frozenset()
    remembered: frozenset[Concern] = frozenset()
    allergies: frozenset[Allergy] = frozenset()
    own_allergies: frozenset[Allergy] = frozenset()
    language: str = ""

    @property
    def concerns(self) -> frozenset[Concern]:
        """Return every concern, whenever it was stated."""
        return self.stated | self.remembered

    @property
    def is_crisis(self) -> bool:
        """Return whether the message states a crisis: then the reply is help, and nothing else."""
        return "crisis" in self.stated

    @property
    def forbids_alcohol(self) -> bool:
        """Return whether no wine with alcohol may be offered."""
        return bool(self.concerns & FORBIDDING)

    @property
    def forbids_look_ups(self) -> bool:
        """Return whether no documents or places may be looked up either."""
        return bool(self.concerns & FORBIDDING - {"pregnancy"})

    @property
    def prefers_alcohol_free(self) -> bool:
        """Return whether wines without alcohol come first."""
        return bool(self.concerns) and not self.forbids_alcohol

    @property
    def new_concern(self) -> Concern | None:
        """Return the gravest concern that was not known before this turn, or None."""
        return gravest_concern(self.stated - self.remembered)

    def with_concern(self, concern: Concern) -> "SafetyState":
        """Return the care with a concern that a model noticed added to those of this turn."""
        known = self.stated if concern == "crisis" else self.concerns
        return self if concern in known else replace(self, stated=self.stated | {concern})

    def with_remembered(self, names: Iterable[str]) -> "SafetyState":
        """Return the care with concerns and allergies of earlier turns; ignore unknown names."""
        names = frozenset(names)
        remembered = self.remembered | {concern for concern in CONCERNS if concern in names}
        allergies = self.allergies | {allergy for allergy in ALLERGIES if allergy in names}
        return replace(self, remembered=remembered, allergies=allergies)


NO_CONCERNS: Final = SafetyState()


def gravest_concern(concerns: Collection[Concern]) -> Concern | None:
    """Return the gravest of some concerns, None if there are none."""
    return next((concern for concern in CONCERNS if concern in concerns), None)


def read_safety_state(text: str, drinking_age: int = DRINKING_AGE) -> SafetyState:
    """Return the concerns and allergies that a message states; `drinking_age` is the legal age."""
    phrases = _phrases()
    tokens = " ".join(_TOKEN.findall(fold(text[:MAX_CHARS].replace(FORWARDED_HEADER, ""))))
    clauses = f" . {tokens} . "
    found = {
        concern: language
        for concern, language, phrase in phrases.patterns
        for match in phrase.finditer(clauses)
        if not match["denied"] and (concern != "under_age" or _is_minor(match, drinking_age))
    }
    allergies = {
        allergy: bool(match["first"])
        for allergy, allergic in phrases.allergy_patterns.items()
        for match in allergic.finditer(clauses)
        if phrases.denials.isdisjoint(match[0].split())
    }
    return SafetyState(
        stated=frozenset(found),
        allergies=frozenset(allergies),
        own_allergies=frozenset(allergy for allergy, is_own in allergies.items() if is_own),
        language=next(iter(found.values()), ""),
    )


def read_conversation_safety(
    messages: Iterable[str], drinking_age: int = DRINKING_AGE
) -> SafetyState:
    """Return the care of a person's last message, with the concerns of those before it."""
    care = NO_CONCERNS
    for text in messages:
        care = read_safety_state(text, drinking_age).with_remembered(care.concerns | care.allergies)
    return care


def _is_minor(match: Match, drinking_age: int) -> bool:
    """Return whether the age of a match, if it names one, is below the legal age."""
    named = [int(word) for word in match[0].split() if word.isdecimal() and len(word) <= 2]
    named += [age for word, age in _phrases().ages.items() if f" {word} " in match[0]]
    return not named or any(YOUNGEST <= age < drinking_age for age in named)


class _Phrases(StrictModel):
    """The content of `care_phrases.toml`: words that count everywhere, and the phrases."""

    fillers: WordSet
    clauses: WordSet
    numbers: str
    denials: WordSet
    allergies: dict[Allergy | Literal["allergic", "first"], str]
    concerns: dict[Concern, dict[DetectedLanguage, list[str]]]

    @cached_property
    def ages(self) -> Mapping[str, int]:
        """Return the numbers that are written as words, from eight to twenty."""
        return {
            word.replace("_", " "): number
            for line in self.numbers.strip().splitlines()
            for number, word in enumerate(line.split(), start=YOUNGEST)
        }

    @cached_property
    def patterns(self) -> Sequence[tuple[Concern, DetectedLanguage, Pattern]]:
        """Return a pattern for each concern and language, the gravest concern first."""
        denied = f"(?P<denied> (?:{_any(self.denials)}))?"
        return [
            (concern, language, pattern(f"{denied} (?:{_any(map(self._expanded, phrases))}) "))
            for concern in CONCERNS
            for language, phrases in self.concerns[concern].items()
        ]

    def _expanded(self, phrase: str) -> str:
        """Return a phrase as a pattern; the file tells what its signs stand for."""
        mark, ends = "[.,!?;:\n]", _any(self.clauses)
        signs = {
            ".. ": "..",
            "..": r"(?:\w+ ){0,3}",
            "~": f"(?:(?:{_any(self.fillers)}) ){{0,2}}",
            "{end}": f"(?:{mark}|{ends})",
            "{next}": f"(?:{ends})",
            "{start}": f"{mark} ",
            "{age}": f"(?:[0-9]{{1,2}}|{_any(self.ages)})",
            "{im}": _I_AM,
        }
        for sign, source in signs.items():
            phrase = phrase.replace(sign, source)
        return phrase

    @cached_property
    def allergy_patterns(self) -> Mapping[Allergy, Pattern]:
        """Return a pattern for each allergen."""
        first = self.allergies["first"].replace("{im}", _I_AM)
        before = rf" (?:(?:(?P<first>{first})|{_any(self.denials)}) (?:\w+ ){{0,2}}?)?"
        told = self.allergies["allergic"]
        return {
            name: pattern(rf"{before}(?:(?:{told}) (?:\w+ ){{0,3}}?(?:{of})|(?:{of}) ?(?:{told})) ")
            for name, of in ((name, self.allergies[name]) for name in ALLERGIES)
        }


def _any(words: Iterable[str]) -> str:
    """Return the source of a pattern that matches any of these."""
    return "|".join(sorted(words))


@cache
def _phrases() -> _Phrases:
    return read_toml(_Phrases, Path(__file__).with_name("care_phrases.toml"))


def _with_lines(text: str) -> str:
    if "{lines}" not in text:
        raise ValueError("crisis must hold {lines}: where help is to be had")
    return text


Sentence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_HELP_CHARS)
]


class HelpTexts(StrictModel):
    """The sentences of one language, and its help lines by country (ISO 3166) or `any`."""

    crisis: Annotated[Sentence, AfterValidator(_with_lines)]
    after_crisis: Sentence
    dependence: Sentence
    under_age: Sentence
    pregnancy: Sentence
    medication: Sentence
    driving: Sentence
    lines: Annotated[Mapping[str, Sentence], Field(min_length=1)]


@cache
def read_help_texts(file: Path | None = None) -> Mapping[str, HelpTexts]:
    """Return the sentences of every language; those in `file` replace ours.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no TOML, or not of the form of `care_help.toml`.
    """
    ours = Path(__file__).with_name("care_help.toml")
    texts = read_toml(dict[str, dict[str, Any]], ours)
    for language, own in (read_toml(dict[str, Any], file) if file else {}).items():
        if language not in texts or not isinstance(own, dict):
            raise ValueError(f"{language} is none of the languages {', '.join(texts)}")
        texts[language] |= own
    return TypeAdapter(dict[str, HelpTexts]).validate_python(texts)


@dataclass(frozen=True, slots=True)
class Help:
    """The texts of care, and the legal age."""

    drinking_age: int = DRINKING_AGE
    texts: Mapping[str, HelpTexts] = field(default_factory=read_help_texts)

    def crisis_help(self, care: SafetyState) -> str:
        """Return where help is to be had, as Markdown."""
        texts = self._texts_for(care)
        lines = "\n".join(f"- {line}" for line in texts.lines.values())
        return texts.crisis.replace("{lines}", lines)

    def notice_for(self, care: SafetyState) -> str:
        """Return the notice why no alcohol is offered, or comes last; empty without a concern."""
        concern = care.new_concern or gravest_concern(care.concerns)
        if concern is None:
            return ""
        # A crisis that was told before is not spoken of again.
        name = "after_crisis" if concern == "crisis" else concern
        text: str = getattr(self._texts_for(care), name)
        return text.replace("{age}", str(self.drinking_age))

    def _texts_for(self, care: SafetyState) -> HelpTexts:
        return self.texts.get(care.language or current_language(), self.texts["en"])

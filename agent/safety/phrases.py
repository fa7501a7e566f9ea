"""Find phrases of each language's `safety.toml`, which certainly state a concern or allergy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agent.languages import read_language_files
from agent.safety.state import ALLERGIES, CONCERNS, Allergy, Concern
from agent.tables import StrictModel, WordSet, read_toml
from agent.text import Match, Pattern, pattern

PHRASES_FILE: Final = "safety.toml"
MEDICINES_FILE: Final = Path(__file__).with_name("medicines.toml")
FIRST_NUMBER_WORD: Final = 8
"""The first number in the lists of number words. Smaller numbers are not read as an age."""
MAX_AGE_DIGITS: Final = 2
"""A longer number is no age."""
_I_AM: Final = "(?:i am|i m|im)"


AllergyWords = Allergy | Literal["allergic", "first_person"]
"""The keys of the words in which an allergy is stated."""


class StatedConcern(NamedTuple):
    """A concern that a phrase states, and the language of the phrase."""

    concern: Concern
    language: str


class StatedAllergy(NamedTuple):
    """An allergy that a phrase states. `is_own` says that the phrase is in the first person."""

    allergy: Allergy
    is_own: bool


def find_concerns(normalized: str, drinking_age: int) -> list[StatedConcern]:
    """Return the concerns that phrases state, the most serious first."""
    phrases = _load_phrases()
    # "I want to die, this cheese is so good" praises the cheese.
    is_praise = phrases.praise_pattern.search(normalized) is not None
    stated: list[StatedConcern] = []
    for concern, language, phrase in phrases.patterns:
        if concern == "crisis" and is_praise:
            continue
        for match in phrase.finditer(normalized):
            if match["denied"]:
                continue
            if concern == "under_age" and not _is_minor(match, drinking_age):
                continue
            stated.append(StatedConcern(concern, language))
    return stated


def find_allergies(normalized: str) -> Iterator[StatedAllergy]:
    """Yield the allergies that phrases state."""
    phrases = _load_phrases()
    for allergy, allergy_pattern in phrases.allergy_patterns.items():
        for match in allergy_pattern.finditer(normalized):
            words = match[0].split()
            # A denial can be anywhere in an allergy phrase, but only before a concern's phrase.
            if phrases.denials.isdisjoint(words):
                is_own = bool(match["first_person"])
                yield StatedAllergy(allergy, is_own)


def asks_for_numbers(normalized: str) -> bool:
    """Return whether the text asks whom to call in an emergency."""
    question = _load_phrases().number_pattern.search(normalized)
    return question is not None


def declines_drinks(normalized: str) -> bool:
    """Return whether the text says that the user does not want to talk about drinks."""
    statement = _load_phrases().declining_pattern.search(normalized)
    return statement is not None


def goes_on_with_emergency(normalized: str) -> bool:
    """Return whether a text after a crisis says that the user is alone or has taken something."""
    statement = _load_phrases().emergency_pattern.search(normalized)
    return statement is not None


def _is_minor(match: Match, drinking_age: int) -> bool:
    """Return whether a matched phrase names an age below the legal one, or no age."""
    ages: list[int] = []
    for word in match[0].split():
        may_be_age = word.isdecimal() and len(word) <= MAX_AGE_DIGITS
        if may_be_age:
            ages.append(int(word))
    ages_by_words = _load_phrases().ages
    for words, age in ages_by_words.items():
        if f" {words} " in match[0]:
            ages.append(age)
    if not ages:
        return True
    return any(FIRST_NUMBER_WORD <= age < drinking_age for age in ages)


class SafetyPhrases(StrictModel):
    """The content of a `safety.toml`: phrases of a language that certainly state something.

    They are matched against normalised text: lower case, without accents, apostrophes as spaces,
    punctuation marks as separate words. Placeholders: `~` is up to two of the `fillers`, `..` up
    to three words of any kind, `{next_clause}` one of the `clause_starts`, `{clause_end}` one of
    these or a punctuation mark, `{clause_start}` a punctuation mark before the phrase, `{age}` a
    number below the legal age, `{im}` "I am", `{medicine}` a name of `medicines.toml`. Ordinary
    messages must not match: "dying to try it", "I'd die for a Barolo", "my sister is pregnant".
    The classifier and the model can add a concern that no phrase states. Every phrase has a test.
    """

    fillers: WordSet = frozenset()
    clause_starts: WordSet = frozenset()
    """Words with which a new clause or a request begins: "what" in "I am 15 what may I"."""
    ages: tuple[str, ...] = ()
    """The numbers from eight to twenty in words, once for each way to say them."""
    denials: WordSet = frozenset()
    """Words that negate a phrase if they stand before it, and an allergy if they stand near it."""
    praise: tuple[str, ...] = ()
    """Praise of food or drink, which makes "I want to die" uncertain."""
    asks_for_numbers: tuple[str, ...] = ()
    """Questions for a number to call in need. "What number is this lot" must not match."""
    declines_drinks: tuple[str, ...] = ()
    """What users say who do not want to talk about drinks. It counts only after a dependence."""
    emergency_goes_on: tuple[str, ...] = ()
    """What users say when an emergency goes on. It counts only after a crisis."""
    concerns: Mapping[Concern, tuple[str, ...]] = {}
    allergies: Mapping[AllergyWords, str] = {}
    """The words for each allergen, for "allergic", and for "I" as the subject."""


@dataclass(frozen=True)
class _Phrases:
    """The phrases of all languages, by code, English first."""

    languages: Mapping[str, SafetyPhrases]

    def _unite(self, name: str) -> list[str]:
        """Return the words or phrases of all languages in a field of `SafetyPhrases`."""
        united: list[str] = []
        for phrases in self.languages.values():
            united += getattr(phrases, name)
        return united

    @cached_property
    def denials(self) -> frozenset[str]:
        """Return the words that negate a phrase."""
        return frozenset(self._unite("denials"))

    @cached_property
    def ages(self) -> Mapping[str, int]:
        """Return the numbers from eight to twenty, by their words in each language."""
        ages: dict[str, int] = {}
        for line in self._unite("ages"):
            words = line.split()
            for number, word in enumerate(words, start=FIRST_NUMBER_WORD):
                spaced_word = word.replace("_", " ")
                ages[spaced_word] = number
        return ages

    @cached_property
    def patterns(self) -> Sequence[tuple[Concern, str, Pattern]]:
        """Return a pattern for each concern and language, the most serious concern first."""
        denied = f"(?P<denied> (?:{_match_any(self.denials)}))?"
        patterns: list[tuple[Concern, str, Pattern]] = []
        for concern in CONCERNS:
            for language, content in self.languages.items():
                phrases = content.concerns.get(concern)
                if not phrases:
                    continue
                expanded = map(self._expand, phrases)
                stated = _match_any(expanded)
                concern_pattern = pattern(f"{denied} (?:{stated}) ")
                patterns.append((concern, language, concern_pattern))
        return patterns

    @cached_property
    def praise_pattern(self) -> Pattern:
        """Return a pattern of words that praise what is eaten or drunk."""
        return self._make_pattern("praise")

    @cached_property
    def number_pattern(self) -> Pattern:
        """Return a pattern of questions for numbers to call, in all languages."""
        return self._make_pattern("asks_for_numbers")

    @cached_property
    def declining_pattern(self) -> Pattern:
        """Return a pattern of what is said by users who do not want to talk about drinks."""
        return self._make_pattern("declines_drinks")

    @cached_property
    def emergency_pattern(self) -> Pattern:
        """Return a pattern of what is said when an emergency goes on, in all languages."""
        return self._make_pattern("emergency_goes_on")

    def _make_pattern(self, name: str) -> Pattern:
        """Return a pattern of the phrases of all languages in a field of `SafetyPhrases`."""
        phrases = map(self._expand, self._unite(name))
        return pattern(f" (?:{_match_any(phrases)}) ")

    def _expand(self, phrase: str) -> str:
        """Return a phrase as a pattern. `SafetyPhrases` explains the placeholders."""
        punctuation = "[.,!?;:\n]"
        next_clause = _match_any(self._unite("clause_starts"))
        fillers = _match_any(self._unite("fillers"))
        ages = _match_any(self.ages)
        medicines = _match_any(_load_medicine_stems())
        placeholders = {
            ".. ": "..",  # replaced first, because otherwise two spaces would be left
            "..": r"(?:\w+ ){0,3}",
            "~": f"(?:(?:{fillers}) ){{0,2}}",
            "{clause_end}": f"(?:{punctuation}|{next_clause})",
            "{next_clause}": f"(?:{next_clause})",
            "{clause_start}": f"{punctuation} ",
            "{age}": f"(?:[0-9]{{1,2}}|{ages})",
            "{im}": _I_AM,
            "{medicine}": rf"(?:{medicines})\w{{0,3}}",
        }
        for placeholder, source in placeholders.items():
            phrase = phrase.replace(placeholder, source)
        return phrase

    @cached_property
    def allergy_patterns(self) -> Mapping[Allergy, Pattern]:
        """Return a pattern for each allergen: "allergic to eggs", "egg allergy"."""
        i_am = self._unite_allergy_words("first_person").replace("{im}", _I_AM)
        denials = _match_any(self.denials)
        subject = rf"(?:(?P<first_person>{i_am})|{denials}) (?:\w+ ){{0,2}}?"
        allergic = f"(?:{self._unite_allergy_words('allergic')})"
        patterns: dict[Allergy, Pattern] = {}
        for allergy in ALLERGIES:
            allergen = f"(?:{self._unite_allergy_words(allergy)})"
            allergic_to = rf"{allergic} (?:\w+ ){{0,3}}?{allergen}"
            phrase = f"{allergic_to}|{allergen} ?{allergic}"
            patterns[allergy] = pattern(f" (?:{subject})?(?:{phrase}) ")
        return patterns

    def _unite_allergy_words(self, name: AllergyWords) -> str:
        """Return the words of all languages for an allergen as the source of a pattern."""
        sources = []
        for phrases in self.languages.values():
            source = phrases.allergies.get(name, "")
            if source:
                sources.append(source)
        return "|".join(sources)


def _match_any(words: Iterable[str]) -> str:
    """Return the source of a pattern that matches any of the words."""
    distinct_words = sorted(set(words))
    return "|".join(distinct_words)


@cache
def _load_medicine_stems() -> frozenset[str]:
    content = read_toml(dict[str, WordSet], MEDICINES_FILE)
    return content["names"]


@cache
def _load_phrases() -> _Phrases:
    phrases_by_language = read_language_files(SafetyPhrases, PHRASES_FILE)
    return _Phrases(phrases_by_language)

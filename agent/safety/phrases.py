"""Find phrases that certainly state a concern or an allergy, by the patterns of `phrases.toml`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agent.safety.state import ALLERGIES, CONCERNS, Allergy, Concern
from agent.tables import StrictModel, WordSet, read_toml
from agent.text import Match, Pattern, pattern

FIRST_NUMBER_WORD: Final = 8
"""The first number in the lists of number words; smaller numbers are not taken as an age."""
_I_AM: Final = "(?:i am|i m|im)"


class StatedConcern(NamedTuple):
    """A concern that a phrase states, and the language of the phrase."""

    concern: Concern
    language: str


class StatedAllergy(NamedTuple):
    """An allergy that a phrase states; `is_own` if it does so in the first person."""

    allergy: Allergy
    is_own: bool


def find_concerns(normalized: str, drinking_age: int) -> list[StatedConcern]:
    """Return the concerns that phrases state, the most serious first."""
    phrases = _phrases()
    # "I want to die, this cheese is so good" praises the cheese.
    is_praise = phrases.praise_pattern.search(normalized) is not None
    found = list[StatedConcern]()
    for concern, language, phrase in phrases.patterns:
        if concern == "crisis" and is_praise:
            continue
        for match in phrase.finditer(normalized):
            is_of_age = concern == "under_age" and not _is_minor(match, drinking_age)
            if not match["denied"] and not is_of_age:
                found.append(StatedConcern(concern, language))
    return found


def find_allergies(normalized: str) -> Iterator[StatedAllergy]:
    """Yield the allergies that phrases state."""
    phrases = _phrases()
    for allergy, allergy_pattern in phrases.allergy_patterns.items():
        for match in allergy_pattern.finditer(normalized):
            # A denial can be anywhere in an allergy phrase, but only before a concern's phrase.
            if phrases.denials.isdisjoint(match[0].split()):
                yield StatedAllergy(allergy, is_own=bool(match["first_person"]))


def asks_for_numbers(normalized: str) -> bool:
    """Return whether the text asks whom to call in an emergency."""
    return _phrases().number_pattern.search(normalized) is not None


def goes_on_with_emergency(normalized: str) -> bool:
    """Return whether the text, after a crisis, says that nobody is there or what was taken."""
    return _phrases().emergency_pattern.search(normalized) is not None


def _is_minor(match: Match, drinking_age: int) -> bool:
    """Return whether a matched phrase names an age below the legal one, or no age."""
    ages = [int(word) for word in match[0].split() if word.isdecimal() and len(word) <= 2]
    ages += [age for word, age in _phrases().ages.items() if f" {word} " in match[0]]
    return not ages or any(FIRST_NUMBER_WORD <= age < drinking_age for age in ages)


class _Phrases(StrictModel):
    """The content of `phrases.toml`: words shared by all phrases, and the phrases."""

    fillers: WordSet
    clause_starts: WordSet
    numbers: str
    denials: WordSet
    praise: list[str]
    allergies: dict[Allergy | Literal["allergic", "first_person"], str]
    """Patterns: the words for each allergen, for "allergic", and for "I" as the subject."""
    concerns: dict[Concern, dict[str, list[str]]]
    asks_for_numbers: dict[str, list[str]]
    emergency_goes_on: dict[str, list[str]]

    @cached_property
    def ages(self) -> Mapping[str, int]:
        """Return the numbers from eight to twenty, by their words in each language."""
        return {
            word.replace("_", " "): number
            for line in self.numbers.strip().splitlines()
            for number, word in enumerate(line.split(), start=FIRST_NUMBER_WORD)
        }

    @cached_property
    def patterns(self) -> Sequence[tuple[Concern, str, Pattern]]:
        """Return a pattern for each concern and language, the most serious concern first."""
        denied = f"(?P<denied> (?:{_any(self.denials)}))?"
        return [
            (concern, language, pattern(f"{denied} (?:{_any(map(self._expand, phrases))}) "))
            for concern in CONCERNS
            for language, phrases in self.concerns[concern].items()
        ]

    @cached_property
    def praise_pattern(self) -> Pattern:
        """Return a pattern of words that praise what is eaten or drunk."""
        return pattern(f" (?:{_any(self.praise)}) ")

    @cached_property
    def number_pattern(self) -> Pattern:
        """Return a pattern of questions for numbers to call, in all languages."""
        return self._pattern_of(self.asks_for_numbers)

    @cached_property
    def emergency_pattern(self) -> Pattern:
        """Return a pattern of what is said when an emergency goes on, in all languages."""
        return self._pattern_of(self.emergency_goes_on)

    def _pattern_of(self, phrases_by_language: Mapping[str, list[str]]) -> Pattern:
        phrases = chain.from_iterable(phrases_by_language.values())
        return pattern(f" (?:{_any(map(self._expand, phrases))}) ")

    def _expand(self, phrase: str) -> str:
        """Return a phrase as a pattern; `phrases.toml` explains its placeholders."""
        punctuation = "[.,!?;:\n]"
        next_clause = _any(self.clause_starts)
        placeholders = {
            ".. ": "..",  # replace first, else two spaces result
            "..": r"(?:\w+ ){0,3}",
            "~": f"(?:(?:{_any(self.fillers)}) ){{0,2}}",
            "{clause_end}": f"(?:{punctuation}|{next_clause})",
            "{next_clause}": f"(?:{next_clause})",
            "{clause_start}": f"{punctuation} ",
            "{age}": f"(?:[0-9]{{1,2}}|{_any(self.ages)})",
            "{im}": _I_AM,
        }
        for placeholder, source in placeholders.items():
            phrase = phrase.replace(placeholder, source)
        return phrase

    @cached_property
    def allergy_patterns(self) -> Mapping[Allergy, Pattern]:
        """Return a pattern for each allergen: "allergic to eggs", "egg allergy"."""
        first_person = self.allergies["first_person"].replace("{im}", _I_AM)
        subject = rf"(?:(?P<first_person>{first_person})|{_any(self.denials)}) (?:\w+ ){{0,2}}?"
        allergic = f"(?:{self.allergies['allergic']})"

        def build_pattern(allergen: str) -> Pattern:
            phrase = rf"{allergic} (?:\w+ ){{0,3}}?(?:{allergen})|(?:{allergen}) ?{allergic}"
            return pattern(f" (?:{subject})?(?:{phrase}) ")

        return {allergy: build_pattern(self.allergies[allergy]) for allergy in ALLERGIES}


def _any(words: Iterable[str]) -> str:
    """Return the source of a pattern that matches any of the words."""
    return "|".join(sorted(words))


@cache
def _phrases() -> _Phrases:
    return read_toml(_Phrases, Path(__file__).with_suffix(".toml"))

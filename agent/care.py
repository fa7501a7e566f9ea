"""Detect users who should not drink alcohol, and allergies; write notices and help texts. No I/O.

Three layers protect a user. First, a message is matched against the phrases of `care_phrases.toml`,
which do not occur in ordinary messages; this needs no model. Second, the model adds the concerns
that it detects. Third, every search is restricted accordingly. Neither can remove a concern found
by phrases. Notices and help lines are in `care_help.toml`; an admin's file can replace them.
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
"""The reasons not to offer alcohol, the most serious first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING_CONCERNS: Final[frozenset[Concern]] = frozenset(
    {"crisis", "dependence", "under_age", "pregnancy"}
)
"""Concerns that forbid alcohol. Other concerns only put alcohol-free wines first."""
RETRACTABLE_CONCERNS: Final[frozenset[Concern]] = frozenset(CONCERNS) - {"dependence", "under_age"}
"""Concerns that the button "I was misunderstood" removes."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes"]
ALLERGIES: Final[tuple[Allergy, ...]] = get_args(Allergy)

DRINKING_AGE: Final = 18
FIRST_NUMBER_WORD: Final = 8
"""The first number in the lists of number words; smaller numbers are not taken as an age."""
MAX_SCANNED_CHARS: Final = 4096
"""Only these first characters of a message are scanned."""
MAX_HELP_CHARS: Final = 2_000
"""The maximum length of a help text or help line, so that all fit into one Telegram message."""
FORWARDED_HEADER: Final = "[forwarded, written by somebody else]"
"""The line that the bot puts above a forwarded message, for the model."""
_TOKEN: Final = pattern(r"[0-9]+|\p{L}+|[.,!?;:\n]")
_I_AM: Final = "(?:i am|i m|im)"


@dataclass(frozen=True, slots=True)
class SafetyState:
    """The concerns and allergies that a user stated."""

    turn_concerns: frozenset[Concern] = frozenset()
    """Concerns that this turn's message states, or that the model detected in it."""
    earlier_concerns: frozenset[Concern] = frozenset()
    """Stored concerns of earlier turns."""
    allergies: frozenset[Allergy] = frozenset()
    """All allergies that are stored or stated; other people's allergies too."""
    own_allergies: frozenset[Allergy] = frozenset()
    """Allergies that the message states in the first person; only these are stored."""
    language: str = ""
    """The language of the phrase that states the most serious concern."""

    @property
    def concerns(self) -> frozenset[Concern]:
        """Return the concerns of this turn and of earlier ones."""
        return self.turn_concerns | self.earlier_concerns

    @property
    def is_crisis(self) -> bool:
        """Return whether this turn reveals a crisis, so that the reply is only help."""
        return "crisis" in self.turn_concerns

    @property
    def forbids_alcohol(self) -> bool:
        """Return whether no wine with alcohol may be offered."""
        return bool(self.concerns & FORBIDDING_CONCERNS)

    @property
    def forbids_look_ups(self) -> bool:
        """Return whether look-ups are also forbidden (pregnancy permits them)."""
        return bool(self.concerns & (FORBIDDING_CONCERNS - {"pregnancy"}))

    @property
    def prefers_alcohol_free(self) -> bool:
        """Return whether alcohol-free wines are offered first."""
        return bool(self.concerns) and not self.forbids_alcohol

    @property
    def new_concern(self) -> Concern | None:
        """Return the most serious concern of this turn that is not an earlier one, or None."""
        return most_serious_concern(self.turn_concerns - self.earlier_concerns)

    def with_concern(self, concern: Concern) -> "SafetyState":
        """Return the state with a concern that the model detected in this turn."""
        # Answer every crisis, even after an earlier one.
        current = self.turn_concerns if concern == "crisis" else self.concerns
        if concern in current:
            return self
        return replace(self, turn_concerns=self.turn_concerns | {concern})

    def with_stored_names(self, names: Collection[str]) -> "SafetyState":
        """Return the state with the stored concerns and allergies; ignore unknown names."""
        earlier = self.earlier_concerns | {concern for concern in CONCERNS if concern in names}
        allergies = self.allergies | {allergy for allergy in ALLERGIES if allergy in names}
        return replace(self, earlier_concerns=earlier, allergies=allergies)


EMPTY_SAFETY_STATE: Final = SafetyState()


def most_serious_concern(concerns: Collection[Concern]) -> Concern | None:
    """Return the most serious of the concerns, or None if there are none."""
    return next((concern for concern in CONCERNS if concern in concerns), None)


def read_safety_state(text: str, drinking_age: int = DRINKING_AGE) -> SafetyState:
    """Return the concerns and allergies that a message states; `drinking_age` is the legal age."""
    phrases = _phrases()
    tokens = " ".join(_TOKEN.findall(fold(text[:MAX_SCANNED_CHARS].replace(FORWARDED_HEADER, ""))))
    # Pad with full stops so patterns match at both ends.
    padded_text = f" . {tokens} . "
    language_by_concern = {
        concern: language
        for concern, language, phrase in phrases.patterns
        for match in phrase.finditer(padded_text)
        if not match["denied"] and (concern != "under_age" or _is_minor(match, drinking_age))
    }
    allergies = [
        (allergy, bool(match["first_person"]))
        for allergy, allergy_pattern in phrases.allergy_patterns.items()
        for match in allergy_pattern.finditer(padded_text)
        # A denial can be anywhere in an allergy phrase, but only before a concern's phrase.
        if phrases.denials.isdisjoint(match[0].split())
    ]
    return SafetyState(
        turn_concerns=frozenset(language_by_concern),
        allergies=frozenset(allergy for allergy, _ in allergies),
        own_allergies=frozenset(allergy for allergy, is_own in allergies if is_own),
        # The first key is the most serious concern.
        language=next(iter(language_by_concern.values()), ""),
    )


def read_conversation_safety(
    messages: Iterable[str], drinking_age: int = DRINKING_AGE
) -> SafetyState:
    """Return the safety state after the last of a user's messages, in order of time."""
    state = EMPTY_SAFETY_STATE
    for text in messages:
        earlier_names = state.concerns | state.allergies
        state = read_safety_state(text, drinking_age).with_stored_names(earlier_names)
    return state


def _is_minor(match: Match, drinking_age: int) -> bool:
    """Return whether a matched phrase names an age below the legal one, or no age."""
    ages = [int(word) for word in match[0].split() if word.isdecimal() and len(word) <= 2]
    ages += [age for word, age in _phrases().ages.items() if f" {word} " in match[0]]
    return not ages or any(FIRST_NUMBER_WORD <= age < drinking_age for age in ages)


class _Phrases(StrictModel):
    """The content of `care_phrases.toml`: words shared by all phrases, and the phrases."""

    fillers: WordSet
    clause_starts: WordSet
    numbers: str
    denials: WordSet
    allergies: dict[Allergy | Literal["allergic", "first_person"], str]
    """Patterns: the words for each allergen, for "allergic", and for "I" as the subject."""
    concerns: dict[Concern, dict[DetectedLanguage, list[str]]]

    @cached_property
    def ages(self) -> Mapping[str, int]:
        """Return the numbers from eight to twenty, by their words in each language."""
        return {
            word.replace("_", " "): number
            for line in self.numbers.strip().splitlines()
            for number, word in enumerate(line.split(), start=FIRST_NUMBER_WORD)
        }

    @cached_property
    def patterns(self) -> Sequence[tuple[Concern, DetectedLanguage, Pattern]]:
        """Return a pattern for each concern and language, the most serious concern first."""
        denied = f"(?P<denied> (?:{_any(self.denials)}))?"
        return [
            (concern, language, pattern(f"{denied} (?:{_any(map(self._expand, phrases))}) "))
            for concern in CONCERNS
            for language, phrases in self.concerns[concern].items()
        ]

    def _expand(self, phrase: str) -> str:
        """Return a phrase as a pattern; `care_phrases.toml` explains its placeholders."""
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
    return read_toml(_Phrases, Path(__file__).with_name("care_phrases.toml"))


def _require_lines_placeholder(text: str) -> str:
    if "{lines}" not in text:
        raise ValueError("crisis must contain {lines}, the place of the help lines")
    return text


HelpText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_HELP_CHARS)
]


class HelpTexts(StrictModel):
    """The texts of one language; `lines` are help lines by country (ISO 3166 code or `any`)."""

    crisis: Annotated[HelpText, AfterValidator(_require_lines_placeholder)]
    after_crisis: HelpText
    dependence: HelpText
    under_age: HelpText
    pregnancy: HelpText
    medication: HelpText
    driving: HelpText
    lines: Annotated[Mapping[str, HelpText], Field(min_length=1)]


@cache
def read_help_texts(file: Path | None = None) -> Mapping[str, HelpTexts]:
    """Return the built-in texts by language; those in the admin's `file` replace them.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not valid TOML, or does not have the form of `care_help.toml`.
    """
    texts = read_toml(dict[str, dict[str, Any]], Path(__file__).with_name("care_help.toml"))
    admin_texts = read_toml(dict[str, Any], file) if file else {}
    for language, replacements in admin_texts.items():
        if language not in texts or not isinstance(replacements, dict):
            raise ValueError(f"{language} is not one of the languages {', '.join(texts)}")
        texts[language] |= replacements
    return TypeAdapter(dict[str, HelpTexts]).validate_python(texts)


@dataclass(frozen=True, slots=True)
class Help:
    """Writes notices and help texts; `drinking_age` is the legal age."""

    drinking_age: int = DRINKING_AGE
    texts: Mapping[str, HelpTexts] = field(default_factory=read_help_texts)

    def crisis_help(self, safety: SafetyState) -> str:
        """Return the text that says where to get help, as Markdown."""
        texts = self._texts_for(safety)
        lines = "\n".join(f"- {line}" for line in texts.lines.values())
        return texts.crisis.replace("{lines}", lines)

    def notice_for(self, safety: SafetyState) -> str:
        """Explain why wine is withheld or offered only after alcohol-free wine; "" if neither."""
        concern = safety.new_concern or most_serious_concern(safety.concerns)
        if concern is None:
            return ""
        # The reply in the turn of a crisis is `crisis_help`; later notices do not mention it.
        name = "after_crisis" if concern == "crisis" else concern
        text: str = getattr(self._texts_for(safety), name)
        return text.replace("{age}", str(self.drinking_age))

    def _texts_for(self, safety: SafetyState) -> HelpTexts:
        return self.texts.get(safety.language or current_language(), self.texts["en"])

"""The phrases with which an answer claims what only a source can know, as patterns.

The patterns match folded words between spaces: " we deliver to cork ". The phrases are in the table
`claims` of each language in `languages/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.documents.shop import ANY_ENDING
from agent.i18n import current_language
from agent.languages import Claims, load_languages
from agent.query_reading.phrases import detect_language
from agent.query_reading.tables import load_rows
from agent.sommelier.vocabulary import Allergen
from agent.text import Match, Pattern, fold, pattern, split_words

GAP: Final = "..."
FEW_WORDS: Final = r"(?: \w+){0,5}?"
"""The pattern of what `GAP` stands for."""
FREE_OF: Final = {f"free of {name}": name for name in Allergen}
"""The kinds of claims that a wine lacks an allergen, each with its allergen."""
WORD: Final = pattern(r"[\p{L}\p{N}\p{M}]+")
OPENING_MARKS: Final = "([\"'„“«"
"""The signs before a word that are no part of it."""


def fold_words(text: str) -> str:
    """Return the words of a text, folded and between spaces, as patterns expect them."""
    return f" {' '.join(split_words(text))} "


class WordedText:
    """The words of a text, folded and between spaces, and where each of them is in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: list[Match] = []
        folded_words: list[str] = []
        for match in WORD.finditer(text):
            for word in split_words(match[0]):
                folded_words.append(word)
                self._places.append(match)
        self.folded = f" {' '.join(folded_words)} "

    def quote(self, match: Match) -> str:
        """Return the part of the text in which a pattern matched its folded words.

        The part begins after a space: of "I'll reserve", the pattern may match "ll reserve".
        """
        first = self._find_first(match)
        last = first + len(match[0].split()) - 1
        end = self._places[last].end()
        last_space = self._text.rfind(" ", 0, self._places[first].start())
        return self._text[last_space + 1 : end].lstrip(OPENING_MARKS)

    def cut_before(self, match: Match) -> str:
        """Return the text up to the first word of a match."""
        first = self._find_first(match)
        return self._text[: self._places[first].start()]

    def _find_first(self, match: Match) -> int:
        words_before = self.folded[: match.start()].split()
        return len(words_before)


@dataclass(frozen=True, slots=True)
class ClaimPhrases:
    """The patterns of a language, which match folded words between spaces."""

    by_kind: Mapping[str, Pattern]
    """The patterns by the rows of the table `claims`, and by the kinds of `FREE_OF`."""
    names: Mapping[Allergen, Pattern]
    """The patterns of the names of allergens."""
    asked: Mapping[Allergen, Pattern]
    """The patterns of questions about allergens."""
    counts: Pattern
    """The pattern of a number of bottles, with the group `count`."""

    def has(self, kind: str, text: str) -> bool:
        """Return whether a text has a phrase of this kind."""
        return self.by_kind[kind].search(fold_words(text)) is not None

    def deny(self, text: str) -> bool:
        """Return whether a text has a word of a negation, a doubt or a question."""
        return any(self.has(kind, text) for kind in ("negations", "unsure", "doubts"))


def detect_claim_phrases(sentence: str) -> ClaimPhrases | None:
    """Return the patterns of the language of a sentence, or None if it has no table."""
    return load_claim_phrases().get(detect_language(sentence, current_language()))


@cache
def load_claim_phrases() -> Mapping[str, ClaimPhrases]:
    """Return the patterns of each language that has a table of claims."""
    phrases: dict[str, ClaimPhrases] = {}
    for code, language in load_languages().items():
        if language.claims is not None:
            phrases[code] = _compile_phrases(language.claims, code)
    return phrases


def _compile_phrases(claims: Claims, language: str) -> ClaimPhrases:
    alternatives: dict[str, str] = {}
    for row, phrases in claims.model_dump().items():
        alternatives[row] = f"(?:{_to_alternatives(phrases)})"
    by_kind = {row: pattern(f" {source} ") for row, source in alternatives.items()}
    free_of = alternatives["free_of"]
    asked_of = alternatives["asked"]
    names: dict[Allergen, Pattern] = {}
    asked: dict[Allergen, Pattern] = {}
    for kind, allergen in FREE_OF.items():
        words = ",".join(_list_allergen_words(allergen, language))
        name = f"(?:{_to_alternatives(words)})"
        names[allergen] = pattern(f" {name} ")
        # "without any trace of egg", "egg-free"
        by_kind[kind] = pattern(rf" (?:{free_of}(?: \w+){{0,2}}? {name}|{name} free) ")
        before_name = f"{asked_of}{FEW_WORDS} {name}"
        after_name = f"{name}{FEW_WORDS} {asked_of}"
        asked[allergen] = pattern(f" (?:{before_name}|{after_name}) ")
    # "12 good bottles", "12 in stock"
    counted = rf"(?: \w+)? {alternatives['bottles']}| {alternatives['stock']}"
    counts = pattern(rf" (?P<count>\d+)(?:{counted}) ")
    return ClaimPhrases(by_kind, names, asked, counts)


@cache
def load_bottle_counts() -> Pattern:
    """Return a pattern of a number before a word for bottles: "24 butelki", "24本".

    The pattern matches a text in which number words are digits. Its groups are `count`, and `words`
    for all.
    """
    words: set[str] = set()
    for language in load_languages().values():
        for word in map(fold, language.bottles):
            words.add(word.replace(ANY_ENDING, r"\w*"))
    bottles = "|".join(sorted(words))
    return pattern(rf"(?P<words>(?P<count>\d+)\s?(?:{bottles}))(?:\W|\z)")


def compile_phrases(phrases: str) -> Pattern:
    """Return the pattern of phrases, which commas separate, in folded words."""
    return pattern(f" (?:{_to_alternatives(phrases)}) ")


def _to_alternatives(phrases: str) -> str:
    """Return a pattern of phrases, which commas separate.

    `*` and `...` leave parts of them open.
    """
    parts: list[str] = []
    for phrase in phrases.split(","):
        written = ""
        for word in phrase.split():
            if word == GAP:
                written += FEW_WORDS
                continue
            folded = " ".join(split_words(word))
            written += f" {folded}"
            if word.endswith(ANY_ENDING):
                written += r"\w*"
        parts.append(written.strip())
    return "|".join(parts)


def _list_allergen_words(allergen: Allergen, language: str) -> tuple[str, ...]:
    """Return the words for an allergen in a language."""
    for row in load_rows():
        if row.meanings == {"allergen": (allergen,)}:
            return row.phrases.get(language, ())
    raise LookupError(f"No row of the tables is only the allergen {allergen}.")

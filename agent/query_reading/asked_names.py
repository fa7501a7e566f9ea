"""Read which wine a message asks for by its name: "do you have X?", "X 2018".

The tables of words do not have all names of wines, so this returns the words of a name, to be
looked up in the catalogue. A phrase of the tables has roles, which say what it does in a sentence
("have", "wish"), and fields, which say what it stands for ("grapes", "dish").
"""

from collections.abc import Container, Sequence, Set
from dataclasses import dataclass
from typing import Final

from agent import size_limits
from agent.i18n import country_of_language
from agent.language import all_common_words
from agent.languages import load_languages
from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import (
    Phrase,
    detect_language,
    find_phrases,
    is_foreign_phrase,
)
from agent.query_reading.prices import read_price
from agent.query_reading.tokens import expand_not, tokenize
from agent.text import fold

MAX_BARE_WORDS: Final = 16
"""A longer message that does not ask for stock is not just a name."""
MIN_NAME_LETTERS: Final = 3
YEAR_DIGITS: Final = 4
NAME_FIELDS: Final = frozenset({"grapes", "regions", "countries"})
"""The fields of phrases that are names of wines, or parts of names."""
STOCKED_FIELDS: Final = frozenset({"grapes", "regions"})
"""The fields that name a wine by themselves. "Do you have any from Spain?" is a wish instead."""
SMALL_TALK: Final = frozenset({"ordinary", "small_talk", "wine"})
"""The roles of words that are mostly said around a name, but may also be part of it."""
GRAMMAR_ROLES: Final = frozenset(
    {"have", "wish", "question", "others", "show", "not", "but", "ignore", "allergy"}
)
"""The roles of phrases that are no part of a name. That of prices may be: "Max Ferd. Richter"."""
ROLES_BEYOND_NAMES: Final = GRAMMAR_ROLES - {"wish"}
"""The roles of phrases by which a message is more than a name, unlike "I'd like Cheval Blanc"."""
WISH_FIELDS: Final = frozenset({"order", "usual_max_price"})
"""The fields of phrases that describe a wish rather than a wine."""
FIELDS_OUTSIDE_NAMES: Final = frozenset({"offer", "cellar", "position", "comparison"})
"""The fields of phrases that are no part of a name."""
KIND_FIELDS: Final = frozenset({"colour", "styles"})
"""The fields of phrases for a kind of wine: "a rosé"."""
CLAUSE_MARKS: Final = frozenset(".,:;!?\n")
AMBIGUOUS_FIELDS: Final = frozenset({"dish", "colour", "styles"})
"""The fields of phrases that are also words of names: "Mouton Rothschild", "Cheval Blanc"."""


@dataclass(frozen=True, slots=True)
class AskedName:
    """A wine that is asked for."""

    name: str
    """All words of the message that may be part of its name."""
    core: str
    """The words of `name` that are no small talk, without common words at both ends."""
    unknown: str
    """The words of `core` that are in no table."""
    clauses: tuple[str, ...]
    """The core of each clause or alternative.

    Of "Kanonkop? I had it in Cape Town", the first one is the name.
    """
    asks_for_stock: bool
    """Whether the message asks if there is the wine. Otherwise it only seems to be a name."""
    is_certain: bool
    """Whether this is a name even if the catalogue has no such wine: "Cheval Blanc"."""
    has_dish: bool
    """Whether a word may be a dish instead: "mouton"."""
    is_kind: bool
    """Whether this is a kind of wine that is also the name of some wines, such as "Vin Santo".

    If no wine has this name, the message is a wish.
    """
    offer: str
    """The size or glass that is asked for instead of a bottle, or an empty string."""


def read_asked_name(text: str, default_language: str) -> AskedName | None:
    """Return the wine that a message asks for by its name, or None if it asks for none."""
    text = expand_not(text[: size_limits.MESSAGE_CHARS])
    reader = _NameReader(text, detect_language(text, default_language))
    if reader.describes_wish():
        return None
    return reader.read()


class _NameReader:
    """Reads a name from the tokens and the known phrases of a message."""

    def __init__(self, text: str, language: str) -> None:
        self._language = language
        self._capitalises_nouns = load_languages()[language].capitalises_nouns
        self._tokens = tokenize(text)
        country = country_of_language(language)
        self._phrases = find_phrases(self._tokens, language, country)

    def describes_wish(self) -> bool:
        """Return whether the message has a price, an order, or what a wine is to suit."""
        price = read_price(self._tokens, self._phrases).filters
        if price or self._has_field(WISH_FIELDS):
            return True
        for phrase in self._phrases:
            if phrase.values("dish") and self._is_introduced(phrase):
                return True
            if phrase.has_field(KIND_FIELDS) and self._introduces_occasion(phrase):
                return True
        return False

    def _has_field(self, fields: Set[str]) -> bool:
        return any(phrase.has_field(fields) for phrase in self._phrases)

    def _has_role(self, *roles: str) -> bool:
        return any(phrase.has_role(*roles) for phrase in self._phrases)

    def _asks_to_explain(self) -> bool:
        """Return whether the message asks for a difference or a reason.

        "¿Qué diferencia hay entre …?" has a word for "have you". "Why do you not have Chablis?"
        asks for stock all the same.
        """
        asks_why = self._has_role("why") and not self._has_role("not")
        return asks_why or self._has_role("difference")

    def read(self) -> AskedName | None:
        """Return the name, or None if the message has no words that may be one."""
        asks_for_stock = self._has_role("have") and not self._asks_to_explain()
        if not asks_for_stock and not self._may_be_only_name():
            return None
        name_indices = self._list_name_indices()
        small_talk = self._find_small_talk()
        core = [index for index in name_indices if index not in small_talk]
        core = self._trim(core)
        sure_indices = self._find_sure_names(core)
        unknown = self._list_unknown(core, sure_indices)
        has_kind = self._has_role("kind")
        has_known_name = has_kind or self._has_field(STOCKED_FIELDS)
        asks_for_known_name = asks_for_stock and has_known_name
        if not unknown and not asks_for_known_name:
            return None
        has_estate = bool(unknown) and self._has_role("estate")
        return AskedName(
            name=self._join(name_indices),
            core=self._join(core),
            unknown=self._join(unknown),
            clauses=self._join_clauses(core),
            asks_for_stock=asks_for_stock,
            is_certain=bool(sure_indices) or has_estate or self._has_full_name(unknown),
            has_dish=self._has_dish(),
            is_kind=has_kind and not unknown,
            offer=self._find_offer(),
        )

    def _list_unknown(self, core: Sequence[int], sure: Container[int]) -> list[int]:
        """Return the indices of the words that the tables lack, or that surely are names."""
        unknown: list[int] = []
        for index in core:
            if index in sure or self._is_unknown(index):
                unknown.append(index)
        return unknown

    def _may_be_only_name(self) -> bool:
        """Return whether the message may be only a name: it is short and asks nothing."""
        word_count = sum(token.is_alphanumeric for token in self._tokens)
        return word_count <= MAX_BARE_WORDS and not self._has_role(*ROLES_BEYOND_NAMES)

    def _has_dish(self) -> bool:
        """Return whether a word of the message is a dish.

        A part of a compound word is only a guess.
        """
        whole_words = [phrase for phrase in self._phrases if not phrase.is_compound]
        return any(phrase.values("dish") for phrase in whole_words)

    def _find_offer(self) -> str:
        """Return what the message asks for instead of a bottle, or an empty string."""
        for phrase in self._phrases:
            offers = phrase.values("offer")
            if offers:
                return offers[0]
        return ""

    def _is_introduced(self, phrase: Phrase) -> bool:
        """Return whether a phrase follows a word that introduces a dish: "for lamb"."""
        if phrase.start == 0:
            return False
        return self._tokens[phrase.start - 1].stem in load_grammar().dish_prepositions

    def _introduces_occasion(self, phrase: Phrase) -> bool:
        """Return True for "a rosé for a summer lunch", unlike "Cheval Blanc for my birthday"."""
        is_name = phrase.has_role("name") or phrase.has_field(NAME_FIELDS)
        if is_name or phrase.end >= len(self._tokens):
            return False
        if phrase.start > 0:
            word_before = self._tokens[phrase.start - 1]
            # A word that is not common may be the first one of a name: "Cheval Blanc".
            if fold(word_before.written) not in all_common_words():
                return False
        word_after = self._tokens[phrase.end]
        is_preposition = word_after.stem in load_grammar().dish_prepositions
        return is_preposition and not word_after.is_capitalised

    def _list_name_indices(self) -> list[int]:
        """Return the indices of the words that may be in a name, unlike "have you"."""
        excluded_indices: set[int] = set()
        for phrase in self._phrases:
            if phrase.has_role(*GRAMMAR_ROLES) or phrase.has_field(
                FIELDS_OUTSIDE_NAMES
            ):
                excluded_indices.update(phrase.indices)
        name_indices: list[int] = []
        for index, token in enumerate(self._tokens):
            if token.is_alphanumeric and index not in excluded_indices:
                name_indices.append(index)
        return name_indices

    def _find_small_talk(self) -> set[int]:
        """Return the indices of words such as "please", which may also be in names."""
        indices: set[int] = set()
        for phrase in self._phrases:
            if phrase.has_role(*SMALL_TALK):
                indices.update(phrase.indices)
        return indices

    def _trim(self, core: Sequence[int]) -> list[int]:
        """Return indices without those of common words at both ends: "vom Grafen Neipperg oder".

        A common word with a capital within a sentence stays, because it may belong to the name.
        """
        trimmed = list(core)
        while trimmed and self._is_common(trimmed[0]):
            del trimmed[0]
        while trimmed and self._is_common(trimmed[-1]):
            del trimmed[-1]
        return trimmed

    def _is_common(self, index: int) -> bool:
        """Return whether a word is common. One with a capital is, if a sentence begins with it."""
        token = self._tokens[index]
        begins_sentence = index == 0 or self._tokens[index - 1].written in CLAUSE_MARKS
        if token.is_capitalised and not begins_sentence:
            return False
        return fold(token.written) in all_common_words()

    def _find_sure_names(self, core: Sequence[int]) -> set[int]:
        """Return the indices of words of the tables that are names here, and of those beside them.

        Such a word is a name of the tables ("Miraval"), a place after the word for an estate
        ("château margaux"), or a dish or colour beside an unknown word ("cheval blanc").
        """
        sure: set[int] = set()
        for phrase in self._phrases:
            if phrase.has_role("name"):
                sure.update(phrase.indices)
            if phrase.has_role("estate") and self._names_place(phrase.end):
                sure.update(phrase.indices)
                sure.add(phrase.end)
            if phrase.has_field(AMBIGUOUS_FIELDS):
                sure |= self._find_sure_names_beside(phrase, core)
        return sure

    def _find_sure_names_beside(self, phrase: Phrase, core: Sequence[int]) -> set[int]:
        """Return the indices of a phrase and of the unknown words beside it that make it a name.

        The words make a name in "cheval blanc", because "blanc" is of another language, and in
        "Pichon Baron", because both words have capitals.
        """
        sure: set[int] = set()
        for beside in (phrase.start - 1, phrase.end):
            is_unknown = beside in core and self._is_unknown(beside)
            if is_unknown and self._is_name(phrase, beside):
                sure.update(phrase.indices)
                sure.add(beside)
        return sure

    def _names_place(self, index: int) -> bool:
        """Return whether the word at an index names a place, alone or with other words."""
        phrases = [phrase for phrase in self._phrases if phrase.start == index]
        return any(phrase.values("regions") for phrase in phrases)

    def _has_full_name(self, unknown: Sequence[int]) -> bool:
        """Return whether two adjacent unknown words have capitals, and the message a known name.

        "Bartolo Mascarello Barolo" is a wine, but "Buona Serata" may be anything.
        """
        if self._capitalises_nouns:
            return False
        if not self._has_field(NAME_FIELDS):
            return False
        capitalised: set[int] = set()
        for index in unknown:
            if self._tokens[index].is_capitalised:
                capitalised.add(index)
        return any(index + 1 in capitalised for index in capitalised)

    def _is_name(self, phrase: Phrase, beside: int) -> bool:
        """Return whether a known phrase and the unknown word beside it are a name."""
        if self._tokens[beside].written.isdecimal():
            return False
        words = self._tokens[phrase.start : phrase.end]
        stems = [token.stem for token in words]
        if is_foreign_phrase(stems, self._language):
            return True
        if self._capitalises_nouns:
            return False
        all_words = (self._tokens[beside], *words)
        return all(token.is_capitalised for token in all_words)

    def _is_unknown(self, index: int) -> bool:
        """Return whether a word is in no table and may be part of a name. A year may be, too."""
        for phrase in self._phrases:
            if index in phrase.indices and not phrase.is_compound:
                return False
        written = self._tokens[index].written
        if written.isdecimal():
            return self._is_year(index)
        if len(written) < MIN_NAME_LETTERS:
            return False
        return fold(written) not in all_common_words()

    def _is_year(self, index: int) -> bool:
        written = self._tokens[index].written
        return written.isdecimal() and len(written) == YEAR_DIGITS

    def _join_clauses(self, indices: Sequence[int]) -> tuple[str, ...]:
        """Return the words at these indices for each clause that has any.

        A year belongs to all clauses.
        """
        years = [index for index in indices if self._is_year(index)]
        clauses: list[list[int]] = [[]]
        or_words = load_grammar().or_words
        for index, token in enumerate(self._tokens):
            if token.written in CLAUSE_MARKS or token.stem in or_words:
                clauses.append([])
            elif index in indices and index not in years:
                clauses[-1].append(index)
        filled = filter(None, clauses)
        return tuple(self._join([*clause, *years]) for clause in filled)

    def _join(self, indices: Sequence[int]) -> str:
        return " ".join(self._tokens[index].written for index in indices)

"""Find which of the allergens in a message somebody is allergic to.

What somebody is allergic to stands beside an allergy word ("allergy", "allergic") in its clause. In
"egg allergy. a white for fish" and in "allergic to sulphites, something for fish", the fish is a
dish and not an allergen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.query_reading.exclusions import CLAUSE_ENDS
from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import (
    MAX_DISTANCE,
    Phrase,
    phrases_in,
    stems_between,
)
from agent.query_reading.tokens import Token

LISTING_MARKS: Final = CLAUSE_ENDS | frozenset(":-")
"""The marks that may stand in a clause that only lists allergens."""
WINE_FIELDS: Final = frozenset(
    {
        "styles",
        "colour",
        "grapes",
        "countries",
        "regions",
    }
)
"""The fields of phrases that describe a wine. Such a phrase ends a list of allergens."""


@dataclass(frozen=True, slots=True)
class AllergyReader:
    """Reads the allergies of a message."""

    tokens: Sequence[Token]
    phrases: Sequence[Phrase]
    """The known phrases of the message, from left to right."""
    clauses: Sequence[range]
    """The indices of the tokens of each clause, from left to right."""

    def find_allergens(self) -> list[Phrase]:
        """Return the phrases that name what somebody is allergic to.

        Without an allergy word, there are none. Otherwise allergens that are no dishes
        ("sulphites") always count. If no allergen stands beside an allergy word ("Fish tonight. I
        am allergic to it"), all allergens count that are not introduced as dishes.
        """
        has_allergy_word = any(phrase.has_role("allergy") for phrase in self.phrases)
        if not has_allergy_word:
            return []
        named = {phrase.start for phrase in self._find_named()}
        whole_message = range(len(self.tokens))
        allergens: list[Phrase] = []
        for phrase in self._allergens_in(whole_message):
            is_named = phrase.start in named
            is_dish = bool(phrase.values("dish"))
            may_be_meant = not named and not self._is_introduced_as_dish(phrase)
            if is_named or not is_dish or may_be_meant:
                allergens.append(phrase)
        return allergens

    def _find_named(self) -> list[Phrase]:
        """Return the allergens beside the allergy words of the message."""
        named: list[Phrase] = []
        for clause in self.clauses:
            # A clause may continue the list of the clause before: "Allergic to milk. Also eggs."
            if named and self._only_lists_allergens(clause):
                named += self._allergens_in(clause)
            else:
                named += self._find_in_clause(clause)
        return named

    def _find_in_clause(self, clause: range) -> list[Phrase]:
        """Return the allergens beside the allergy words of a clause.

        The allergens stand before the word ("egg allergy") or after it ("allergic to eggs").
        """
        phrases = phrases_in(self.phrases, clause)
        found: list[Phrase] = []
        for index, allergy_word in enumerate(phrases):
            if not allergy_word.has_role("allergy"):
                continue
            before = phrases[:index][::-1]
            after = phrases[index + 1 :]
            belongs_to_word = False
            if self._is_right_before(allergy_word, before):
                # In "allergic to eggs allergic to fish", the eggs belong to the earlier word.
                belongs_to_word = before[0] not in found
            named: list[Phrase] = []
            if not belongs_to_word:
                named = self._find_beside(allergy_word, after)
            if not named:
                named = self._find_beside(allergy_word, before)
            found += named
        return found

    def _find_beside(
        self, allergy_word: Phrase, candidates: Sequence[Phrase]
    ) -> list[Phrase]:
        """Return the nearest allergen, and the allergens that are listed with it.

        The candidates are the other phrases on one side of the allergy word, the nearest first.
        """
        grammar = load_grammar()
        found: list[Phrase] = []
        nearer = allergy_word
        for phrase in candidates:
            if phrase.has_role("allergy", "wish"):
                break
            if phrase.has_field(WINE_FIELDS):
                break
            if not phrase.values("allergen"):
                continue
            between = stems_between(self.tokens, nearer, phrase)
            if len(between) > MAX_DISTANCE:
                break
            # On the right, a preposition introduces a dish: "egg allergy and a white for fish".
            if grammar.food_prepositions.intersection(between):
                break
            # On the left, the preposition is not between them. The fish is a dish in "a white for
            # fish, egg allergy", and an allergen in "somebody with a fish and egg allergy".
            joining_words = grammar.joining_words.intersection(between)
            is_joined = not between or bool(joining_words)
            if self._is_introduced_as_dish(phrase) and not is_joined:
                break
            found.append(phrase)
            nearer = phrase
        return found

    def _is_right_before(self, allergy_word: Phrase, before: Sequence[Phrase]) -> bool:
        """Return whether an allergen stands right before an allergy word: "egg allergy".

        `before` are the phrases before the word, the nearest first.
        """
        if not before:
            return False
        nearest = before[0]
        is_allergen = bool(nearest.values("allergen"))
        return is_allergen and nearest.end == allergy_word.start

    def _is_introduced_as_dish(self, phrase: Phrase) -> bool:
        """Return whether one of the two words before a phrase introduces it as a dish."""
        first = max(0, phrase.start - 2)
        words_before = self.tokens[first : phrase.start]
        prepositions = load_grammar().food_prepositions
        return any(token.stem in prepositions for token in words_before)

    def _only_lists_allergens(self, clause: range) -> bool:
        allergens = self._allergens_in(clause)
        if not allergens:
            return False
        other_indices = {*clause}
        for phrase in allergens:
            other_indices.difference_update(phrase.indices)
        other_stems = {self.tokens[index].stem for index in other_indices}
        grammar = load_grammar()
        listing_words = grammar.listing_words | grammar.allergy_prepositions
        return other_stems <= listing_words | LISTING_MARKS

    def _allergens_in(self, clause: range) -> list[Phrase]:
        phrases = phrases_in(self.phrases, clause)
        return [phrase for phrase in phrases if phrase.values("allergen")]

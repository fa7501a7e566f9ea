"""Find what a message excludes: "no Merlot or Syrah", "Chardonnay lieber nicht"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import Phrase, phrases_in, stems_between
from agent.query_reading.tokens import Token

EXCLUDABLE_FIELDS: Final = frozenset(
    {
        *("styles", "colours", "colour", "sweetness", "bodies", "tannins", "acidities"),
        *("grapes", "countries", "regions", "text", "max_abv", "dish", "allergen"),
    }
)
"""The fields of phrases that name a property of a wine, a dish or an allergen."""
MAX_DISTANCE: Final = 5
"""The maximum number of tokens between a negation and what it excludes."""
CLAUSE_ENDS: Final = frozenset(".;!?\n()")


def split_clauses(tokens: Sequence[Token], phrases: Sequence[Phrase]) -> list[range]:
    """Return the indices of the tokens of each clause. The word "but" begins a new clause."""
    boundaries = {0, len(tokens)}
    for index, token in enumerate(tokens):
        if token.stem in CLAUSE_ENDS:
            boundaries.add(index + 1)
    for phrase in phrases:
        if phrase.has_role("but"):
            boundaries.add(phrase.start)
    return [range(start, end) for start, end in pairwise(sorted(boundaries))]


@dataclass(frozen=True, slots=True)
class ExclusionReader:
    """Reads the exclusions of a message."""

    tokens: Sequence[Token]
    phrases: Sequence[Phrase]
    """The known phrases of the message, from left to right."""
    clauses: Sequence[range]
    """The indices of the tokens of each clause, from left to right."""

    def find_excluded(self) -> list[Phrase]:
        """Return the phrases that the message excludes.

        A negation excludes the phrases after it ("no Merlot"), or else those before it ("Merlot
        lieber nicht").
        """
        if not any(phrase.has_role("not") for phrase in self.phrases):
            return []
        excluded: list[Phrase] = []
        for clause in self.clauses:
            excluded += self._find_in_clause(clause)
        return excluded

    def _find_in_clause(self, clause: range) -> Iterator[Phrase]:
        phrases = phrases_in(self.phrases, clause)
        for index, phrase in enumerate(phrases):
            if not phrase.has_role("not"):
                continue
            following = phrases[index + 1 :]
            excluded = self._excluded_by(phrase, following)
            if not excluded:
                preceding = phrases[:index][::-1]
                excluded = self._excluded_by(phrase, preceding)
            yield from excluded

    def _excluded_by(
        self, negation: Phrase, candidates: Sequence[Phrase]
    ) -> list[Phrase]:
        """Return the nearest candidate that can be excluded, and those that are joined to it.

        The candidates are the other phrases on one side of the negation, the nearest first.
        """
        excluded: list[Phrase] = []
        for phrase in candidates:
            if not _excludable_fields(phrase):
                # "Do not show me reds" excludes reds. "No reds, show me whites" does not exclude
                # whites: there the negation ends before the wish.
                is_negated = phrase.has_role("wish") and phrase.start == negation.end
                if phrase.has_role("not", "wish") and not is_negated:
                    break
                continue
            if excluded:
                is_excluded = self._are_joined(excluded[-1], phrase)
            else:
                is_excluded = self._is_near(negation, phrase)
            if not is_excluded:
                break
            excluded.append(phrase)
        return excluded

    def _is_near(self, negation: Phrase, phrase: Phrase) -> bool:
        between = stems_between(self.tokens, negation, phrase)
        return len(between) <= MAX_DISTANCE and "," not in between

    def _are_joined(self, first: Phrase, second: Phrase) -> bool:
        """Return whether two phrases are parts of one list: "Merlot or Syrah", "Merlot, Syrah"."""
        between = {*stems_between(self.tokens, first, second)}
        grammar = load_grammar()
        if not between <= grammar.listing_words:
            return False
        if "text" in second.meanings and second.start == first.end:
            return True  # a Romance adjective: "pas de chardonnay boisé"
        if "text" in first.meanings and "grapes" in second.meanings:
            return first.end == second.start  # "no oaky Chardonnay"
        if "grapes" in first.meanings and "text" in second.meanings:
            return second.end == first.start  # "holzigen Chardonnay nicht"
        if not grammar.or_nor_words.isdisjoint(between):
            return True
        shared_fields = _excludable_fields(first) & _excludable_fields(second)
        return bool(shared_fields)


def _excludable_fields(phrase: Phrase) -> frozenset[str]:
    """Return the fields by which a phrase can be excluded. A colour is also a style."""
    fields = EXCLUDABLE_FIELDS & phrase.meanings.keys()
    if "colour" in fields:
        fields |= {"styles"}
    return fields

"""Find what a message excludes: "no Merlot or Syrah", "Chardonnay lieber nicht"."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.query_reading.language_words import load_grammar
from agent.query_reading.phrases import (
    MAX_DISTANCE,
    Phrase,
    phrases_in,
    stems_between,
)
from agent.query_reading.tokens import Token

EXCLUDABLE_FIELDS: Final = frozenset(
    {
        "acidities",
        "allergen",
        "bodies",
        "colour",
        "countries",
        "dish",
        "grapes",
        "max_abv",
        "regions",
        "styles",
        "sweetness",
        "tannins",
        "text",
    }
)
"""The fields of phrases that name a property of a wine, a dish or an allergen.

The field `text` has adjectives of tasting notes, such as "oaky".
"""
ADJECTIVE: Final = "text"
"""The field of adjectives of tasting notes."""
NOUN_FIELDS: Final = frozenset({"colour", "styles", "grapes", "regions", "countries"})
"""The fields of phrases that name a kind of wine, which an adjective may describe."""
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
        has_negation = any(phrase.has_role("not") for phrase in self.phrases)
        if not has_negation:
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
                if _ends_negation(negation, phrase):
                    return excluded
                continue
            if not excluded:
                is_excluded = self._is_near(negation, phrase)
            elif _describes(excluded[-1], phrase):
                # "No oaky Chardonnay" asks for a Chardonnay without oak.
                return excluded
            elif _describes(phrase, excluded[-1]):
                # An adjective may follow its noun: "pas de chardonnay boisé".
                excluded[-1] = phrase
                return excluded
            else:
                is_excluded = self._are_joined(excluded[-1], phrase)
            if not is_excluded:
                return excluded
            excluded.append(phrase)
        return excluded

    def _is_near(self, negation: Phrase, phrase: Phrase) -> bool:
        between = stems_between(self.tokens, negation, phrase)
        return len(between) <= MAX_DISTANCE and "," not in between

    def _are_joined(self, first: Phrase, second: Phrase) -> bool:
        """Return whether two phrases are parts of one excluded list: "Merlot, Syrah".

        `first` is nearer to the negation, on the left of `second` or on the right.
        """
        between = stems_between(self.tokens, first, second)
        grammar = load_grammar()
        if not grammar.listing_words.issuperset(between):
            return False
        fields = {*first.meanings, *second.meanings}
        if {ADJECTIVE, "grapes"} <= fields:
            # An adjective and a grape are not parts of a list: "nothing oaky, a Chardonnay".
            return False
        # With a word like "or", the parts of a list may differ in kind: "no Merlot or sweet wines".
        # Without it, they are of one kind: "no Merlot, Syrah".
        if not grammar.or_nor_words.isdisjoint(between):
            return True
        shared_fields = _excludable_fields(first) & _excludable_fields(second)
        return bool(shared_fields)


def is_described(noun: Phrase, adjectives: Iterable[Phrase]) -> bool:
    """Return whether one of the adjectives describes the noun: "oaky" in "oaky Chardonnay"."""
    return any(_describes(adjective, noun) for adjective in adjectives)


def _describes(adjective: Phrase, noun: Phrase) -> bool:
    """Return whether an adjective stands beside a kind of wine: "oaky Chardonnay"."""
    if ADJECTIVE not in adjective.meanings or not noun.has_field(NOUN_FIELDS):
        return False
    return adjective.end == noun.start or noun.end == adjective.start


def _ends_negation(negation: Phrase, phrase: Phrase) -> bool:
    """Return whether a negation excludes nothing beyond a phrase, such as another negation.

    A wish ends it too: "No reds, show me whites" does not exclude whites. But "Do not show me reds"
    excludes reds, because the wish itself is negated.
    """
    if phrase.has_role("wish"):
        return phrase.start != negation.end
    return phrase.has_role("not")


def _excludable_fields(phrase: Phrase) -> frozenset[str]:
    """Return the fields by which a phrase can be excluded. A colour can also be a style."""
    fields = EXCLUDABLE_FIELDS & phrase.meanings.keys()
    if "colour" in fields:
        fields |= {"styles"}
    return fields

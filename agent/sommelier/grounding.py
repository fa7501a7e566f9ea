"""Hold the figures of a model's words to evidence: amounts of money, vintages, scores, strengths.

Each must be a fact of a wine that a tool found, be in another source that one returned or in an
earlier answer, or be the user's own; a strength is held to the wines that a text names. Sums,
differences and multiples of prices follow from them, a year from a vintage and a span. Questions
pass. No other word of a model is judged.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from typing import Final

from agent.engine.contract import Evidence, texts_of
from agent.language import sentences
from agent.numerals import numbers
from agent.sommelier.figures import Amount, amounts, scores, strengths, years
from agent.sommelier.read_wine import AnyWine
from agent.sommelier.serving import drinking_years
from agent.sommelier.wine import Wine
from agent.text import pattern

PLACEHOLDER: Final = pattern(r"\{wine:([^{}\n]{1,200})\}")
"""The placeholder for the name of a wine in a model's text."""
MAX_BOTTLES: Final = 60
PACKS: Final = frozenset({6, 12})
"""Bottles that are bought together: half a case, a case."""
FEW: Final = frozenset(range(2, 7))
MAX_SUMMED: Final = 6
"""Wines whose prices may be added up."""
MOST_SUMMED: Final = 5
"""One more than the bottles whose prices may be added up: two of the first and one of another."""


@dataclass(frozen=True)
class Grounds:
    """The figures that the words of an answer may hold; `shown` are the ids of its wines."""

    evidence: Evidence
    shown: frozenset[str] = frozenset()

    @cached_property
    def wines(self) -> list[AnyWine]:
        """Return the wines that tools found."""
        return [wine for wine in self.evidence.sources.values() if isinstance(wine, AnyWine)]

    @cached_property
    def own_numbers(self) -> frozenset[float]:
        """Return the numbers of the user, in the whole chat."""
        return frozenset().union(*map(numbers, self.evidence.user_texts))

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts of documents, other sources and earlier answers."""
        found = self.evidence.sources.values()
        others = texts_of(source for source in found if not isinstance(source, AnyWine))
        return [*others, *self.evidence.assistant_texts]

    def wrong_figures(self, text: str, wine: AnyWine | None = None) -> list[str]:
        """Return the figures of a text that nothing grounds; a `wine` is the one it describes."""
        statements = [
            sentence for sentence in sentences(text) if not sentence.rstrip(' )"»”').endswith("?")
        ]
        prose = PLACEHOLDER.sub(" ", "\n".join(statements))
        named = self._named_in(text, wine)
        wines = named or self.wines
        texts = [*self.texts, *texts_of(wines)]
        wrong_scores = {*scores(prose)} - self.own_numbers.union(*map(scores, texts))
        known = self.own_numbers.union(*map(strengths, texts), (found.facts.abv for found in named))
        wrong_strengths = strengths(prose) - known if named else ()
        return [
            *(wrong for part in statements for wrong in self._wrong_amounts(part, prose, wine)),
            *self._wrong_years(prose, wines, texts, is_description=wine is not None),
            *(f"{score:g} points" for score in sorted(wrong_scores)),
            *(f"{strength:g} %" for strength in sorted(wrong_strengths)),
        ]

    def _named_in(self, text: str, wine: AnyWine | None) -> list[AnyWine]:
        """Return the wines that a text names, and the one that it describes."""
        ids = (found[1].strip() for found in PLACEHOLDER.finditer(text))
        named = [wine, *map(self.evidence.sources.get, ids)]
        return [found for found in named if isinstance(found, AnyWine)]

    def _wrong_amounts(self, sentence: str, text: str, wine: AnyWine | None) -> Iterator[str]:
        """Yield the amounts of a sentence that are no price of the wines it names, or of any wine.

        Sums, multiples and differences of prices are right, too.
        """
        named = self._named_in(sentence, wine)
        stated = numbers(text) | self.own_numbers | PACKS
        counts = {number for number in stated if number <= MAX_BOTTLES}
        earlier = "\n".join(self.evidence.assistant_texts)
        shown = [found for found in self.wines if found.id in self.shown or found.id in earlier]
        shown = shown or named or self.wines
        # "Two of the first and one of the second" counts; "together" does not.
        choose = combinations if FEW.isdisjoint(numbers(text)) else combinations_with_replacement
        amounts_known = {amount.value for known in self.texts for amount in amounts(known)}
        for amount in amounts(PLACEHOLDER.sub(" ", sentence)):
            single = _prices(named or self.wines, amount)
            listed = _prices(shown[:MAX_SUMMED], amount)
            sums = {sum(some) for size in range(2, MOST_SUMMED) for some in choose(listed, size)}
            bought = [*(single if named else [*listed, *self.own_numbers]), sum(listed)]
            multiples = {count * price for price in bought for count in counts}
            compared = self.own_numbers.union(listed)
            differences = {abs(price - other) for price in single for other in compared}
            prices = {*single, sum(listed)} | sums | multiples
            exact = amounts_known | self.own_numbers | differences
            if not (amount.is_one_of(prices) or amount.value in exact):
                yield amount.text

    def _wrong_years(
        self, text: str, wines: Sequence[AnyWine], texts: Sequence[str], *, is_description: bool
    ) -> Iterator[str]:
        known = self.own_numbers.union(*map(numbers, texts))
        spans = known | numbers(text)
        derived = {wine.vintage + span for wine in wines if wine.vintage for span in spans}
        ours = (wine if isinstance(wine, Wine) else wine.known for wine in wines)
        derived.update(year for wine in ours if wine for year in drinking_years(wine) or ())
        this_year = datetime.now(UTC).year
        for year in years(text, is_description=is_description):
            if year <= this_year and year not in known | derived:
                yield str(year)


def _prices(wines: Sequence[AnyWine], amount: Amount) -> list[float]:
    """Return the prices of wines that an amount may be, by its currency."""
    known = (wine for wine in wines if not amount.currencies or wine.currency in amount.currencies)
    return [price for wine in known for price in wine.prices]


def sentences_that(hold: Callable[[str], bool], text: str) -> str:
    """Return a text with only those of its sentences that hold."""
    lines = (" ".join(filter(hold, sentences(line))) for line in text.splitlines())
    return "\n".join(lines).strip()

"""Check the figures in a model's prose: amounts of money, vintages, scores, alcohol strengths.

Each figure must be a fact of a found wine, or in another source, an earlier answer or a message of
the user. Amounts must follow from prices (`sums.py`): what the notes of a wine say of money counts
for nothing. Strengths are only checked in texts that name wines. A year may also be a vintage plus
a number of years. Questions are not checked.
"""

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from agent.documents.citations import list_cited
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, texts_of
from agent.language import split_sentences
from agent.numerals import find_numbers
from agent.sommelier.attachment import AnyWine
from agent.sommelier.basket import BasketLine
from agent.sommelier.conversion import find_named_currency
from agent.sommelier.figures import (
    Amount,
    find_amounts,
    find_scores,
    find_strengths,
    find_years,
)
from agent.sommelier.serving import drinking_years
from agent.sommelier.sommelier_prompts import WINE_PLACEHOLDER, read_prose
from agent.sommelier.sums import KnownAmounts, Sums
from agent.sommelier.vocabulary import Currency, convert

MAX_COUNT: Final = 60
"""A larger number in a text is no count of bottles or people."""
MAX_SUMMED_WINES: Final = 6
MAX_AGE: Final = 100
MAX_COUNTED_NUMBERS: Final = 40
"""With more numbers, a text is a list, and its numbers are no counts of bottles or years."""
MAX_CHECKED_AMOUNTS: Final = 1_000
"""Amounts that are checked for one answer."""


class _Price(NamedTuple):
    """A price, or an amount of several bottles; the currency may be unknown."""

    amount: float
    currency: Currency | None


class FigureChecker:
    """A check of the figures in an answer, by its wines (`shown_ids`) and their bottles."""

    def __init__(
        self,
        evidence: Evidence,
        shown_ids: Collection[str] = (),
        basket: Sequence[BasketLine] = (),
    ) -> None:
        sources = evidence.sources.values()
        earlier_answers = [read_prose(text) for text in evidence.assistant_texts]
        named_ids = "\n".join(earlier_answers)
        others = texts_of(
            source for source in sources if not isinstance(source, AnyWine)
        )
        tools = (
            source for source in sources if not isinstance(source, AnyWine | Chunk)
        )
        self.tool_texts = texts_of(tools)
        self.evidence = evidence
        self.wines = [source for source in sources if isinstance(source, AnyWine)]
        self.shown = [
            wine for wine in self.wines if wine.id in shown_ids or wine.id in named_ids
        ]
        self.user_numbers = frozenset[float]().union(
            *map(find_numbers, evidence.user_texts)
        )
        self.texts = [*others, *earlier_answers]
        self.basket = basket
        self.text_amounts = {
            amount.value for text in self.texts for amount in find_amounts(text)
        }
        self.user_factors = _few(self.user_numbers)
        self.user_counts = {
            number for number in self.user_factors if number <= MAX_COUNT
        }
        self.checked_count = 0

    @cached_property
    def text_scores(self) -> frozenset[float]:
        """The scores in the sources that are not wines, and the numbers of the user."""
        return self.user_numbers.union(*map(find_scores, self.texts))

    @cached_property
    def text_strengths(self) -> frozenset[float]:
        """The strengths in the sources that are not wines, and the numbers of the user."""
        return self.user_numbers.union(*map(find_strengths, self.texts))

    @cached_property
    def text_numbers(self) -> frozenset[float]:
        """The numbers in the sources that are not wines, and those of the user."""
        return self.user_numbers.union(*map(find_numbers, self.texts))

    @cached_property
    def catalogue_numbers(self) -> frozenset[float]:
        """The numbers of all wines that were found."""
        return frozenset[float]().union(*map(find_numbers, texts_of(self.wines)))

    def find_wrong_figures(self, text: str, wine: AnyWine | None = None) -> list[str]:
        """Return the figures that lack evidence in a text, perhaps the description of `wine`."""
        statements = split_statements(text)
        prose = WINE_PLACEHOLDER.sub(" ", "\n".join(statements))
        named = self.named_in(text, wine)
        wines = named or self.wines
        scores = {*find_scores(prose)}
        if scores:  # most texts have none, and the sources may be long
            scores -= self.text_scores.union(*map(find_scores, texts_of(wines)))
        strengths = find_strengths(prose) if named else set()
        if strengths:
            strengths -= self.text_strengths.union(
                *map(find_strengths, texts_of(named))
            )
            strengths -= {wine.facts.abv for wine in named}
        return [
            *self._wrong_amounts(statements, find_numbers(prose), wine),
            *self._wrong_years(prose, named, is_description=wine is not None),
            *(f"{score:g} points" for score in sorted(scores)),
            *(f"{strength:g} %" for strength in sorted(strengths)),
        ]

    def find_right_amounts(self, text: str) -> list[Amount]:
        """Return the amounts in a text that follow from prices or stand in another source."""
        statements = split_statements(text)
        wrong = self._wrong_amounts(statements, find_numbers(text), None)
        amounts = (amount for each in statements for amount in find_amounts(each))
        return [amount for amount in amounts if amount.text not in wrong]

    def named_in(self, text: str, wine: AnyWine | None) -> list[AnyWine]:
        """Return the described `wine`, if any, and the wines that a text names."""
        ids = (
            placeholder[1].strip() for placeholder in WINE_PLACEHOLDER.finditer(text)
        )
        named = [wine, *map(self.evidence.sources.get, ids)]
        return [source for source in named if isinstance(source, AnyWine)]

    def _wrong_amounts(
        self, statements: Sequence[str], numbers: frozenset[float], wine: AnyWine | None
    ) -> list[str]:
        """Return the amounts in the sentences of a text that do not follow from prices.

        `numbers` are those of the text. Amounts beyond `MAX_CHECKED_AMOUNTS` count as wrong, since
        what was not checked is not shown.
        """
        wrong: list[str] = []
        for sentence in statements:
            named = self.named_in(sentence, wine)
            sums: dict[frozenset[Currency], list[Sums]] = {}
            for amount in find_amounts(WINE_PLACEHOLDER.sub(" ", sentence)):
                self.checked_count += 1
                currencies = amount.currencies
                if currencies not in sums:
                    sums[currencies] = self._list_sums(currencies, named, numbers)
                is_checked = self.checked_count <= MAX_CHECKED_AMOUNTS
                if not (is_checked and self._is_grounded(amount, sums[currencies])):
                    wrong.append(amount.text)
        return wrong

    def _is_grounded(self, amount: Amount, sums: Sequence[Sums]) -> bool:
        """Return whether an amount follows from prices, or stands in another source."""
        if amount.value in self.text_amounts or amount.value in self.user_numbers:
            return True
        return any(possible.allow(amount.value) for possible in sums)

    def _list_sums(
        self,
        currencies: frozenset[Currency],
        named: Sequence[AnyWine],
        numbers: frozenset[float],
    ) -> list[Sums]:
        """Return what follows from the prices in these currencies, and from converted prices.

        The prices are those of the `named` wines, or of all if none is named. The `numbers` of the
        text may be counts of bottles; if it has none, those of the user may.
        """
        wines = named or self.wines
        shown = (self.shown or wines)[:MAX_SUMMED_WINES]
        counts = {
            number for number in _few(numbers) if number <= MAX_COUNT
        } or self.user_counts
        counts = {*counts, *(line.count for line in self.basket)}
        sums = [self._sum_up(wines, shown, counts, _Selection(currencies))]
        target = self._find_target(currencies)
        has_foreign_prices = any(
            wine.currency is not target for wine in (*wines, *shown)
        )
        if target is not None and has_foreign_prices:
            converted = _Selection(currencies, target)
            sums.append(self._sum_up(wines, shown, counts, converted))
        return sums

    def _find_target(self, currencies: frozenset[Currency]) -> Currency | None:
        """Return the currency of an amount to which prices in others are converted, or None.

        Of the several that "dollars" may mean, it is the one that the guest named.
        """
        named = find_named_currency(self.evidence.user_texts)
        if named in currencies:
            return named
        return next(iter(currencies)) if len(currencies) == 1 else None

    def _sum_up(
        self,
        wines: Sequence[AnyWine],
        shown: Sequence[AnyWine],
        counts: Collection[float],
        selection: "_Selection",
    ) -> Sums:
        """Return what follows from the prices of a selection."""
        lines = [_Price(line.amount, line.currency) for line in self.basket]
        counted = [_Price(line.price, line.currency) for line in self.basket]
        counted_ids = {line.wine_id for line in self.basket}
        others = [wine for wine in shown if wine.id not in counted_ids]
        amounts = KnownAmounts(
            prices=selection.amounts_of(_prices_of(wines)),
            items=selection.amounts_of([*counted, *_prices_of(others)]),
            counts=counts,
            lines=selection.amounts_of(lines),
            named=self.user_factors,
            fees=_few(frozenset(self.text_amounts)),
            people=self.user_counts,
            are_converted=selection.target is not None,
        )
        return Sums(amounts)

    def _wrong_years(
        self, text: str, named: Sequence[AnyWine], *, is_description: bool
    ) -> list[str]:
        this_year = datetime.now(UTC).year
        years = find_years(text, is_description=is_description)
        # Later ones: when to drink.
        past_years = {year for year in years if year <= this_year}
        if not past_years:
            return []
        wines = named or self.wines
        if named:
            wine_numbers = frozenset[float]().union(*map(find_numbers, texts_of(named)))
        else:
            wine_numbers = self.catalogue_numbers
        source_numbers = self.text_numbers | wine_numbers
        numbers = source_numbers | find_numbers(text)
        ages = _few(frozenset(number for number in numbers if number <= MAX_AGE))
        # "The 2010 was at its best after ten years, in 2020."
        derived_years = {
            wine.vintage + age for wine in wines if wine.vintage for age in ages
        }
        derived_years.update(
            year for wine in wines for year in drinking_years(wine.facts) or ()
        )
        return [*map(str, sorted(past_years - source_numbers - derived_years))]


class Grounds:
    """What may ground a sentence, perhaps of the description of `wine`.

    Its `wines` are those that it names, and then it `is_about_all` of them; otherwise it must hold
    for one of those that are shown. `tool_texts` come from other tools than those of wines and
    documents.
    """

    def __init__(
        self, checker: FigureChecker, sentence: str, wine: AnyWine | None = None
    ) -> None:
        named = checker.named_in(sentence, wine)
        self.wines: Sequence[AnyWine] = named or checker.shown or checker.wines
        self.is_about_all = bool(named)
        self.texts = checker.texts
        self.tool_texts = checker.tool_texts
        self._checker = checker
        self._sentence = sentence

    @cached_property
    def numbers(self) -> AbstractSet[float]:
        """The numbers of its wines, the basket and the other sources; 1 counts nothing."""
        offers = [offer for wine in self.wines for offer in wine.facts.offers]
        stocks = {float(offer.stock) for offer in offers if offer.stock is not None}
        counts = {float(line.count) for line in self._checker.basket}
        rights = self._checker.find_right_amounts(self._sentence)
        amounts = {amount.value for amount in rights}
        in_wines = map(find_numbers, texts_of(self.wines))
        in_texts = self._checker.text_numbers
        return {1.0, *stocks, *counts, *amounts}.union(in_texts, *in_wines)

    @cached_property
    def cited_texts(self) -> Sequence[str]:
        """The documents that the sentence cites, or whose words it repeats."""
        sources = self._checker.evidence.sources.values()
        chunks = [source for source in sources if isinstance(source, Chunk)]
        return texts_of(list_cited(self._sentence, chunks))


class _Selection(NamedTuple):
    """The currencies of an amount in prose, and the one to which other prices are converted.

    Without currencies it is every price, without a target only those in the currencies.
    """

    currencies: frozenset[Currency]
    target: Currency | None = None

    def amounts_of(self, prices: Iterable[_Price]) -> list[float]:
        """Return the amounts of the prices that belong to the selection."""
        amounts: list[float] = []
        for price in prices:
            if self.target is not None and price.currency is not None:
                amounts.append(convert(price.amount, price.currency, self.target))
            elif not self.currencies or price.currency in self.currencies:
                amounts.append(price.amount)
        return amounts


def split_statements(text: str) -> list[str]:
    """Return the sentences of a text that are no questions."""
    return [each for each in split_sentences(text) if not is_question(each)]


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark, perhaps within quotes."""
    return sentence.rstrip(' )"»”').endswith("?")


def _prices_of(wines: Iterable[AnyWine]) -> list[_Price]:
    return [_Price(price, wine.currency) for wine in wines for price in wine.prices]


def _few(numbers: frozenset[float]) -> frozenset[float]:
    """Return numbers to calculate with: none of too many, from which any amount would follow."""
    return numbers if len(numbers) <= MAX_COUNTED_NUMBERS else frozenset()

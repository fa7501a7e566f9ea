"""Check the figures in a model's prose: amounts of money, vintages, scores, alcohol strengths.

Each figure must be a fact of a found wine, or in another source, an earlier answer or a message of
the user. Amounts must follow from prices (`sums.py`). Amounts in the notes of a wine do not
count. Strengths are only checked in texts that name wines. A year may also be a vintage plus
a number of years. Questions are not checked.
"""

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from agent.documents.citations import list_cited
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, SourceWithoutFacts, texts_of
from agent.language import split_sentences
from agent.numerals import find_numbers
from agent.sommelier.attachment import AnyWine
from agent.sommelier.basket import BasketLine
from agent.sommelier.conversion import find_named_currency
from agent.sommelier.figures import (
    Amount,
    find_amounts,
    find_other_numbers,
    find_scores,
    find_strengths,
    find_years,
)
from agent.sommelier.serving import drinking_years
from agent.sommelier.sommelier_prompts import WINE_PLACEHOLDER, read_grounding_text
from agent.sommelier.sums import BasketSums, KnownAmounts, Sums
from agent.sommelier.vocabulary import Currency, convert

MAX_COUNT: Final = 60
"""The largest number in a text that may be a count of bottles or people."""
MAX_SUMMED_WINES: Final = 6
MAX_AGE: Final = 100
"""The most years after its vintage at which a wine may be said to be ready."""
MAX_COUNTED_NUMBERS: Final = 40
"""The most numbers by which prices are multiplied. From more, any amount would follow."""
MAX_CHECKED_AMOUNTS: Final = 1_000
"""The most amounts that are checked for one answer, so that a check stays short."""


class _Price(NamedTuple):
    """A price, or the amount of several bottles. The currency may be unknown."""

    amount: float
    currency: Currency | None


class _Counts(NamedTuple):
    """The counts that a sentence states, and all by which its prices may be multiplied."""

    stated: Collection[float]
    possible: Collection[float]


class _Selection(NamedTuple):
    """The currencies of an amount in prose, and the one to which other prices are converted.

    Without currencies it is every price, without a target only those in the currencies.
    """

    currencies: frozenset[Currency]
    target: Currency | None = None

    def list_amounts(self, prices: Iterable[_Price]) -> list[float]:
        """Return the amounts of the prices that belong to the selection."""
        amounts: list[float] = []
        for price in prices:
            if self.target is not None and price.currency is not None:
                amounts.append(convert(price.amount, price.currency, self.target))
            elif not self.currencies or price.currency in self.currencies:
                amounts.append(price.amount)
        return amounts


@dataclass(frozen=True, slots=True)
class RememberedAllergies(SourceWithoutFacts):
    """The allergies of the guest: a source that grounds nothing.

    `notes` are what else is remembered, such as "my wife: no eggs".
    """

    names: Collection[str]
    notes: Sequence[str] = ()


class FigureChecker:
    """A check of the figures in an answer, by its wines (`shown_ids`) and their bottles."""

    def __init__(
        self,
        evidence: Evidence,
        shown_ids: Collection[str] = (),
        basket: Sequence[BasketLine] = (),
    ) -> None:
        self.evidence = evidence
        self.basket = basket
        self.wines: list[AnyWine] = []
        self.texts: list[str] = []
        """The texts of all sources except wines, and of earlier answers."""
        self.tool_texts: list[str] = []
        """The texts from other tools than those of wines and documents."""
        self.allergies: Collection[str] = ()
        """The remembered allergies of the guest."""
        self.notes: Sequence[str] = ()
        """What else is remembered of the guest."""
        self._shown_ids = shown_ids
        self._checked_amounts = 0
        self._read_sources()
        self._earlier_answers = [
            read_grounding_text(text) for text in evidence.assistant_texts
        ]
        self.texts += self._earlier_answers

    def _read_sources(self) -> None:
        for source in self.evidence.sources.values():
            if isinstance(source, AnyWine):
                self.wines.append(source)
                continue
            if isinstance(source, RememberedAllergies):
                self.allergies = source.names
                self.notes = source.notes
            self.texts.append(source.source_text)
            if not isinstance(source, Chunk):
                self.tool_texts.append(source.source_text)

    @cached_property
    def shown_wines(self) -> list[AnyWine]:
        """The wines of this answer and of earlier ones."""
        earlier_ids = "\n".join(self._earlier_answers)
        shown: list[AnyWine] = []
        for wine in self.wines:
            if wine.id in self._shown_ids or wine.id in earlier_ids:
                shown.append(wine)
        return shown

    @cached_property
    def user_numbers(self) -> frozenset[float]:
        """The numbers in the messages of the user."""
        return _find_all_numbers(self.evidence.user_texts)

    @cached_property
    def text_amounts(self) -> frozenset[float]:
        """The amounts of money in the sources that are not wines."""
        amounts: set[float] = set()
        for text in self.texts:
            amounts.update(amount.value for amount in find_amounts(text))
        return frozenset(amounts)

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
        return self.user_numbers | _find_all_numbers(self.texts)

    @cached_property
    def wine_numbers(self) -> frozenset[float]:
        """The numbers of all wines that were found."""
        return _find_all_numbers(texts_of(self.wines))

    def find_wrong_figures(self, text: str, wine: AnyWine | None = None) -> list[str]:
        """Return the figures in a text that lack evidence. It may be the description of `wine`."""
        statements = split_statements(text)
        prose = WINE_PLACEHOLDER.sub(" ", "\n".join(statements))
        named = self.list_named(text, wine)
        wrong = self._find_wrong_amounts(statements, wine)
        is_description = wine is not None
        for year in self._find_wrong_years(prose, named, is_description=is_description):
            wrong.append(f"{year:g}")
        for score in self._find_wrong_scores(prose, named):
            wrong.append(f"{score:g} points")
        for strength in self._find_wrong_strengths(prose, named):
            wrong.append(f"{strength:g} %")
        return wrong

    def find_right_amounts(self, text: str) -> list[Amount]:
        """Return the amounts in a text that follow from prices or are in another source."""
        statements = split_statements(text)
        wrong = self._find_wrong_amounts(statements)
        right: list[Amount] = []
        for sentence in statements:
            for amount in find_amounts(sentence):
                if amount.text not in wrong:
                    right.append(amount)
        return right

    def list_named(self, text: str, described: AnyWine | None = None) -> list[AnyWine]:
        """Return the wine that a text describes, if any, and those that it names."""
        named: list[AnyWine] = []
        if described is not None:
            named.append(described)
        for placeholder in WINE_PLACEHOLDER.finditer(text):
            source = self.evidence.sources.get(placeholder[1].strip())
            if isinstance(source, AnyWine):
                named.append(source)
        return named

    def _find_wrong_scores(self, prose: str, named: Sequence[AnyWine]) -> list[float]:
        scores = set(find_scores(prose))
        # Most texts have no scores, and reading the sources may take long.
        if not scores:
            return []
        scores -= self.text_scores
        for text in texts_of(named or self.wines):
            scores.difference_update(find_scores(text))
        return sorted(scores)

    def _find_wrong_strengths(
        self, prose: str, named: Sequence[AnyWine]
    ) -> list[float]:
        strengths = find_strengths(prose)
        if not strengths or not named:
            return []
        strengths -= self.text_strengths
        for wine in named:
            strengths -= find_strengths(wine.source_text)
            if wine.facts.abv is not None:
                strengths.discard(wine.facts.abv)
        return sorted(strengths)

    def _find_wrong_years(
        self, prose: str, named: Sequence[AnyWine], *, is_description: bool
    ) -> list[float]:
        this_year = datetime.now(UTC).year
        wrong: set[float] = set()
        for year in find_years(prose, is_description=is_description):
            if year <= this_year:  # a later year says when to drink the wine
                wrong.add(year)
        if not wrong:
            return []
        wine_numbers = self.wine_numbers
        if named:
            wine_numbers = _find_all_numbers(texts_of(named))
        known_numbers = self.text_numbers | wine_numbers
        wrong -= known_numbers
        ages = _list_ages(known_numbers | find_numbers(prose))
        for wine in named or self.wines:
            wrong.difference_update(drinking_years(wine.facts) or ())
            if wine.vintage:
                # "The 2010 was at its best after ten years, in 2020."
                wrong -= {wine.vintage + age for age in ages}
        return sorted(wrong)

    def _find_wrong_amounts(
        self, statements: Sequence[str], wine: AnyWine | None = None
    ) -> list[str]:
        """Return the amounts in the sentences of a text that do not follow from prices.

        Amounts beyond `MAX_CHECKED_AMOUNTS` count as wrong, for what was not checked is not shown.
        """
        prose = WINE_PLACEHOLDER.sub(" ", "\n".join(statements))
        numbers = find_numbers(prose)
        wrong: list[str] = []
        for sentence in statements:
            named = self.list_named(sentence, wine)
            words = WINE_PLACEHOLDER.sub(" ", sentence)
            counts = self._find_counts(words, numbers)
            sums: dict[frozenset[Currency], list[Sums | BasketSums]] = {}
            for amount in find_amounts(words):
                currencies = amount.currencies
                if currencies not in sums:
                    sums[currencies] = self._list_sums(currencies, named, counts)
                self._checked_amounts += 1
                is_checked = self._checked_amounts <= MAX_CHECKED_AMOUNTS
                if not is_checked or not self._is_grounded(amount, sums[currencies]):
                    wrong.append(amount.text)
        return wrong

    def _is_grounded(self, amount: Amount, sums: Sequence[Sums | BasketSums]) -> bool:
        """Return whether an amount follows from prices or is in another source."""
        if amount.value in self.text_amounts or amount.value in self.user_numbers:
            return True
        return any(possible.allow(amount.value) for possible in sums)

    def _find_counts(self, sentence: str, text_numbers: frozenset[float]) -> _Counts:
        """Return the counts by which the prices in a sentence may be multiplied.

        If the answer counts bottles, these are its counts, those in the sentence, and those that
        the guest named. Otherwise they are the numbers of the whole text, or else the guest's.
        """
        stated = _list_counts(find_other_numbers(sentence))
        user_counts = _list_counts(self.user_numbers)
        if self.basket:
            in_basket: set[float] = {line.count for line in self.basket}
            return _Counts(stated, stated | in_basket | user_counts)
        return _Counts(stated, _list_counts(text_numbers) or user_counts)

    def _list_sums(
        self,
        currencies: frozenset[Currency],
        named: Sequence[AnyWine],
        counts: _Counts,
    ) -> list[Sums | BasketSums]:
        """Return the sums of the prices in these currencies, and of converted prices.

        The prices are those of the `named` wines, or of all if none is named.
        """
        wines = named or self.wines
        sums = [self._sum_up(wines, counts, _Selection(currencies))]
        target = self._find_target(currencies)
        own_currencies = {wine.currency for wine in (*wines, *self._list_summed(wines))}
        has_foreign_prices = bool(own_currencies - {target})
        if target is not None and has_foreign_prices:
            converted = _Selection(currencies, target)
            sums.append(self._sum_up(wines, counts, converted))
        return sums

    def _find_target(self, currencies: frozenset[Currency]) -> Currency | None:
        """Return the currency of an amount to which prices in others are converted, or None.

        If a word such as "dollars" may mean several, it is the currency that the guest named.
        """
        named = find_named_currency(self.evidence.user_texts)
        if named in currencies:
            return named
        if len(currencies) != 1:
            return None
        (only,) = currencies
        return only

    def _list_summed(self, wines: Sequence[AnyWine]) -> Sequence[AnyWine]:
        """Return the wines whose prices may be added up: the shown ones, or else `wines`."""
        summed = self.shown_wines or wines
        return summed[:MAX_SUMMED_WINES]

    def _sum_up(
        self, wines: Sequence[AnyWine], counts: _Counts, selection: _Selection
    ) -> Sums | BasketSums:
        """Return the sums of the prices of a selection."""
        lines = [_Price(line.amount, line.currency) for line in self.basket]
        line_prices = [_Price(line.price, line.currency) for line in self.basket]
        counted_ids = {line.wine_id for line in self.basket}
        uncounted: list[AnyWine] = []
        for wine in self._list_summed(wines):
            if wine.id not in counted_ids:
                uncounted.append(wine)
        items = [*line_prices, *_list_prices(uncounted)]
        amounts = KnownAmounts(
            prices=selection.list_amounts(_list_prices(wines)),
            items=selection.list_amounts(items),
            counts=counts.possible,
            lines=selection.list_amounts(lines),
            line_prices=selection.list_amounts(line_prices),
            stated_counts=counts.stated,
            named=_drop_if_many(self.user_numbers),
            fees=_drop_if_many(self.text_amounts),
            people=_list_counts(self.user_numbers),
            are_converted=selection.target is not None,
        )
        if amounts.lines:
            return BasketSums(amounts)
        return Sums(amounts)


class Grounds:
    """The sources that may ground a sentence, perhaps of the description of a wine.

    Its `wines` are those that it names, and then it `is_about_all` of them. Otherwise it must hold
    for one of those that are shown.
    """

    def __init__(
        self, checker: FigureChecker, sentence: str, described: AnyWine | None = None
    ) -> None:
        named = checker.list_named(sentence, described)
        self.wines: Sequence[AnyWine] = named or checker.shown_wines or checker.wines
        self.is_about_all = bool(named)
        self.texts = checker.texts
        self.tool_texts = checker.tool_texts
        self.user_texts = checker.evidence.user_texts
        self.allergies = checker.allergies
        self.notes = checker.notes
        self._checker = checker
        self._sentence = sentence

    @cached_property
    def numbers(self) -> AbstractSet[float]:
        """The numbers of its wines, the basket and the other sources; 1 counts nothing."""
        numbers = {1.0, *self._checker.text_numbers}
        for wine in self.wines:
            numbers |= find_numbers(wine.source_text)
            for offer in wine.facts.offers:
                if offer.stock is not None:
                    numbers.add(float(offer.stock))
        for line in self._checker.basket:
            numbers.add(float(line.count))
        for amount in self._checker.find_right_amounts(self._sentence):
            numbers.add(amount.value)
        return numbers

    @cached_property
    def cited_texts(self) -> Sequence[str]:
        """The documents that the sentence cites, or whose words it repeats."""
        sources = self._checker.evidence.sources.values()
        chunks = [source for source in sources if isinstance(source, Chunk)]
        return texts_of(list_cited(self._sentence, chunks))


def split_statements(text: str) -> list[str]:
    """Return the sentences of a text that are not questions."""
    sentences = split_sentences(text)
    return [sentence for sentence in sentences if not is_question(sentence)]


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark, perhaps within quotes."""
    return sentence.rstrip(' )"»”').endswith("?")


def _list_prices(wines: Iterable[AnyWine]) -> list[_Price]:
    prices: list[_Price] = []
    for wine in wines:
        for amount in wine.prices:
            prices.append(_Price(amount, wine.currency))
    return prices


def _drop_if_many(numbers: frozenset[float]) -> frozenset[float]:
    """Return the numbers, or none if they are more than `MAX_COUNTED_NUMBERS`."""
    if len(numbers) > MAX_COUNTED_NUMBERS:
        return frozenset()
    return numbers


def _list_counts(numbers: frozenset[float]) -> set[float]:
    """Return the numbers that may count bottles or people, unless there are too many numbers."""
    few = _drop_if_many(numbers)
    return {number for number in few if number <= MAX_COUNT}


def _list_ages(numbers: frozenset[float]) -> frozenset[float]:
    """Return the numbers that may be ages of wines in years, unless there are too many."""
    return _drop_if_many(frozenset(number for number in numbers if number <= MAX_AGE))


def _find_all_numbers(texts: Iterable[str]) -> frozenset[float]:
    """Return the numbers of several texts."""
    numbers: set[float] = set()
    for text in texts:
        numbers |= find_numbers(text)
    return frozenset(numbers)

"""Check the figures in a model's prose: amounts of money, vintages, scores, alcohol strengths.

Each figure must be a fact of a found wine, or in another source, an earlier answer or a message of
the user. Strengths are only checked in texts that name wines. Amounts may also be sums, differences
or multiples of prices. A year may also be a vintage plus a number of years. Questions are not
checked. Figures are read in all languages of `languages/`, by their words for numbers, currencies,
scores and events.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import combinations, combinations_with_replacement
from typing import Final, NamedTuple

from agent.engine.contract import Evidence, texts_of
from agent.language import split_sentences
from agent.languages import load_languages
from agent.numerals import NUMBER, find_numbers, parse_number, replace_number_words
from agent.sommelier.attachment import AnyWine
from agent.sommelier.serving import drinking_years
from agent.sommelier.sommelier_prompts import read_prose
from agent.sommelier.vocabulary import Currency, currencies_by_word
from agent.text import Pattern, compose_compatible, escape_pattern, fold, pattern

WINE_PLACEHOLDER: Final = pattern(r"\{wine:([^{}\n]{1,200})\}")
"""A placeholder for the name of a wine, with its id, in a model's text."""
YEAR: Final = pattern(
    r"(?:(?P<before>\p{L}+)[\s(]+|\A|[^\p{L}\d.,])(?P<year>(?:18|19|20)\d\d)(?P<ending>\p{L}*)(?:\D|\Z)"
)
"""A year, with the word before it and the letters after it: `Barolo 2016`, `the 1990s`."""
STRENGTH: Final = pattern(r"(\d{1,2}(?:[.,]\d)?)\s?%\s?(?:d\p{L}*\s)?(?:vol|alc|alk|abv)")
WITHOUT_FIXED_SPACES: Final = str.maketrans(dict.fromkeys("\u00a0\u202f"))
UNITS: Final = "c?l|ml|hl|k?g|ha|vol|uhr|h"
"""If one of these follows a number like 12.50, the number is not a price."""
MIN_VINTAGE: Final = 1950
"""Earlier years in prose count as vintages only after a capitalized word, as in a name."""
MIN_SCORE: Final = 50
"""A lower number of points is not a score."""
ROUNDING_MARGIN: Final = 0.5
"""A whole amount may be off by this much, because models round."""
CENT_MARGIN: Final = 0.005
MAX_BOTTLES: Final = 60
PACK_SIZES: Final = frozenset({6, 12})
REPEAT_COUNTS: Final = frozenset(range(2, 7))
"""If a text has one of these numbers ("two of the first"), a sum may repeat a price."""
MAX_SUMMED_WINES: Final = 6
MAX_AGE: Final = 100
MAX_COUNTED_NUMBERS: Final = 40
"""With more numbers, a text is a list, and its numbers are no counts of bottles or years."""
MAX_CHECKED_AMOUNTS: Final = 1_000
"""Amounts that are checked for one answer."""
MAX_COMPARED_PRICES: Final = 40
SUM_SIZES: Final = range(2, 5)
"""The numbers of bottles whose prices may be added up."""


class _Amount(NamedTuple):
    """An amount of money in prose; `currencies` is empty if the text names no currency."""

    text: str
    value: float
    currencies: frozenset[Currency]


class FigureChecker:
    """A check of the figures in an answer; `shown_ids` are the ids of its wines."""

    def __init__(self, evidence: Evidence, shown_ids: Collection[str] = ()) -> None:
        sources = evidence.sources.values()
        earlier_answers = [read_prose(text) for text in evidence.assistant_texts]
        named_ids = "\n".join(earlier_answers)
        others = texts_of(source for source in sources if not isinstance(source, AnyWine))
        self.evidence = evidence
        self.wines = [source for source in sources if isinstance(source, AnyWine)]
        self.shown = [wine for wine in self.wines if wine.id in shown_ids or wine.id in named_ids]
        self.user_numbers = frozenset[float]().union(*map(find_numbers, evidence.user_texts))
        self.texts = [*others, *earlier_answers]
        self.amounts = {amount.value for text in self.texts for amount in _find_amounts(text)}
        self.amounts |= self.user_numbers
        self.user_factors = _few(self.user_numbers)
        self.checked_count = 0

    @cached_property
    def text_scores(self) -> frozenset[float]:
        """The scores in the sources that are not wines, and the numbers of the user."""
        return self.user_numbers.union(*map(_find_scores, self.texts))

    @cached_property
    def text_strengths(self) -> frozenset[float]:
        """The strengths in the sources that are not wines, and the numbers of the user."""
        return self.user_numbers.union(*map(_find_strengths, self.texts))

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
        statements = [
            sentence
            for sentence in split_sentences(text)
            if not sentence.rstrip(' )"»”').endswith("?")
        ]
        prose = WINE_PLACEHOLDER.sub(" ", "\n".join(statements))
        named = self._named_in(text, wine)
        wines = named or self.wines
        scores = {*_find_scores(prose)}
        if scores:  # most texts have none, and the sources may be long
            scores -= self.text_scores.union(*map(_find_scores, texts_of(wines)))
        strengths = _find_strengths(prose) if named else set()
        if strengths:
            strengths -= self.text_strengths.union(*map(_find_strengths, texts_of(named)))
            strengths -= {wine.facts.abv for wine in named}
        return [
            *self._wrong_amounts(statements, find_numbers(prose), wine),
            *self._wrong_years(prose, named, is_description=wine is not None),
            *(f"{score:g} points" for score in sorted(scores)),
            *(f"{strength:g} %" for strength in sorted(strengths)),
        ]

    def _named_in(self, text: str, wine: AnyWine | None) -> list[AnyWine]:
        """Return the described `wine`, if any, and the wines that a text names."""
        ids = (placeholder[1].strip() for placeholder in WINE_PLACEHOLDER.finditer(text))
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
            named = self._named_in(sentence, wine)
            possible: dict[frozenset[Currency], _PossibleAmounts] = {}
            for amount in _find_amounts(WINE_PLACEHOLDER.sub(" ", sentence)):
                self.checked_count += 1
                currencies = amount.currencies
                if currencies not in possible:
                    possible[currencies] = self._possible_amounts(currencies, named, numbers)
                is_checked = self.checked_count <= MAX_CHECKED_AMOUNTS
                if not (is_checked and self._is_grounded(amount, possible[currencies])):
                    wrong.append(amount.text)
        return wrong

    def _possible_amounts(
        self, currencies: frozenset[Currency], named: Sequence[AnyWine], numbers: frozenset[float]
    ) -> "_PossibleAmounts":
        """Return the prices, and their sums, multiples and differences.

        Use the prices of the `named` wines, or of all if none is named, and the text's `numbers`.
        """
        prices = _prices(named or self.wines, currencies)
        shown = self.shown or named or self.wines
        shown_prices = _prices(shown[:MAX_SUMMED_WINES], currencies)
        total = sum(shown_prices)
        # "Two of the first and one of the second" needs a repeated price, "together" does not.
        may_repeat = not REPEAT_COUNTS.isdisjoint(numbers)
        choose = combinations_with_replacement if may_repeat else combinations
        sums = {sum(chosen) for size in SUM_SIZES for chosen in choose(shown_prices, size)}
        counts = _few(numbers) | self.user_factors | PACK_SIZES
        factors = [count for count in counts if count <= MAX_BOTTLES]
        # The user may have stated a price for each bottle: "six bottles at 20 euros".
        multiplied = [*(prices if named else [*shown_prices, *self.user_factors]), total]
        multiples = {factor * price for price in multiplied for factor in factors}
        compared = self.user_factors.union(shown_prices)
        differences = {
            abs(price - other) for price in prices[:MAX_COMPARED_PRICES] for other in compared
        }
        return _PossibleAmounts(sorted({*prices, total} | sums | multiples), frozenset(differences))

    def _is_grounded(self, amount: _Amount, possible: "_PossibleAmounts") -> bool:
        """Return whether an amount is possible, or stands in another source."""
        margin = ROUNDING_MARGIN if amount.value.is_integer() else CENT_MARGIN
        next_index = bisect_left(possible.prices, amount.value - margin)
        nearest = possible.prices[next_index : next_index + 1]
        if nearest and nearest[0] <= amount.value + margin:
            return True
        return amount.value in self.amounts or amount.value in possible.differences

    def _wrong_years(
        self, text: str, named: Sequence[AnyWine], *, is_description: bool
    ) -> list[str]:
        this_year = datetime.now(UTC).year
        years = _find_years(text, is_description=is_description)
        past_years = {year for year in years if year <= this_year}  # later ones: when to drink
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
        derived_years = {wine.vintage + age for wine in wines if wine.vintage for age in ages}
        derived_years.update(year for wine in wines for year in drinking_years(wine.facts) or ())
        return [*map(str, sorted(past_years - source_numbers - derived_years))]


class _PossibleAmounts(NamedTuple):
    """The amounts that prices make possible: within a margin (ascending), and exactly."""

    prices: list[float]
    differences: frozenset[float]


def _few(numbers: frozenset[float]) -> frozenset[float]:
    """Return numbers to calculate with: none of too many, from which any amount would follow."""
    return numbers if len(numbers) <= MAX_COUNTED_NUMBERS else frozenset()


def _prices(wines: Sequence[AnyWine], currencies: frozenset[Currency]) -> list[float]:
    priced = (wine for wine in wines if not currencies or wine.currency in currencies)
    return [price for wine in priced for price in wine.prices]


def _find_amounts(text: str) -> Iterator[_Amount]:
    # "1 234 €" has a space that must not break; folded, it would be one between two numbers.
    joined = NUMBER.sub(lambda number: number[0].translate(WITHOUT_FIXED_SPACES), text)
    for match in _amount_pattern().finditer(replace_number_words(joined)):
        if match["unit"]:  # 12.50 % is not a price
            continue
        groups = map(match.__getitem__, ("number_after", "number_before", "decimal", "whole"))
        number = next(filter(None, groups))
        currency_word = match[0].replace(number, " ").strip(" .,-–—;:!?)(")
        currencies = currencies_by_word().get(currency_word, frozenset())
        yield _Amount(match[0].strip(" .,;:!?)("), parse_number(number), currencies)


@cache
def _amount_pattern() -> Pattern:
    """Return a pattern of amounts: with a currency (€18, 18 euros), or decimals (18.50, 18,-)."""
    signs = "|".join(escape_pattern(word) for word in currencies_by_word() if not word.isalpha())
    names = "|".join(word for word in currencies_by_word() if word.isalpha())
    number, word_end = r"\d+(?:[.,’']\d+)*", r"(?:[^\p{L}]|\Z)"
    return pattern(
        rf"(?i)(?:{signs}|\p{{Sc}}|(?:\A|[^\p{{L}}])(?:{names})\s)\s?(?P<number_after>{number})"
        rf"|(?P<number_before>{number})(?:[.,]?[-–—])?[\s-]?(?:{signs}|\p{{Sc}}|(?:{names}){word_end})"
        rf"|(?P<decimal>\d+[.,]\d\d)(?:(?P<unit>\s?(?:[%°]|(?:{UNITS}){word_end}))|\D|\Z)"
        r"|(?P<whole>\d+)[.,][-–—]"
    )


def _find_years(text: str, *, is_description: bool) -> Iterator[int]:
    """Yield the years that may be vintages; "in 1998" is one only in descriptions."""
    prose = _amount_pattern().sub(" ", compose_compatible(text))
    for match in YEAR.finditer(prose):
        year, word_before = int(match["year"]), match["before"] or ""
        is_decade = year % 10 == 0 and match["ending"] in ("s", "er")
        is_event = fold(word_before) in _event_words() and not is_description
        may_be_vintage = year >= MIN_VINTAGE or word_before[:1].isupper()
        if may_be_vintage and not (is_decade or is_event):
            yield year


def _find_scores(text: str) -> Iterator[float]:
    """Yield the scores in a text: 92 points, 17.5/20, 92 of 100 points."""
    for match in _score_pattern().finditer(replace_number_words(text)):
        score = parse_number(match["over"] or match["of"] or match["number"])
        has_unit = (match["of_unit"] or match["unit"]) in _score_units()
        is_high_enough = match["of"] or score >= MIN_SCORE
        if match["over"] or (has_unit and is_high_enough):
            yield score


def _find_strengths(text: str) -> set[float]:
    """Return the alcohol strengths in a text, in percent."""
    return {parse_number(match[1]) for match in STRENGTH.finditer(fold(text))}


@cache
def _score_pattern() -> Pattern:
    """Return a pattern of possible scores: `17/20`, `92 of 100 points`, `92+ Parker points`."""
    languages = load_languages().values()
    of = "|".join(sorted({fold(words) for language in languages for words in language.score_of}))
    return pattern(
        r"(?P<over>\d+(?:[.,]\d)?)\s?/\s?(?:20|100)"
        rf"|(?P<of>\d+(?:[.,]\d)?)\s(?:{of})\s(?:20|100)[\s-](?P<of_unit>\p{{L}}+)"
        r"|(?P<number>\d+(?:[.,]\d)?)\+?[\s-]?(?:\p{L}+[\s-])??(?P<unit>\p{L}+)"
    )


@cache
def _score_units() -> frozenset[str]:
    languages = load_languages().values()
    return frozenset(fold(word) for language in languages for word in language.score_units)


@cache
def _event_words() -> frozenset[str]:
    languages = load_languages().values()
    return frozenset(fold(word) for language in languages for word in language.event_words)

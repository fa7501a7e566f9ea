"""Hold the figures of a model's words to evidence: amounts of money, vintages, scores, strengths.

Each must be a fact of a wine that a tool found, be in another source that one returned or in an
earlier answer, or be the user's own; a strength is held to the wines that a text names. Sums,
differences and multiples of prices follow from them, a year from a vintage and a span. Questions
pass. No other word of a model is judged.

Figures are read in seven languages, by the words of `figures.toml`, `currencies.toml` and
`agent.numerals`.
"""

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Final, NamedTuple

from agent.engine.contract import Evidence, texts_of
from agent.language import split_sentences
from agent.numerals import find_numbers, parse_number, spell_in_digits
from agent.sommelier.attachment import AnyWine
from agent.sommelier.wine import Currency, currencies_by_word, drinking_years
from agent.tables import WordSet, read_toml
from agent.text import Pattern, escape_pattern, fold, pattern

PLACEHOLDER: Final = pattern(r"\{wine:([^{}\n]{1,200})\}")
"""The placeholder for the name of a wine in a model's text."""
YEAR: Final = pattern(
    r"(?:(?P<before>\p{L}+)[\s(]+|\A|[^\p{L}\d.,])(?P<year>(?:18|19|20)\d\d)(?P<ending>\p{L}*)(?:\D|\Z)"
)
SCORE: Final = pattern(
    r"(?P<over>\d+(?:[.,]\d)?)\s?/\s?(?:20|100)"
    r"|(?P<of>\d+(?:[.,]\d)?)\s(?:von|of|out of|sur|su|de|van)\s(?:20|100)[\s-](?P<whole>\p{L}+)"
    r"|(?P<number>\d+(?:[.,]\d)?)\+?[\s-]?(?:\p{L}+[\s-])??(?P<unit>\p{L}+)"
)
STRENGTH: Final = pattern(r"(\d{1,2}(?:[.,]\d)?)\s?%\s?(?:d\p{L}*\s)?(?:vol|alc|alk|abv)")
MEASURES: Final = "c?l|ml|hl|k?g|ha|vol|uhr|h"
"""Units after a number with two decimals that is no price."""
FIRST_VINTAGE: Final = 1950
"""From which year on a year in prose is read as a vintage; an older one only behind a name."""
LEAST_POINTS: Final = 50
"""From which number on points are a score, and no list of points."""
ROUNDED: Final = 0.5
"""The greatest distance of a whole amount from the amount that it rounds."""
CENT: Final = 0.005
MAX_BOTTLES: Final = 60
PACKS: Final = frozenset({6, 12})
"""Bottles that are bought together: half a case, a case."""
FEW: Final = frozenset(range(2, 7))
MAX_SUMMED: Final = 6
"""Wines whose prices may be added up."""
MOST_SUMMED: Final = 5
"""One more than the bottles whose prices may be added up: two of the first and one of another."""


class Grounds:
    """The figures that the words of an answer may hold; `shown` are the ids of its wines."""

    def __init__(self, evidence: Evidence, shown: Collection[str] = ()) -> None:
        found, earlier = evidence.sources.values(), "\n".join(evidence.assistant_texts)
        others = texts_of(source for source in found if not isinstance(source, AnyWine))
        self.evidence = evidence
        self.wines = [wine for wine in found if isinstance(wine, AnyWine)]
        self.shown = [wine for wine in self.wines if wine.id in shown or wine.id in earlier]
        self.own_numbers = frozenset[float]().union(*map(find_numbers, evidence.user_texts))
        self.texts = [*others, *evidence.assistant_texts]
        self.amounts = {amount.value for text in self.texts for amount in _amounts(text)}

    def wrong_figures(self, text: str, wine: AnyWine | None = None) -> list[str]:
        """Return the figures of a text that nothing grounds; a `wine` is the one it describes."""
        statements = [
            sentence
            for sentence in split_sentences(text)
            if not sentence.rstrip(' )"»”').endswith("?")
        ]
        prose = PLACEHOLDER.sub(" ", "\n".join(statements))
        named = self._named_in(text, wine)
        wines = named or self.wines
        texts = [*self.texts, *texts_of(wines)]
        if wrong_scores := {*_scores(prose)}:
            wrong_scores -= self.own_numbers.union(*map(_scores, texts))
        if wrong_strengths := _strengths(prose) if named else set():
            wrong_strengths -= self.own_numbers.union(*map(_strengths, texts))
            wrong_strengths -= {own.facts.abv for own in named}
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
        stated = find_numbers(text) | self.own_numbers | PACKS
        counts = {number for number in stated if number <= MAX_BOTTLES}
        shown = self.shown or named or self.wines
        # "Two of the first and one of the second" counts; "together" does not.
        choose = (
            combinations if FEW.isdisjoint(find_numbers(text)) else combinations_with_replacement
        )
        for amount in _amounts(PLACEHOLDER.sub(" ", sentence)):
            single = _prices(named or self.wines, amount)
            listed = _prices(shown[:MAX_SUMMED], amount)
            sums = {sum(some) for size in range(2, MOST_SUMMED) for some in choose(listed, size)}
            bought = [*(single if named else [*listed, *self.own_numbers]), sum(listed)]
            multiples = {count * price for price in bought for count in counts}
            compared = self.own_numbers.union(listed)
            differences = {abs(price - other) for price in single for other in compared}
            prices = {*single, sum(listed)} | sums | multiples
            margin = ROUNDED if amount.value.is_integer() else CENT
            is_price = any(abs(amount.value - price) <= margin for price in prices)
            if not (is_price or amount.value in self.amounts | self.own_numbers | differences):
                yield amount.text

    def _wrong_years(
        self, text: str, wines: Sequence[AnyWine], texts: Sequence[str], *, is_description: bool
    ) -> list[str]:
        this_year = datetime.now(UTC).year
        found = {year for year in _years(text, is_description=is_description) if year <= this_year}
        if not found:
            return []
        known = self.own_numbers.union(*map(find_numbers, texts))
        spans = known | find_numbers(text)
        derived = {wine.vintage + span for wine in wines if wine.vintage for span in spans}
        derived.update(year for wine in wines for year in drinking_years(wine.facts) or ())
        return [*map(str, sorted(found - known - derived))]


class _Amount(NamedTuple):
    """An amount of money in prose, and the currencies that it may be in; none if it names none."""

    text: str
    value: float
    currencies: frozenset[Currency]


def _prices(wines: Sequence[AnyWine], amount: _Amount) -> list[float]:
    """Return the prices of wines that an amount may be, by its currency."""
    known = (wine for wine in wines if not amount.currencies or wine.currency in amount.currencies)
    return [price for wine in known for price in wine.prices]


def _amounts(text: str) -> Iterator[_Amount]:
    """Yield the amounts of money in a text."""
    for found in _amount_pattern().finditer(spell_in_digits(text)):
        if found["unit"]:
            continue
        number = next(filter(None, map(found.__getitem__, ("after", "before", "bare", "whole"))))
        named = found[0].replace(number, " ").strip(" .,-–—;:!?)(")
        currencies = currencies_by_word().get(named, frozenset())
        yield _Amount(found[0].strip(" .,;:!?)("), parse_number(number), currencies)


@cache
def _amount_pattern() -> Pattern:
    """Return a pattern of amounts: with a sign, a code or a word, or with two decimals."""
    signs = "|".join(escape_pattern(word) for word in currencies_by_word() if not word.isalpha())
    names = "|".join(word for word in currencies_by_word() if word.isalpha())
    number, apart = r"\d+(?:[.,]\d+)*", r"(?:[^\p{L}]|\Z)"
    return pattern(
        rf"(?i)(?:{signs}|\p{{Sc}}|(?:\A|[^\p{{L}}])(?:{names})\s)\s?(?P<after>{number})"
        rf"|(?P<before>{number})(?:[.,]?[-–—])?[\s-]?(?:{signs}|\p{{Sc}}|(?:{names}){apart})"
        rf"|(?P<bare>\d+[.,]\d\d)(?:(?P<unit>\s?(?:[%°]|(?:{MEASURES}){apart}))|\D|\Z)"
        r"|(?P<whole>\d+)[.,][-–—]"
    )


def _years(text: str, *, is_description: bool) -> Iterator[int]:
    """Yield the years in a text that may be vintages; of a wine's description all recent ones."""
    for found in YEAR.finditer(_amount_pattern().sub(" ", unicodedata.normalize("NFKC", text))):
        year, before = int(found["year"]), found["before"] or ""
        is_decade = year % 10 == 0 and found["ending"] in ("s", "er")
        is_event = fold(before) in _words("when") and not is_description
        may_be_vintage = year >= FIRST_VINTAGE or before[:1].isupper()
        if may_be_vintage and not (is_decade or is_event):
            yield year


def _scores(text: str) -> Iterator[float]:
    """Yield the scores in a text: so many points, or out of 20 or 100."""
    for found in SCORE.finditer(spell_in_digits(text)):
        points = parse_number(found["over"] or found["of"] or found["number"])
        is_of_points = (found["whole"] or found["unit"]) in _words("points")
        is_score = found["over"] or found["of"] or points >= LEAST_POINTS
        if is_score and (found["over"] or is_of_points):
            yield points


def _strengths(text: str) -> set[float]:
    """Return the strengths of alcohol in a text, in percent."""
    return {parse_number(found[1]) for found in STRENGTH.finditer(fold(text))}


@cache
def _words(name: str) -> frozenset[str]:
    """Return the words of `figures.toml` that stand before a year, or behind points."""
    file = Path(__file__).with_name("figures.toml")
    return read_toml(dict[str, WordSet], file)[name]

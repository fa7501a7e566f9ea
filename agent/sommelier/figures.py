"""Find the figures in prose: amounts of money, years, scores, alcohol strengths.

They are read in all languages of `languages/`, by their words for numbers, currencies, scores and
events.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from agent.languages import load_languages
from agent.numerals import NUMBER, parse_number, replace_number_words
from agent.sommelier.vocabulary import Currency, currencies_by_word
from agent.text import Pattern, compose_compatible, escape_pattern, fold, pattern

YEAR: Final = pattern(
    r"(?:(?P<before>\p{L}+)[\s(]+|\A|[^\p{L}\d.,])(?P<year>(?:18|19|20)\d\d)(?P<ending>\p{L}*)(?:\D|\Z)"
)
"""A year, with the word before it and the letters after it: `Barolo 2016`, `the 1990s`."""
STRENGTH: Final = pattern(
    r"(\d{1,2}(?:[.,]\d)?)\s?%\s?(?:d\p{L}*\s)?(?:vol|alc|alk|abv)"
)
WITHOUT_FIXED_SPACES: Final = str.maketrans(dict.fromkeys("\u00a0\u202f"))
UNITS: Final = "c?l|ml|hl|k?g|ha|vol|uhr|h"
"""If one of these follows a number like 12.50, the number is not a price."""
MIN_VINTAGE: Final = 1950
"""Earlier years in prose count as vintages only after a capitalized word, as in a name."""
MIN_SCORE: Final = 50
"""A lower number of points is not a score."""


class Amount(NamedTuple):
    """An amount of money in prose; `currencies` is empty if the text names no currency."""

    text: str
    value: float
    currencies: frozenset[Currency]


def find_amounts(text: str) -> Iterator[Amount]:
    """Yield the amounts of money in a text, with their currencies."""
    # "1 234 €" has a space that must not break; folded, it would be one between two numbers.
    joined = NUMBER.sub(lambda number: number[0].translate(WITHOUT_FIXED_SPACES), text)
    for match in _amount_pattern().finditer(replace_number_words(joined)):
        if match["unit"]:  # 12.50 % is not a price
            continue
        groups = map(
            match.__getitem__, ("number_after", "number_before", "decimal", "whole")
        )
        number = next(filter(None, groups))
        currency_word = match[0].replace(number, " ").strip(" .,-–—;:!?)(")
        currencies = currencies_by_word().get(currency_word, frozenset())
        yield Amount(match[0].strip(" .,;:!?)("), parse_number(number), currencies)


@cache
def _amount_pattern() -> Pattern:
    """Return a pattern of amounts: with a currency (€18, 18 euros), or decimals (18.50, 18,-)."""
    signs = "|".join(
        escape_pattern(word) for word in currencies_by_word() if not word.isalpha()
    )
    names = "|".join(word for word in currencies_by_word() if word.isalpha())
    number, word_end = r"\d+(?:[.,’']\d+)*", r"(?:[^\p{L}]|\Z)"
    return pattern(
        rf"(?i)(?:{signs}|\p{{Sc}}|(?:\A|[^\p{{L}}])(?:{names})\s)\s?(?P<number_after>{number})"
        rf"|(?P<number_before>{number})(?:[.,]?[-–—])?[\s-]?(?:{signs}|\p{{Sc}}|(?:{names}){word_end})"
        rf"|(?P<decimal>\d+[.,]\d\d)(?:(?P<unit>\s?(?:[%°]|(?:{UNITS}){word_end}))|\D|\Z)"
        r"|(?P<whole>\d+)[.,][-–—]"
    )


def find_years(text: str, *, is_description: bool) -> Iterator[int]:
    """Yield the years that may be vintages; "in 1998" is one only in descriptions."""
    prose = _amount_pattern().sub(" ", compose_compatible(text))
    for match in YEAR.finditer(prose):
        year, word_before = int(match["year"]), match["before"] or ""
        is_decade = year % 10 == 0 and match["ending"] in ("s", "er")
        is_event = fold(word_before) in _event_words() and not is_description
        may_be_vintage = year >= MIN_VINTAGE or word_before[:1].isupper()
        if may_be_vintage and not (is_decade or is_event):
            yield year


def find_scores(text: str) -> Iterator[float]:
    """Yield the scores in a text: 92 points, 17.5/20, 92 of 100 points."""
    for match in _score_pattern().finditer(replace_number_words(text)):
        score = parse_number(match["over"] or match["of"] or match["number"])
        has_unit = (match["of_unit"] or match["unit"]) in _score_units()
        is_high_enough = match["of"] or score >= MIN_SCORE
        if match["over"] or (has_unit and is_high_enough):
            yield score


def find_strengths(text: str) -> set[float]:
    """Return the alcohol strengths in a text, in percent."""
    return {parse_number(match[1]) for match in STRENGTH.finditer(fold(text))}


@cache
def _score_pattern() -> Pattern:
    """Return a pattern of possible scores: `17/20`, `92 of 100 points`, `92+ Parker points`."""
    languages = load_languages().values()
    of = "|".join(
        sorted({fold(words) for language in languages for words in language.score_of})
    )
    return pattern(
        r"(?P<over>\d+(?:[.,]\d)?)\s?/\s?(?:20|100)"
        rf"|(?P<of>\d+(?:[.,]\d)?)\s(?:{of})\s(?:20|100)[\s-](?P<of_unit>\p{{L}}+)"
        r"|(?P<number>\d+(?:[.,]\d)?)\+?[\s-]?(?:\p{L}+[\s-])??(?P<unit>\p{L}+)"
    )


@cache
def _score_units() -> frozenset[str]:
    languages = load_languages().values()
    return frozenset(
        fold(word) for language in languages for word in language.score_units
    )


@cache
def _event_words() -> frozenset[str]:
    languages = load_languages().values()
    return frozenset(
        fold(word) for language in languages for word in language.event_words
    )

"""Read the figures of prose: amounts of money, years that may be vintages, and scores.

In seven languages, by the words of `figures.toml`, `currencies.toml` and `agent.numerals`.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from agent.numerals import in_digits, value
from agent.sommelier.wine import Currency, currency_words
from agent.tables import StrictModel, Words, read_toml
from agent.text import Pattern, escape, fold, pattern

YEAR: Final = pattern(
    r"(?:(?P<before>\p{L}+)[\s(]+|\A|[^\p{L}\d.,])(?P<year>(?:18|19|20)\d\d)(?P<ending>\p{L}*)(?:\D|\Z)"
)
SCORE: Final = pattern(
    r"(?P<over>\d+(?:[.,]\d)?)\s?/\s?(?:20|100)"
    r"|(?P<of>\d+(?:[.,]\d)?)\s(?:von|of|out of|sur|su|de|van)\s(?:20|100)[\s-](?P<whole>\p{L}+)"
    r"|(?P<number>\d+(?:[.,]\d)?)\+?[\s-]?(?:\p{L}+[\s-])??(?P<unit>\p{L}+)"
)
STRENGTH: Final = pattern(r"(\d{1,2}(?:[.,]\d)?)\s?%\s?(?:d\p{L}*\s)?(?:vol|alc|alk|abv)")
FIRST_VINTAGE: Final = 1950
"""From which year on a year in prose is read as a vintage; an older one only behind a name."""
LEAST_POINTS: Final = 50
"""From which number on points are a score, and no list of points."""
ROUNDED: Final = 0.5
"""The greatest distance of a whole amount from the amount that it rounds."""
CENT: Final = 0.005
MEASURES: Final = "c?l|ml|hl|k?g|ha|vol|uhr|h"
"""Units after a number with two decimals that is no price."""


class _Tables(StrictModel):
    """The content of `figures.toml`."""

    points: Words
    when: Words


@cache
def _tables() -> _Tables:
    return read_toml(_Tables, Path(__file__).with_suffix(".toml"))


@cache
def _amount() -> Pattern:
    """Return a pattern of amounts: with a sign, a code or a word, or with two decimals."""
    signs = "|".join(escape(word) for word in currency_words() if not word.isalpha())
    names = "|".join(word for word in currency_words() if word.isalpha())
    number, apart = r"\d+(?:[.,]\d+)*", r"(?:[^\p{L}]|\Z)"
    return pattern(
        rf"(?i)(?:{signs}|\p{{Sc}}|(?:\A|[^\p{{L}}])(?:{names})\s)\s?(?P<after>{number})"
        rf"|(?P<before>{number})(?:[.,]?[-–—])?[\s-]?(?:{signs}|\p{{Sc}}|(?:{names}){apart})"
        rf"|(?P<bare>\d+[.,]\d\d)(?:(?P<unit>\s?(?:[%°]|(?:{MEASURES}){apart}))|\D|\Z)"
        r"|(?P<whole>\d+)[.,][-–—]"
    )


class Amount(NamedTuple):
    """An amount of money in prose, and the currencies that it may be in; none if it names none."""

    text: str
    value: float
    currencies: frozenset[Currency]

    def is_one_of(self, prices: set[float]) -> bool:
        """Tell whether it is one of these prices; a whole amount may be rounded."""
        margin = ROUNDED if self.value.is_integer() else CENT
        return any(abs(self.value - price) <= margin for price in prices)


def amounts(text: str) -> Iterator[Amount]:
    """Yield the amounts of money in a text."""
    for found in _amount().finditer(in_digits(text)):
        if found["unit"]:
            continue
        number = next(filter(None, map(found.__getitem__, ("after", "before", "bare", "whole"))))
        named = found[0].replace(number, " ").strip(" .,-–—;:!?)(")
        currencies = currency_words().get(named, frozenset())
        yield Amount(found[0].strip(" .,;:!?)("), value(number), currencies)


def years(text: str, *, is_description: bool = False) -> Iterator[int]:
    """Yield the years in a text that may be vintages; of a wine's description all recent ones."""
    for found in YEAR.finditer(_amount().sub(" ", unicodedata.normalize("NFKC", text))):
        year, before = int(found["year"]), found["before"] or ""
        is_decade = year % 10 == 0 and found["ending"] in ("s", "er")
        is_event = fold(before) in _tables().when and not is_description
        may_be_vintage = year >= FIRST_VINTAGE or before[:1].isupper()
        if may_be_vintage and not (is_decade or is_event):
            yield year


def scores(text: str) -> Iterator[float]:
    """Yield the scores in a text: so many points, or out of 20 or 100."""
    for found in SCORE.finditer(in_digits(text)):
        points = value(found["over"] or found["of"] or found["number"])
        is_of_points = (found["whole"] or found["unit"]) in _tables().points
        is_score = found["over"] or found["of"] or points >= LEAST_POINTS
        if is_score and (found["over"] or is_of_points):
            yield points


def strengths(text: str) -> frozenset[float]:
    """Return the strengths of alcohol in a text, in percent."""
    return frozenset(value(found[1]) for found in STRENGTH.finditer(fold(text)))

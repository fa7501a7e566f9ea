"""Find the figures in prose: amounts of money, years, scores, alcohol strengths.

Figures are read in all languages of `languages/`, by the words for numbers, currencies, scores and
events of each language.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from agent.languages import load_languages
from agent.numerals import (
    NUMBER,
    find_numbers,
    parse_number,
    replace_number_words,
)
from agent.sommelier.vocabulary import Currency, currencies_by_word
from agent.text import (
    UNSPACED_SCRIPTS,
    Pattern,
    compose_compatible,
    escape_pattern,
    fold,
    pattern,
    split_words,
)

YEAR: Final = pattern(
    r"(?:(?P<before>\p{L}+)[\s(]+|\A|[^\p{L}\d.,])"
    r"(?P<year>(?:18|19|20)\d\d)"
    r"(?P<ending>\p{L}*)(?:\D|\Z)"
)
"""A year, with the word before it and the letters after it: `Barolo 2016`, `the 1990s`."""
STRENGTH: Final = pattern(
    r"(\d{1,2}(?:[.,]\d)?)\s?%\s?(?:d\p{L}*\s)?(?:vol|alc|alk|abv)"
)
"""An alcohol strength: `13,5 % vol`, `12% d'alcool`."""
WITHOUT_FIXED_SPACES: Final = str.maketrans(dict.fromkeys("\u00a0\u202f"))
AROUND_AMOUNTS: Final = " .,;:!?)("
AROUND_CURRENCIES: Final = AROUND_AMOUNTS + "-–—"
"""The signs around the amount in a match, or around its currency without the number."""
UNITS: Final = "c?l|ml|hl|k?g|ha|vol|uhr|h"
"""If one of these follows a number like 12.50, the number is not a price."""
MIN_VINTAGE: Final = 1950
"""An earlier year in prose is a vintage only after a capitalized word, as in "Barolo 1945"."""
MIN_SCORE: Final = 50
"""A lower number of points is not a score."""
CRITIC_SCORES: Final = range(80, 101)
"""The numbers that are scores if they stand near the name of a critic."""
MAX_WORDS_TO_CRITIC: Final = 5
"""The most words from a score to the name of a critic: "92 points in the guide of Parker"."""
MINUTES: Final = "min"
"""The beginning of the word for minutes in most languages, as in "90 minutes in a decanter"."""
NO_POINTS: Final = pattern(r"分[钟鐘之間前後\u3040-\u30ff]")
"""A Chinese word that only begins like "points", or Japanese minutes: "90分ほど"."""


class Amount(NamedTuple):
    """An amount of money in prose. `currencies` is empty if the text names no currency."""

    text: str
    value: float
    currencies: frozenset[Currency]


def find_amounts(text: str) -> Iterator[Amount]:
    """Yield the amounts of money in a text, with their currencies."""
    for match in _amount_pattern().finditer(_write_digits(text)):
        if match["unit"]:  # 12.50 % is not a price
            continue
        number = (
            match["number_after"]
            or match["number_before"]
            or match["decimal"]
            or match["whole"]
        )
        currency_word = match[0].replace(number, " ").strip(AROUND_CURRENCIES)
        currencies = currencies_by_word().get(currency_word, frozenset())
        amount_text = match[0].strip(AROUND_AMOUNTS)
        yield Amount(amount_text, parse_number(number), currencies)


def find_other_numbers(text: str) -> frozenset[float]:
    """Return the numbers of a text that are not amounts of money, such as counts of bottles."""
    return find_numbers(_amount_pattern().sub(" ", _write_digits(text)))


def _write_digits(text: str) -> str:
    """Return the folded text with all numbers in digits that have no spaces.

    Without this, "1 234 €" would be read as two numbers.
    """
    joined = NUMBER.sub(lambda number: number[0].translate(WITHOUT_FIXED_SPACES), text)
    return replace_number_words(joined)


@cache
def _amount_pattern() -> Pattern:
    """Return a pattern of amounts.

    An amount has a currency ("€18", "18 euros"), or else decimals ("18.50", "18,-").
    """
    signs: list[str] = []
    names: list[str] = []
    for word in currencies_by_word():
        if word.isalpha() and not UNSPACED_SCRIPTS.search(word):
            names.append(word)
        else:
            signs.append(escape_pattern(word))
    sign = rf"{'|'.join(signs)}|\p{{Sc}}"
    name = f"(?:{'|'.join(names)})"
    word_end = r"(?:[^\p{L}]|\Z)"
    number = r"\d+(?:[.,’']\d+)*"
    before = rf"(?:{sign}|(?:\A|[^\p{{L}}]){name}\s)\s?"
    after = rf"(?:[.,]?[-–—])?[\s-]?(?:{sign}|{name}{word_end})"
    other_unit = rf"\s?(?:[%°]|(?:{UNITS}){word_end})"
    return pattern(
        rf"(?i){before}(?P<number_after>{number})"
        rf"|(?P<number_before>{number}){after}"
        rf"|(?P<decimal>\d+[.,]\d\d)(?:(?P<unit>{other_unit})|\D|\Z)"
        r"|(?P<whole>\d+)[.,][-–—]"
    )


def find_years(text: str, *, is_description: bool) -> Iterator[int]:
    """Yield the years that may be vintages.

    "In 1998" may be a vintage only in a description of a wine. Elsewhere it is the year of an
    event.
    """
    prose = _amount_pattern().sub(" ", compose_compatible(text))
    for match in YEAR.finditer(prose):
        year = int(match["year"])
        word_before = match["before"] or ""
        is_decade = year % 10 == 0 and match["ending"] in ("s", "er")
        is_event = not is_description and fold(word_before) in _words_of_languages(
            "event_words"
        )
        may_be_vintage = year >= MIN_VINTAGE or word_before[:1].isupper()
        if may_be_vintage and not (is_decade or is_event):
            yield year


def find_scores(text: str) -> Iterator[float]:
    """Yield the scores in a text: 92 points, 17.5/20, 92 of 100 points, 92 from a critic."""
    folded = replace_number_words(text)
    for match in _score_pattern().finditer(folded):
        if match["over"]:
            yield parse_number(match["over"])
        elif match["of"] and _is_score_unit(match["of_unit"]):
            yield parse_number(match["of"])
        elif match["of_100"]:
            score = parse_number(match["of_100"])
            if score >= MIN_SCORE:
                yield score
        elif match["number"] and _is_score_unit(match["unit"]):
            score = parse_number(match["number"])
            if score >= MIN_SCORE:
                yield score
    yield from _find_critic_scores(split_words(folded))


def _is_score_unit(letters: str) -> bool:
    """Return whether letters after a number are a unit of scores.

    In a script without spaces, they may begin with one: "92点を獲得".
    """
    units = _words_of_languages("score_units")
    if letters in units:
        return True
    if NO_POINTS.match(letters):
        return False
    for unit in units:
        if UNSPACED_SCRIPTS.fullmatch(unit) and letters.startswith(unit):
            return True
    return False


def _find_critic_scores(words: Sequence[str]) -> Iterator[float]:
    """Yield the numbers in a list of words that may be scores, for a critic stands near them."""
    for index, word in enumerate(words):
        if not word.isdecimal() or int(word) not in CRITIC_SCORES:
            continue
        before = words[max(0, index - MAX_WORDS_TO_CRITIC) : index]
        after = words[index + 1 : index + 1 + MAX_WORDS_TO_CRITIC]
        if after and after[0].startswith(MINUTES):  # in a decanter
            continue
        nearby = f" {' '.join(before)} | {' '.join(after)} "
        if _critic_pattern().search(nearby):
            yield float(word)


@cache
def _critic_pattern() -> Pattern:
    """Return a pattern of the names of critics, as words between spaces."""
    names: list[str] = []
    for language in load_languages().values():
        for name in filter(None, language.critics.split(",")):
            words = " ".join(split_words(name))
            if name.endswith("*"):
                words += r"\w*"
            names.append(words)
    return pattern(f" (?:{'|'.join(names)}) ")


def find_strengths(text: str) -> set[float]:
    """Return the alcohol strengths in a text, in percent."""
    return {parse_number(match[1]) for match in STRENGTH.finditer(fold(text))}


@cache
def _score_pattern() -> Pattern:
    """Return a pattern of possible scores, such as `17/20`, `92 of 100` and `92+ Parker points`."""
    of = "|".join(sorted(_words_of_languages("score_of")))
    score = r"\d+(?:[.,]\d)?"
    return pattern(
        rf"(?P<over>{score})\s?/\s?(?:20|100)"
        rf"|(?P<of>{score})\s(?:{of})\s(?:20|100)[\s-](?P<of_unit>\p{{L}}+)"
        rf"|(?P<of_100>{score})\s(?:{of})\s100\b"
        rf"|(?P<number>{score})\+?[\s-]?(?:\p{{L}}+[\s-])??(?P<unit>\p{{L}}+)"
    )


@cache
def _words_of_languages(field: str) -> frozenset[str]:
    """Return the words that all languages have in a field, folded."""
    words: set[str] = set()
    for language in load_languages().values():
        words.update(map(fold, getattr(language, field)))
    return frozenset(words)

"""Find numbers in prose, in digits and in the words of all languages of `languages/`.

The value of a number is computed from its words one after the other: "twenty-four" is 20 + 4,
"vierundzwanzig" 4 + 20, "quatre-vingt-dix" 4 * 20 + 10, "two hundred" 2 * 100, "fünfzehn" 5 + 10.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from agent.languages import load_languages
from agent.text import Match, Pattern, compose_compatible, fold, pattern

NUMBER: Final = pattern(r"\d+(?:[.,’']\d+|[\u00a0\u202f]\d{3}\b)*")
"""A number in digits: "1.5", "1'500,00", "20 000"."""
SEPARATORS: Final = ",’'\u00a0\u202f"
SEPARATORS_TO_STOPS: Final = str.maketrans(dict.fromkeys(SEPARATORS, "."))
THOUSANDS_DIGITS: Final = 3
"""The number of digits between two separators of thousands."""
MULTIPLIERS: Final = frozenset({100, 1000})
TEN: Final = 10
"""To ten and its multiples, a unit may be added: "twenty-four", "sixty-one"."""
FOUR: Final = 4
TWENTY: Final = 20
FRENCH_SCORES: Final = frozenset({60, 80})
"""The French numbers to which 10 to 19 are added: "soixante-quinze" is 75."""
TENS: Final = range(20, 100)
"""The numbers that may follow a unit in one word: "vierundzwanzig"."""
YEARS: Final = range(1900, 2101)
"""The numbers that are read as years, such as vintages, where nothing says otherwise."""


def is_year(word: str) -> bool:
    """Return whether a word is a number that is read as a year."""
    return word.isdecimal() and int(word) in YEARS


def parse_number(number: str) -> float:
    """Return the value of digits such as `1.5`, `1,5` or `1'500,00`.

    Three digits after the last separator are thousands: `1.500` is 1500. Only after a zero they are
    decimals: `0.500` is one half.
    """
    unified = number.translate(SEPARATORS_TO_STOPS)
    before, separator, after = unified.rpartition(".")
    digits = before.replace(".", "")
    is_thousands = len(after) == THOUSANDS_DIGITS and before != "0"
    if not separator or is_thousands:
        return float(f"{digits}{after}")
    return float(f"{digits}.{after}")


def find_numbers(text: str) -> frozenset[float]:
    """Return all numbers of a text, in digits or in words."""
    numbers = NUMBER.findall(text)
    numbers_in_words = NUMBER.findall(replace_number_words(text))
    return frozenset(map(parse_number, [*numbers, *numbers_in_words]))


def replace_number_words(text: str) -> str:
    """Return the folded text with digits in place of its number words."""
    folded = fold(compose_compatible(text))
    return _load_numerals().number.sub(_to_digits, folded)


def _to_digits(match: Match) -> str:
    """Return the numbers in a run of number words, in digits and separated by spaces."""
    numbers = _read_numbers(match[0])
    return " ".join(str(number.value) for number in numbers)


class NumberInWords(NamedTuple):
    """A number in a list of words. Its words are those from index `start` to before `end`."""

    value: int
    start: int
    end: int


def find_number_words(words: Sequence[str]) -> list[NumberInWords]:
    """Return the numbers that folded words express, such as 24 for ["twenty", "four"]."""
    text = " ".join(words)
    numbers = []
    for match in _load_numerals().number.finditer(text):
        run = match[0]
        for number in _read_numbers(run):
            # A word has as many spaces before it as there are words before it.
            position = match.start() + number.start
            start = text.count(" ", 0, position)
            word_count = 1 + run.count(" ", number.start, number.end)
            in_words = NumberInWords(number.value, start, start + word_count)
            numbers.append(in_words)
    return numbers


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that is read from `run[start:end]`, and its last word."""

    value: int
    start: int
    end: int
    word: str


def _read_numbers(run: str) -> list[_Number]:
    """Return the numbers in a run of number words."""
    numerals = _load_numerals()
    numbers: list[_Number] = []
    for match in numerals.word.finditer(run):
        word = match[0]
        start, end = match.span()
        number = _Number(numerals.values[word], start, end, word)
        if not numbers:
            numbers.append(number)
            continue
        last = numbers[-1]
        joint = run[last.end : start]
        joined = _join(last, joint, number)
        if joined is None:
            numbers.append(number)
        else:
            numbers[-1] = joined
    return numbers


def _join(
    first: _Number,
    joint: str,
    second: _Number,
) -> _Number | None:
    """Return the number that two parts make, or None if the second begins another number."""
    if not _may_join(first.word, joint, second.word):
        return None
    if second.value in MULTIPLIERS:
        value = first.value * second.value
    elif first.value == FOUR and second.word.startswith("vingt"):  # quatre-vingt
        value = FOUR * second.value
    elif _may_add(first.value, second.value, joint):
        value = first.value + second.value
    else:
        return None
    return _Number(value, first.start, second.end, second.word)


def _may_join(
    first: str,
    joint: str,
    second: str,
) -> bool:
    """Return whether `joint` may join two number words, such as "a" in the Czech "pětadvacet"."""
    joint = joint.strip(" -")
    if not joint:
        return True
    languages = _load_numerals().languages
    for code in languages[first] & languages[second]:
        if joint == fold(load_languages()[code].numeral_joint):
            return True
    return False


def _may_add(
    first: int,
    second: int,
    joint: str,
) -> bool:
    """Return whether the values of two parts of a number are added."""
    if first % 100 == 0:
        return True
    if first < TEN:
        # "Vierundzwanzig" is one number, but "between four and twenty" has two.
        is_one_word = joint == joint.strip()
        is_german_teen = second == TEN and not joint
        return is_german_teen or (is_one_word and second in TENS)
    if first in FRENCH_SCORES:
        return second < TWENTY
    return first % TEN == 0 and second < TEN


class _Numerals(NamedTuple):
    """The number words with their values and languages, and patterns of a word and a number."""

    values: Mapping[str, int]
    languages: Mapping[str, frozenset[str]]
    word: Pattern
    number: Pattern


@cache
def _load_numerals() -> _Numerals:
    values: dict[str, int] = {}
    languages: dict[str, frozenset[str]] = {}
    joints: set[str] = set()
    for code, language in load_languages().items():
        if language.numeral_joint:
            joints.add(fold(language.numeral_joint))
        for value, words in language.numerals.items():
            for word in map(fold, words):
                languages_before = languages.get(word, frozenset())
                languages[word] = languages_before | {code}
                values[word] = value
    any_word = _match_any(values)
    joint = rf"(?:[\s-]?(?:{_match_any(joints)})?[\s-]?)"
    number = rf"\b(?:(?:{any_word}){joint})*(?:{any_word})\b"
    return _Numerals(values, languages, pattern(any_word), pattern(number))


def _match_any(words: Iterable[str]) -> str:
    """Return the source of a pattern that matches any of the words."""
    # The longest words come first, because a pattern takes the first alternative that fits.
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(longest_first)

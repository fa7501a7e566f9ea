"""Find numbers in prose, in digits and in the words of all languages of `languages/`.

The value of a number is computed from its words one after the other: "twenty-four" is 20 + 4,
"vierundzwanzig" 4 + 20, "quatre-vingt-dix" 4 * 20 + 10, "two hundred" 2 * 100, "fünfzehn" 5 + 10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from agent.languages import load_languages
from agent.text import Match, Pattern, compose_compatible, fold, pattern

NUMBER: Final = pattern(r"\d+(?:[.,’']\d+|[\u00a0\u202f]\d{3}\b)*")
"""A number in digits: "1.5", "1'500,00", "20 000"."""
SEPARATORS_TO_STOPS: Final = str.maketrans(dict.fromkeys(",’'\u00a0\u202f", "."))
THOUSANDS_DIGITS: Final = 3
MULTIPLIERS: Final = frozenset({100, 1000})
ROUND_NUMBER: Final = 10
"""After a number of at least this, a smaller number may be added: "twenty-four", "sixty-one"."""
FOUR: Final = 4
FRENCH_SCORES: Final = frozenset({60, 80})
"""The French numbers to which 10 to 19 are added: "soixante-quinze" is 75."""
TENS: Final = range(20, 100)
"""The numbers that may follow a unit in one word: "vierundzwanzig"."""


def parse_number(number: str) -> float:
    """Return the value of digits such as `1.5`, `1,5` or `1'500,00`.

    If three digits follow the last separator, they are no decimals: `1.500` is 1500. Only after a
    zero they are: `0.500` is one half.
    """
    whole, separator, last_part = number.translate(SEPARATORS_TO_STOPS).rpartition(".")
    digits = whole.replace(".", "")
    has_thousands = len(last_part) == THOUSANDS_DIGITS and whole != "0"
    if not separator or has_thousands:
        return float(f"{digits}{last_part}")
    return float(f"{digits}.{last_part}")


def find_numbers(text: str) -> frozenset[float]:
    """Return all numbers of a text, in digits or in words."""
    numbers = NUMBER.findall(text)
    numbers += NUMBER.findall(replace_number_words(text))
    return frozenset(map(parse_number, numbers))


def replace_number_words(text: str) -> str:
    """Return the folded text with digits in place of its number words."""
    folded = fold(compose_compatible(text))
    return _numerals().number.sub(_to_digits, folded)


def _to_digits(match: Match) -> str:
    """Return the numbers in a run of number words, in digits and separated by spaces."""
    values = [str(number.value) for number in _read_numbers(match[0])]
    return " ".join(values)


class NumberInWords(NamedTuple):
    """A number in a list of words. Its words are those from index `start` to before `end`."""

    value: int
    start: int
    end: int


def find_number_words(words: Sequence[str]) -> list[NumberInWords]:
    """Return the numbers that folded words express, such as 24 for ["twenty", "four"]."""
    text = " ".join(words)
    numbers = []
    for match in _numerals().number.finditer(text):
        for number in _read_numbers(match[0]):
            start = text.count(" ", 0, match.start() + number.start)
            end = start + 1 + match[0].count(" ", number.start, number.end)
            numbers.append(NumberInWords(number.value, start, end))
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
    numerals = _numerals()
    numbers: list[_Number] = []
    for match in numerals.word.finditer(run):
        word = match[0]
        number = _Number(numerals.values[word], match.start(), match.end(), word)
        if numbers:
            last = numbers[-1]
            joint = run[last.end : number.start]
            if _may_join(last.word, joint, word):
                value = _join(last.value, number.value, word, joint)
                if value is not None:
                    numbers[-1] = _Number(value, last.start, number.end, word)
                    continue
        numbers.append(number)
    return numbers


def _may_join(first: str, joint: str, second: str) -> bool:
    """Return whether `joint` may join two number words, such as "a" in the Czech "pětadvacet"."""
    joint = joint.strip(" -")
    if not joint:
        return True
    numerals = _numerals()
    for code in numerals.languages[first] & numerals.languages[second]:
        if joint == fold(load_languages()[code].numeral_joint):
            return True
    return False


def _join(last: int, value: int, word: str, joint: str) -> int | None:
    """Return the number that two parts make, or None if the second begins another number."""
    if value in MULTIPLIERS:
        return last * value
    if last == FOUR and word.startswith("vingt"):  # quatre-vingt
        return FOUR * value
    if last % 100 == 0:
        may_add = True
    elif last < ROUND_NUMBER:
        # "Vierundzwanzig" is one number, but "between four and twenty" has two.
        is_one_word = joint == joint.strip()
        is_german_teen = value == ROUND_NUMBER and not joint
        may_add = is_german_teen or (value in TENS and is_one_word)
    elif last in FRENCH_SCORES:
        may_add = value < 20
    else:
        may_add = last % ROUND_NUMBER == 0 and value < ROUND_NUMBER
    if not may_add:
        return None
    return last + value


class _Numerals(NamedTuple):
    """The number words with their values and languages, and patterns of a word and a number."""

    values: Mapping[str, int]
    languages: Mapping[str, frozenset[str]]
    word: Pattern
    number: Pattern


@cache
def _numerals() -> _Numerals:
    values: dict[str, int] = {}
    languages: dict[str, frozenset[str]] = {}
    for code, language in load_languages().items():
        for value, words in language.numerals.items():
            for word in map(fold, words):
                values[word] = value
                languages[word] = languages.get(word, frozenset()) | {code}
    joints = set()
    for language in load_languages().values():
        if language.numeral_joint:
            joints.add(fold(language.numeral_joint))
    # The longest words come first, because a pattern takes the first alternative that fits.
    any_word = "|".join(sorted(values, key=len, reverse=True))
    any_joint = "|".join(sorted(joints, key=len, reverse=True))
    joint = rf"(?:[\s-]?(?:{any_joint})?[\s-]?)"
    number = rf"\b(?:(?:{any_word}){joint})*(?:{any_word})\b"
    return _Numerals(values, languages, pattern(any_word), pattern(number))

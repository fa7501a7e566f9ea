"""Find numbers in prose, in digits and in the words of seven languages. No I/O."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from agent.tables import read_toml
from agent.text import Match, Pattern, compose_compatible, fold, pattern

NUMBER: Final = pattern(r"\d+(?:[.,’']\d+|[\u00a0\u202f]\d{3}\b)*")
SEPARATORS_TO_STOPS: Final = str.maketrans(dict.fromkeys(",’'\u00a0\u202f", "."))


def parse_number(number: str) -> float:
    """Return the value of digits such as `1.5`, `1,5` or `1'500,00`.

    Three digits after the last separator are thousands (`1.500`), except after a zero (`0.500`).
    """
    whole, separator, last_part = number.translate(SEPARATORS_TO_STOPS).rpartition(".")
    digits = whole.replace(".", "")
    is_whole = not separator or (len(last_part) == 3 and whole != "0")
    return float(f"{digits}{last_part}" if is_whole else f"{digits}.{last_part}")


def find_numbers(text: str) -> frozenset[float]:
    """Return all numbers of a text, in digits or in words."""
    numbers = (*NUMBER.findall(text), *NUMBER.findall(replace_number_words(text)))
    return frozenset(map(parse_number, numbers))


def replace_number_words(text: str) -> str:
    """Return the folded text with digits in place of its number words."""
    folded = fold(compose_compatible(text))
    return _numerals().number.sub(_to_digits, folded)


def _to_digits(match: Match) -> str:
    """Return the numbers in a run of number words, in digits and separated by spaces."""
    numerals = _numerals()
    numbers, end = [0], 0
    for part in numerals.word.finditer(match[0]):
        word, joint = part[0], match[0][end : part.start()]
        end = part.end()
        number, last = numerals.values[word], numbers[-1]
        # "vierundzwanzig" is one number, "between four and twenty" has two.
        unit_before_ten = 0 < last < 10 and 20 <= number < 100 and joint == joint.strip()
        adds = last % 100 == 0 or (last % 10 == 0 and number < 10) or unit_before_ten
        if number in (100, 1000):
            numbers[-1] = max(last, 1) * number
        elif last == 4 and word.startswith("vingt"):  # quatre-vingt is 80
            numbers[-1] = 80
        elif adds or (last in (60, 80) and number < 20):  # soixante-quinze is 75
            numbers[-1] += number
        else:
            numbers.append(number)
    return " ".join(map(str, numbers))


class _Numerals(NamedTuple):
    """The number words with their values, and patterns of one word and of a whole number."""

    values: Mapping[str, int]
    word: Pattern
    number: Pattern


@cache
def _numerals() -> _Numerals:
    table = read_toml(dict[int, str], Path(__file__).with_suffix(".toml"))
    values = {word: number for number, words in table.items() for word in words.split()}
    word = "|".join(sorted(values, key=len, reverse=True))
    joint = r"(?:[\s-]?(?:und|and|et|y|e|en)?[\s-]?)"
    return _Numerals(values, pattern(word), pattern(rf"\b(?:(?:{word}){joint})*(?:{word})\b"))

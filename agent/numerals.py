"""Read the numbers of prose, in digits and in the words of seven languages. Pure."""

import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from agent.tables import read_toml
from agent.text import Match, Pattern, fold, pattern

NUMBER: Final = pattern(r"\d+(?:[.,’']\d+|[\u00a0\u202f]\d{3}\b)*")
SEPARATORS: Final = str.maketrans(dict.fromkeys(",’'\u00a0\u202f", "."))


def parse_number(number: str) -> float:
    """Return what digits are worth: 1.5, 1,5 and 1'500,00; three digits follow thousands."""
    whole, sign, rest = number.translate(SEPARATORS).rpartition(".")
    digits = whole.replace(".", "")
    is_whole = not sign or (len(rest) == 3 and whole != "0")
    return float(f"{digits}{rest}" if is_whole else f"{digits}.{rest}")


def find_numbers(text: str) -> frozenset[float]:
    """Return all numbers in a text, in digits or in words."""
    return frozenset(
        map(parse_number, (*NUMBER.findall(text), *NUMBER.findall(spell_in_digits(text))))
    )


def spell_in_digits(text: str) -> str:
    """Return a text, folded, with its numbers in words written in digits."""
    return _tables()[2].sub(_digits, fold(unicodedata.normalize("NFKC", text)))


def _digits(found: Match) -> str:
    values, numeral, _ = _tables()
    read, end = [0], 0
    for part in numeral.finditer(found[0]):
        word, joint, end = part[0], found[0][end : part.start()], part.end()
        number, last = values[word], read[-1]
        # "vierundzwanzig" is one number, "between four and twenty" has two.
        unit_before_ten = 0 < last < 10 and 20 <= number < 100 and joint == joint.strip()
        adds = last % 100 == 0 or (last % 10 == 0 and number < 10) or unit_before_ten
        if number in (100, 1000):
            read[-1] = max(last, 1) * number
        elif last == 4 and word.startswith("vingt"):
            read[-1] = 80
        elif adds or (last in (60, 80) and number < 20):
            read[-1] += number
        else:
            read.append(number)
    return " ".join(map(str, read))


@cache
def _tables() -> tuple[Mapping[str, int], Pattern, Pattern]:
    """Return numbers by their words, a pattern of such words, and one of whole numbers in words."""
    table = read_toml(dict[int, str], Path(__file__).with_suffix(".toml"))
    values = {word: number for number, words in table.items() for word in words.split()}
    one = "|".join(sorted(values, key=len, reverse=True))
    joined = r"(?:[\s-]?(?:und|and|et|y|e|en)?[\s-]?)"
    return values, pattern(one), pattern(rf"\b(?:(?:{one}){joined})*(?:{one})\b")

"""Amounts of money written as words: "under twenty euros", "unter fünfundzwanzig Euro". Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from agent.house_sommelier.lexicon import Language, Token, fold, stem, tokens
from agent.house_sommelier.prices import ends_in_limit, is_currency

_TO_NINETEEN: Final[Mapping[Language, str]] = {
    "en": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize dix-sept dix-huit dix-neuf",
    "es": "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve",
    "it": "uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici "
    "quindici sedici diciassette diciotto diciannove",
    "nl": "een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien "
    "zestien zeventien achttien negentien",
}
_TENS: Final[Mapping[Language, str]] = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
}
_HUNDRED: Final = "hundred one-hundred a-hundred hundert einhundert cent cien cento honderd".split()
_LINKS: Final = frozenset("to and bis und a et y e en tot hasta".split())
_LONGEST: Final = 4
_SURELY_MONEY: Final = 5


def in_digits(text: str) -> str:
    """`text` with amounts in digits: words that a currency follows, or that a limit precedes."""
    words = tokens(text)
    numbers = {start: (end, value) for start, end, value in _numbers(words)}
    kept, at, last = "", 0, -1
    for start, (end, value) in numbers.items():
        is_upper_end = last == start - 1 and words[last].stem in _LINKS
        if is_upper_end or _is_amount(text, words, start, numbers):
            kept += f"{text[at : words[start].start]}{value}"
            at, last = words[end - 1].end, end
    return kept + text[at:]


def _numbers(words: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """Where numbers in words start and end, and their values, the longest first."""
    stems = [word.stem for word in words]
    at = 0
    while at < len(words):
        lengths = range(min(_LONGEST, len(words) - at), 0, -1)
        keys = ((length, tuple(stems[at : at + length])) for length in lengths)
        length, value = next(((n, _values()[key]) for n, key in keys if key in _values()), (1, 0))
        if value:
            yield at, at + length, value
        at += length


def _is_amount(
    text: str, words: Sequence[Token], start: int, numbers: Mapping[int, tuple[int, int]]
) -> bool:
    end, value = numbers[start]
    following = words[end].written if end < len(words) else ""
    if is_currency(following) or is_currency(text[words[end - 1].end :].lstrip()[:1]):
        return True
    if fold(following) in _LINKS and end + 1 in numbers:
        return _is_amount(text, words, end + 1, numbers) or _is_limited(text, words, start, value)
    return _is_limited(text, words, start, value)


def _is_limited(text: str, words: Sequence[Token], start: int, value: int) -> bool:
    return value >= _SURELY_MONEY and ends_in_limit(text[: words[start].start])


@cache
def _values() -> Mapping[tuple[str, ...], int]:
    """The numbers from 2 to 100 in six languages, as stems."""
    named = dict.fromkeys(_HUNDRED, 100)
    for language, first in _TO_NINETEEN.items():
        small = first.split()
        named |= {name: value for value, name in enumerate(small, start=1) if value > 1}
        for place, ten in enumerate(_TENS[language].split(), start=2):
            named[ten] = place * 10
            above = small if language == "fr" and place in (6, 8) else small[:9]
            for value, unit in enumerate(above, start=1):
                named |= dict.fromkeys(_compounds(language, ten, unit), place * 10 + value)
    return {
        tuple(stem(fold(word)) for word in name.split("-")): value for name, value in named.items()
    }


def _compounds(language: Language, ten: str, unit: str) -> tuple[str, ...]:
    """A ten and a unit as one number; hyphens stand between its words."""
    match language:
        case "de":
            return (f"{unit}und{ten}",)
        case "nl":
            return (f"{unit}en{ten}",)
        case "it":
            return (f"{ten[:-1] if unit in ('uno', 'otto') else ten}{unit}",)
        case "es":
            return (f"veinti{unit}",) if ten == "veinte" else (f"{ten}-y-{unit}",)
        case "fr":
            return (f"{ten}-{unit}", f"{ten}-et-{unit}")
        case _:
            return (f"{ten}-{unit}",)

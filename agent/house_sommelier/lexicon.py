"""What words mean: the tables of phrases, read once, and the longest-match scan over a text.

A table is text. A line at the margin says what the phrases below it mean: `field value, value`,
several joined by `;`. An indented line holds phrases, separated by commas, after a language code
(`en de fr es it nl`, or `*` for all). Under a field without a value, `= Name, synonym; Name` lists
entries whose value is `Name`. Phrases match whole words, whatever their case, accents, hyphens
and plural.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple, get_args

from agent.house_sommelier.countries import FURTHER_COUNTRIES
from agent.house_sommelier.desserts import DESSERTS
from agent.house_sommelier.dutch import DUTCH
from agent.house_sommelier.foods import FOODS
from agent.house_sommelier.meats import MEATS
from agent.house_sommelier.negations import NEGATIONS
from agent.house_sommelier.origins import ORIGINS
from agent.house_sommelier.places import COUNTRIES, GRAPES, REGIONS
from agent.house_sommelier.seafood import SEAFOOD
from agent.house_sommelier.styles import STYLES
from agent.house_sommelier.superlatives import SUPERLATIVES
from agent.house_sommelier.vegetables import VEGETABLES

Language = Literal["en", "de", "fr", "es", "it", "nl"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)

_TABLES: Final = (
    FOODS,
    STYLES,
    DUTCH,
    MEATS,
    SEAFOOD,
    VEGETABLES,
    DESSERTS,
    SUPERLATIVES,
    NEGATIONS,
    ORIGINS,
    FURTHER_COUNTRIES,
    GRAPES,
    COUNTRIES,
    REGIONS,
)  # the first name of a thing in a language is how an answer calls it
_TOKEN: Final = re.compile(r"[^\W_]+|[.,;:!?()\n]")
_LIGATURES: Final = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "’": "'"})
_ALLERGY_COMPOUND: Final = re.compile(
    r"(?i)(?<=[^\W\d_]{2})(?=allergi|intoleran|unverträglich|überempfindlich)"
)
_HISSING_PLURAL: Final = re.compile(r"(?:sh|ch|x|z|ss|o)es$")


class Meaning(NamedTuple):
    """One thing a phrase says: a field of `WineQuery` (or a pseudo-field) and its values."""

    field: str
    values: tuple[str, ...]


class Entry(NamedTuple):
    """Phrases of one language that share their meanings."""

    meanings: tuple[Meaning, ...]
    language: str
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A word or punctuation mark: as written, as compared, and where it stands in its text."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether this is a word, not punctuation."""
        return self.written[0].isalnum()


@dataclass(frozen=True, slots=True)
class Match:
    """A phrase found in a text: where it starts and ends (in tokens), and what it means."""

    start: int
    end: int
    meanings: tuple[Meaning, ...]


def fold(text: str) -> str:
    """`text` in lower case, without accents and ligatures."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_LIGATURES))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def stem(word: str) -> str:
    """A folded word without the commonest plural endings; the same for phrases and texts."""
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if _HISSING_PLURAL.search(word):
        return word[:-2]
    return word[:-1]


def spelled_out(text: str) -> str:
    """`text` as one canonical spelling.

    Composed characters, "not" for "n't", "Milch Allergie" for "Milchallergie", no surrogates.
    """
    sound = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())
    whole = re.sub(r"(?i)\bcan['’]t\b|\bcannot\b", "can not", sound)
    return _ALLERGY_COMPOUND.sub(" ", re.sub(r"(?i)n['’]t\b", " not", whole))


def tokens(text: str) -> list[Token]:
    """The words and punctuation marks of a text, in order."""
    return [Token(found[0], stem(fold(found[0])), *found.span()) for found in _TOKEN.finditer(text)]


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _meaning(text: str) -> Meaning:
    field, _, values = text.strip().partition(" ")
    return Meaning(field, _split(values))


def _entries(table: str) -> Iterator[Entry]:
    meanings: tuple[Meaning, ...] = ()
    for line in filter(None, table.split("\n")):
        code, _, rest = line.strip().partition(" ")
        if not line.startswith(" "):
            meanings = tuple(_meaning(part) for part in line.split(";"))
        elif code == "=":
            for names in map(_split, rest.split(";")):
                yield Entry((Meaning(meanings[0].field, names[:1]),), "*", names)
        else:
            yield Entry(meanings, code, _split(rest))


def _key(phrase: str) -> tuple[str, ...]:
    return tuple(token.stem for token in tokens(phrase) if token.is_word)


@cache
def phrases() -> Mapping[tuple[str, ...], tuple[Meaning, ...]]:
    """Every known phrase, as stems, with all it can mean."""
    known: dict[tuple[str, ...], tuple[Meaning, ...]] = {}
    for entry in (entry for table in _TABLES for entry in _entries(table)):
        for phrase in entry.phrases:
            key = _key(phrase)
            known[key] = tuple(dict.fromkeys((*known.get(key, ()), *entry.meanings)))
    return known


@cache
def languages() -> Mapping[tuple[str, ...], frozenset[str]]:
    """For every known phrase, as stems, the languages that have it; `*` stands for all."""
    known: dict[tuple[str, ...], frozenset[str]] = {}
    for entry in (entry for table in _TABLES for entry in _entries(table)):
        for phrase in entry.phrases:
            key = _key(phrase)
            known[key] = known.get(key, frozenset()) | {entry.language}
    return known


@cache
def names(language: Language) -> Mapping[Meaning, str]:
    """How `language` names a meaning: the first phrase of the first entry with just that."""
    named: dict[Meaning, str] = {}
    for entry in (entry for table in _TABLES for entry in _entries(table)):
        if entry.language in (language, "*") and len(entry.meanings) == 1:
            named.setdefault(entry.meanings[0], entry.phrases[0])
    return named


@cache
def _longest_from() -> Mapping[str, int]:
    """For every stem that begins a phrase, the length of the longest such phrase."""
    longest: dict[str, int] = {}
    for key in phrases():
        longest[key[0]] = max(len(key), longest.get(key[0], 0))
    return longest


def scan(words: Sequence[Token]) -> list[Match]:
    """The known phrases in a text, left to right, the longest wherever several begin."""
    found: list[Match] = []
    stems = tuple(token.stem for token in words)
    at = 0
    while at < len(stems):
        match = next(_matches_at(stems, at), None)
        if match:
            found.append(match)
        at = match.end if match else at + 1
    return found


def _matches_at(stems: tuple[str, ...], at: int) -> Iterator[Match]:
    for length in range(min(_longest_from().get(stems[at], 0), len(stems) - at), 0, -1):
        if meanings := phrases().get(stems[at : at + length]):
            yield Match(at, at + length, meanings)

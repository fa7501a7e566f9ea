"""Find the aromas that tasting notes name, and name them in the language of the user.

The words are in the `aromas.toml` of each language. A list of wines has its notes in one language,
and a user who reads another is shown the names of the aromas. `wished_aromas.py` finds the same
words in wishes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

from agent.i18n import country_of_language
from agent.languages import read_language_files
from agent.tables import StrictModel
from agent.text import pattern

AROMAS_FILE: Final = "aromas.toml"
MAX_NOTES_CHARS: Final = 2000
"""The part of the notes that is read; the rest is ignored."""
PART: Final = pattern(r"[\p{L}\p{M}\p{N}]+|[.:;!?()\n]|[,/·–—]")
"""A word, a mark that ends a sentence or a part of it, or a mark that ends a clause."""
SENTENCE_ENDS: Final = frozenset(".:;!?()\n")
CLAUSE_ENDS: Final = frozenset(",/·–—")

Words = tuple[str, ...]
"""The words of a phrase in lower case. Their accents count: "rosé" is no rose."""


class AromaWords(StrictModel):
    """The content of an `aromas.toml`. Commas separate the phrases of an entry."""

    denials: str
    """Words after which no aroma of the clause is one of the wine.

    The notes deny it ("without oak"), or speak of the soil ("grown on chalk") or of a dish ("for
    chocolate").
    """
    other_subjects: str
    """Words of a clause in which no aroma is one of the wine: "colour", "is not"."""
    contrasts: str
    """Words that end what a denial says: "but"."""
    alternatives: str
    """Words with which a denial goes on after a comma: "without oak, smoke or toast"."""
    no_aromas: str
    """Phrases that hold a word of these tables, and mean something else: "a little"."""
    words_before: str = ""
    """Words before an aroma that a wish asks for: "smells of"."""
    words_after: str = ""
    """Words after such an aroma: "violet notes". They also end compounds, such as "Honignoten"."""
    aromas: Mapping[str, str]
    """The phrases of each aroma. The first one is its name."""
    country_names: Mapping[str, Mapping[str, str]] = {}
    """Other names of aromas in a country, by its ISO 3166 code."""


class _Mark(NamedTuple):
    """A phrase of the notes that has a meaning. Only an aroma has a name."""

    kind: Literal[
        "aroma",
        "no_aroma",
        "denial",
        "other_subject",
        "contrast",
        "alternative",
        "clause_end",
        "sentence_end",
    ]
    name: str = ""


def find_aromas(notes: str, language: str) -> tuple[str, ...]:
    """Return the aromas that notes in a language name, in their order, without those they deny."""
    phrases = _load_phrases().get(language, {})
    marks = list(_read_marks(notes, phrases))
    found: list[str] = []
    for sentence in _split(marks, ("sentence_end", "contrast")):
        found += _list_affirmed(sentence)
    distinct = dict.fromkeys(found)
    return tuple(distinct)


def is_aroma(name: str) -> bool:
    """Return whether the tables have an aroma with this name, such as "black_cherry"."""
    return any(name in words.aromas for words in load_aroma_words().values())


def get_aroma_name(aroma: str, language: str) -> str:
    """Return the name of an aroma in a language, or "" if the language has none."""
    words = load_aroma_words().get(language)
    if words is None or aroma not in words.aromas:
        return ""
    country = country_of_language(language)
    names_in_country = words.country_names.get(country, {})
    phrases = split_phrases(words.aromas[aroma])
    return names_in_country.get(aroma, phrases[0])


def split_phrases(text: str) -> list[str]:
    """Return the phrases of an entry. A phrase may go over the end of a line."""
    return [" ".join(phrase.split()) for phrase in text.split(",")]


@cache
def load_aroma_words() -> Mapping[str, AromaWords]:
    """Return the words of each language that has an `aromas.toml`, by its code, English first.

    Raises:
        ValueError: an `aromas.toml` is not valid.
    """
    return read_language_files(AromaWords, AROMAS_FILE)


@cache
def _load_phrases() -> Mapping[str, Mapping[Words, _Mark]]:
    """Return what each phrase of a language means, by the code of the language."""
    by_language: dict[str, Mapping[Words, _Mark]] = {}
    for code, words in load_aroma_words().items():
        phrases: dict[Words, _Mark] = {}
        for aroma, text in words.aromas.items():
            _add_phrases(phrases, text, _Mark("aroma", aroma))
        _add_phrases(phrases, words.contrasts, _Mark("contrast"))
        _add_phrases(phrases, words.alternatives, _Mark("alternative"))
        # A word such as "nor" begins a denial, although it joins alternatives as well.
        _add_phrases(phrases, words.denials, _Mark("denial"))
        _add_phrases(phrases, words.other_subjects, _Mark("other_subject"))
        _add_phrases(phrases, words.no_aromas, _Mark("no_aroma"))
        by_language[code] = phrases
    return by_language


def _add_phrases(
    phrases: dict[Words, _Mark],
    text: str,
    mark: _Mark,
) -> None:
    """Add the phrases of an entry with their meaning."""
    for phrase in split_phrases(text):
        key = tuple(_split_parts(phrase))
        phrases[key] = mark


def _split_parts(text: str) -> list[str]:
    """Return the words and marks of a text, in lower case."""
    return PART.findall(text.lower())


def _read_marks(notes: str, phrases: Mapping[Words, _Mark]) -> Iterator[_Mark]:
    """Yield what the phrases of the notes mean, from left to right. The longest phrase counts."""
    parts = _split_parts(notes[:MAX_NOTES_CHARS])
    longest = max(map(len, phrases), default=0)
    index = 0
    while index < len(parts):
        part = parts[index]
        following = tuple(parts[index : index + longest])
        phrase = _find_longest(following, phrases)
        if part in SENTENCE_ENDS:
            yield _Mark("sentence_end")
        elif part in CLAUSE_ENDS:
            yield _Mark("clause_end")
        elif phrase:
            yield phrases[phrase]
        index += max(len(phrase), 1)


def _find_longest(words: Words, phrases: Mapping[Words, _Mark]) -> Words:
    """Return the longest phrase with which these words begin, or no words."""
    for length in range(len(words), 0, -1):
        phrase = words[:length]
        if phrase in phrases:
            return phrase
    return ()


def _split(marks: Sequence[_Mark], kinds: Sequence[str]) -> list[list[_Mark]]:
    """Return the parts of the marks between those of some kinds."""
    parts: list[list[_Mark]] = [[]]
    for mark in marks:
        if mark.kind in kinds:
            parts.append([])
        else:
            parts[-1].append(mark)
    return parts


def _list_affirmed(sentence: Sequence[_Mark]) -> Iterator[str]:
    """Yield the aromas of a sentence that it does not deny.

    A denial holds to the end of its clause, or of the last alternative: "without oak, smoke or
    toast".
    """
    clauses = _split(sentence, ("clause_end",))
    is_denied = False
    for index, clause in enumerate(clauses):
        rest = clauses[index:]
        is_denied = is_denied and _has_alternative(rest)
        if any(mark.kind == "other_subject" for mark in clause):
            continue
        for mark in clause:
            if mark.kind == "denial":
                is_denied = True
            elif mark.kind == "aroma" and not is_denied:
                yield mark.name


def _has_alternative(clauses: Sequence[Sequence[_Mark]]) -> bool:
    """Return whether a word such as "or" stands in one of the clauses."""
    for clause in clauses:
        for mark in clause:
            if mark.kind == "alternative":
                return True
    return False

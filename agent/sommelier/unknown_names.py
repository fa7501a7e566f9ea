"""Find names in prose that look like those of estates or wines, and that nothing knows.

Such a name is a run of words with capitals with the word for an estate in it ("Château
Lestruelle"), or with a vintage at its end ("Tignanello 2019"). Its words must be those of a wine
that was found or that the catalogue has, or stand in another source, in a message of the guest, or
in what is remembered of them. Regions, grapes and terms of wine are known to the tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.engine.contract import Evidence
from agent.formatting import month_names
from agent.i18n import current_language
from agent.language import all_common_words, common_words
from agent.languages import load_languages
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.tables import ANY_LANGUAGE, load_rows
from agent.query_reading.tokens import Token, tokenize
from agent.sommelier.attachment import AnyWine
from agent.sommelier.claims import is_affirmed
from agent.sommelier.queries import WineNames
from agent.sommelier.sommelier_prompts import WINE_PLACEHOLDER, read_grounding_text
from agent.text import fold, split_words

SMALL_WORDS: Final = frozenset(
    "d l de del dell della delle dei di da do dos das du des la le les las los von van vom".split()
)
"""The words without a capital within names: "Quinta do Crasto"."""
MAX_SMALL_WORDS: Final = 2
"""The most of them that may follow each other: "Mas de la Dame"."""
PLACES_AND_GRAPES: Final = frozenset({"regions", "countries", "grapes"})
YEARS: Final = range(1900, 2100)
SENTENCE_MARKS: Final = frozenset(".:!?\n")
"""The text after which a word has an ordinary capital letter."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What an answer may name though no tool has returned it: a source that grounds nothing else.

    `remembered` are texts about the guest, such as the labels of the bottles in their cellar.
    """

    catalogue: WineNames
    remembered: Sequence[str] = ()

    @property
    def source_text(self) -> str:
        """Return nothing: a name tells no facts."""
        return ""

    @property
    def links(self) -> tuple[str, ...]:
        """Return no addresses."""
        return ()


class NameChecker:
    """Compares the names in an answer with those that the evidence has."""

    def __init__(self, evidence: Evidence) -> None:
        texts = [
            *evidence.user_texts,
            *map(read_grounding_text, evidence.assistant_texts),
        ]
        self._labels: list[frozenset[str]] = []
        self._catalogues: list[WineNames] = []
        for source in evidence.sources.values():
            if isinstance(source, AnyWine):
                self._labels.append(frozenset(split_words(source.source_text)))
            elif isinstance(source, KnownNames):
                self._catalogues.append(source.catalogue)
                texts += source.remembered
            else:
                texts.append(source.source_text)
        self._words = frozenset(word for text in texts for word in split_words(text))

    def find_unknown_names(self, sentence: str) -> list[str]:
        """Return the names of a sentence that look like wines or estates, and are unknown.

        A sentence that denies something recommends nothing: "I do not have Château Margaux".
        """
        tokens = tokenize(WINE_PLACEHOLDER.sub(", ", sentence))
        language = detect_language(sentence, current_language())
        names: list[str] = []
        for name in _find_names(tokens, language):
            if not self._is_known(name) and is_affirmed(sentence):
                first, last = name.tokens[0], name.tokens[-1]
                names.append(sentence[first.start : last.end])
        return names

    def _is_known(self, name: "_Name") -> bool:
        words = [word for word in name.words if word not in self._words]
        unknown = [word for word in name.unknown if word in words]
        if len(unknown) < name.min_unknown:
            return True
        if any(label.issuperset(words) for label in self._labels):
            return True
        return any(names.has_wine_with(words) for names in self._catalogues)


@dataclass(frozen=True, slots=True)
class _Name:
    """A run of words that looks like the name of an estate or a wine.

    All its `words` must be known, if the tables lack at least `min_unknown` of the `unknown` ones.
    """

    tokens: Sequence[Token]
    words: Sequence[str]
    unknown: Sequence[str]
    min_unknown: int


def _find_names(tokens: Sequence[Token], language: str) -> list[_Name]:
    """Return the runs of words with capitals that have an estate or a vintage."""
    names: list[_Name] = []
    phrases: Sequence[Phrase] | None = None
    for run in _list_runs(tokens, language):
        has_estate = any(_is_estate(tokens[index]) for index in run)
        if has_estate or _has_vintage(tokens, run):
            if phrases is None:  # most sentences have no such name
                phrases = find_phrases(tokens, language)
            names.append(_read_name(tokens, run, phrases, language, has_estate))
    return names


def _read_name(
    tokens: Sequence[Token],
    run: range,
    phrases: Iterable[Phrase],
    language: str,
    has_estate: bool,
) -> _Name:
    """Return the words of a run that must be known.

    After a capital alone, as at the beginning of a sentence, a year is no vintage: "Drink 2019".
    Where nouns have capitals, two words must be unknown: "Weihnachten 2019" is no wine.
    """
    in_tables: set[int] = set()
    placed: set[int] = set()
    for phrase in phrases:
        if not phrase.is_compound:
            in_tables.update(phrase.indices)
        if phrase.has_field(PLACES_AND_GRAPES):
            placed.update(phrase.indices)
    words: list[str] = []
    unknown: list[str] = []
    for index in run:
        word = fold(tokens[index].written)
        if _is_estate(tokens[index]) or _is_year(tokens[index]) or index in placed:
            continue
        if word in SMALL_WORDS or word in all_common_words():
            continue
        words.append(word)
        is_ordinary = index in in_tables or word in month_names(language)
        may_be_ordinary = not has_estate and _begins_sentence(tokens, index)
        if not is_ordinary and not may_be_ordinary:
            unknown.append(word)
    has_noun_capitals = load_languages()[language].capitalises_nouns
    min_unknown = 2 if has_noun_capitals and not has_estate else 1
    return _Name(tokens[run.start : run.stop], words, unknown, min_unknown)


def _list_runs(tokens: Sequence[Token], language: str) -> list[range]:
    """Return the indices of each run of words with capitals, and of the small words in it.

    The first words of a sentence have capitals anyway: common ones are no part of a name there.
    """
    runs: list[range] = []
    start = 0
    while start < len(tokens):
        if not tokens[start].is_capitalised:
            start += 1
            continue
        is_common = fold(tokens[start].written) in common_words(language)
        if is_common and _begins_sentence(tokens, start):
            start += 1
            continue
        end = _find_end(tokens, start)
        runs.append(range(start, end))
        start = end
    return runs


def _find_end(tokens: Sequence[Token], start: int) -> int:
    """Return the index behind the last word of the run that begins at `start`."""
    end = start + 1
    small = 0
    for index in range(start + 1, len(tokens)):
        token = tokens[index]
        if token.is_capitalised or token.written.isdecimal():
            end = index + 1
            small = 0
        elif token.written in SMALL_WORDS and small < MAX_SMALL_WORDS:
            small += 1
        else:
            break
    return end


def _begins_sentence(tokens: Sequence[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].written in SENTENCE_MARKS


def _has_vintage(tokens: Sequence[Token], run: range) -> bool:
    """Return whether a run has a year after its first word, perhaps in brackets behind it."""
    if any(_is_year(tokens[index]) for index in run[1:]):
        return True
    after = tokens[run.stop : run.stop + 2]
    return len(after) == 2 and after[0].written == "(" and _is_year(after[1])


def _is_year(token: Token) -> bool:
    return token.written.isdecimal() and int(token.written) in YEARS


def _is_estate(token: Token) -> bool:
    return token.is_capitalised and fold(token.written) in _estate_words()


@cache
def _estate_words() -> frozenset[str]:
    """Return the words that the name of an estate follows, folded: "chateau"."""
    words: set[str] = set()
    for row in load_rows():
        if row.meanings == {"role": ("estate",)}:
            for phrase in row.phrases[ANY_LANGUAGE]:
                words.update(split_words(phrase)[:1])
    return frozenset(words)

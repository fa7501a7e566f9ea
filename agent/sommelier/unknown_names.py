"""Find names in prose that look like those of estates or wines, and that stand in no source.

Such a name is a run of words with capitals that has the word for an estate ("Château Lestruelle"),
a title before another word ("Conde de Aldaya"), or a vintage ("Tignanello 2019"). Its words must be
those of a wine that was found or that the catalogue has, or stand in another source, in a message
of the guest, or in what is remembered of them. Regions, grapes and terms of wine need no source,
because the tables of words have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from agent.engine.contract import Evidence, SourceWithoutFacts
from agent.formatting import month_names
from agent.i18n import current_language
from agent.language import all_common_words, common_words
from agent.languages import load_languages
from agent.numerals import is_year
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.tables import ANY_LANGUAGE, load_rows
from agent.query_reading.tokens import Token, tokenize
from agent.sommelier.attachment import AnyWine
from agent.sommelier.claims import is_affirmed
from agent.sommelier.queries import WineNames
from agent.sommelier.sommelier_prompts import WINE_PLACEHOLDER, read_grounding_text
from agent.text import fold, split_words

SMALL_WORDS: Final = frozenset(
    """
    d l de del dell della delle dei di da do dos das du des la le les las los of von van vom zu
    """.split()
)
"""The words without a capital within names: "Quinta do Crasto"."""
MAX_SMALL_WORDS: Final = 2
"""The most of them that may follow each other: "Mas de la Dame"."""
PLACES_AND_GRAPES: Final = frozenset({"regions", "countries", "grapes"})
SENTENCE_MARKS: Final = frozenset(".:!?\n")
"""The marks after which any word has a capital letter."""


@dataclass(frozen=True, slots=True)
class KnownNames(SourceWithoutFacts):
    """The names that an answer may use although no tool has returned them.

    This source supports names, and no other statement.

    `remembered` are texts about the guest, such as the labels of the bottles in their cellar.
    """

    catalogue: WineNames
    remembered: Sequence[str] = ()


class NameChecker:
    """Compares the names in an answer with those that the evidence has."""

    def __init__(self, evidence: Evidence) -> None:
        earlier_answers = map(read_grounding_text, evidence.assistant_texts)
        texts = [*evidence.user_texts, *earlier_answers]
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
        self._words: set[str] = set()
        for text in texts:
            self._words.update(split_words(text))

    def find_unknown_names(self, sentence: str) -> list[str]:
        """Return the names of a sentence that look like wines or estates, and are unknown.

        A sentence that denies something recommends nothing: "I do not have Château Margaux".
        """
        names = _SentenceReader(sentence).find_names()
        unknown = [name.written for name in names if not self._is_known(name)]
        if unknown and is_affirmed(sentence):
            return unknown
        return []

    def _is_known(self, name: "_Name") -> bool:
        not_in_texts = [word for word in name.words if word not in self._words]
        in_no_source = [word for word in name.not_in_tables if word in not_in_texts]
        if len(in_no_source) < name.min_unknown:
            return True
        if self._has_wine_with(not_in_texts):
            return True
        # "Decant Muga 2021" names "Muga 2021".
        other_words = [word for word in not_in_texts if word != name.first_of_sentence]
        return bool(other_words) and self._has_wine_with(other_words)

    def _has_wine_with(self, words: Sequence[str]) -> bool:
        """Return whether one wine, found or in the catalogue, has all these words."""
        if any(label.issuperset(words) for label in self._labels):
            return True
        return any(names.has_wine_with(words) for names in self._catalogues)


@dataclass(frozen=True, slots=True)
class _Name:
    """A run of words that looks like the name of an estate or a wine."""

    written: str
    words: Sequence[str]
    """The words that say which estate or wine is meant."""
    not_in_tables: Sequence[str]
    """Those of them that the tables of words do not have."""
    min_unknown: int
    """How many of `not_in_tables` a source must lack for the name to count as unknown."""
    first_of_sentence: str
    """The one of `words` with which the sentence begins, or ""."""


class _SentenceReader:
    """Finds the names in a sentence."""

    def __init__(self, sentence: str) -> None:
        # A comma ends a name, and a placeholder stands for a name of its own.
        self._text = WINE_PLACEHOLDER.sub(", ", sentence)
        self._tokens = tokenize(self._text)
        self._language = detect_language(sentence, current_language())

    def find_names(self) -> list[_Name]:
        """Return the runs of words with capitals that have an estate, a title or a vintage."""
        names: list[_Name] = []
        for run in self._list_runs():
            is_estate = self._has_estate(run) or self._has_title(run)
            if is_estate or self._has_vintage(run):
                names.append(self._read_name(run, is_estate=is_estate))
        return names

    def _list_runs(self) -> list[range]:
        """Return the indices of each run of words with capitals, and of the small words in it.

        The first word of a sentence has a capital anyway: a common one is no part of a name there.
        """
        runs: list[range] = []
        start = 0
        while start < len(self._tokens):
            if not self._tokens[start].is_capitalised:
                start += 1
                continue
            is_common = self._folded(start) in common_words(self._language)
            if is_common and self._begins_sentence(start):
                start += 1
                continue
            end = self._find_end(start)
            runs.append(range(start, end))
            start = end
        return runs

    def _find_end(self, start: int) -> int:
        """Return the index behind the last word of the run that begins at `start`."""
        end = start + 1
        small_words = 0
        for index in range(start + 1, len(self._tokens)):
            token = self._tokens[index]
            if token.is_capitalised or token.written.isdecimal():
                end = index + 1
                small_words = 0
            elif token.written in SMALL_WORDS and small_words < MAX_SMALL_WORDS:
                small_words += 1
            else:
                break
        return end

    def _has_estate(self, run: range) -> bool:
        return any(_is_estate(self._tokens[index]) for index in run)

    def _has_title(self, run: range) -> bool:
        """Return whether a run has a title that a name follows: "Graf", but not "Steffi Graf"."""
        follows_title = False
        for index in run:
            token = self._tokens[index]
            if follows_title and token.is_capitalised:
                return True
            follows_title = follows_title or _is_title(token)
        return False

    def _has_vintage(self, run: range) -> bool:
        """Return whether a run has a year after its first word, or in brackets behind it."""
        if any(is_year(self._tokens[index].written) for index in run[1:]):
            return True
        after = self._tokens[run.stop : run.stop + 2]
        return len(after) == 2 and after[0].written == "(" and is_year(after[1].written)

    def _read_name(self, run: range, *, is_estate: bool) -> _Name:
        """Return the words of a run that must be known.

        The first word of a sentence has a capital anyway, so beside a year it is no name: "Drink
        2019". Where nouns have capitals, two words must be unknown: "Weihnachten 2019" is no wine.
        """
        words: list[str] = []
        not_in_tables: list[str] = []
        first_of_sentence = ""
        for index in run:
            if not self._must_be_known(index):
                continue
            word = self._folded(index)
            words.append(word)
            may_be_ordinary = False
            if self._begins_sentence(index):
                first_of_sentence = word
                may_be_ordinary = not is_estate
            if not may_be_ordinary and not self._is_ordinary(index):
                not_in_tables.append(word)
        first, last = self._tokens[run.start], self._tokens[run.stop - 1]
        written = self._text[first.start : last.end]
        min_unknown = 1
        if load_languages()[self._language].capitalises_nouns and not is_estate:
            min_unknown = 2
        return _Name(written, words, not_in_tables, min_unknown, first_of_sentence)

    def _must_be_known(self, index: int) -> bool:
        """Return whether a word says which estate or wine a name means, unlike "Château"."""
        token = self._tokens[index]
        if _is_estate(token) or _is_title(token) or is_year(token.written):
            return False
        word = self._folded(index)
        is_small = word in SMALL_WORDS or word in all_common_words()
        return not is_small and index not in self._indices_of_places_and_grapes

    def _is_ordinary(self, index: int) -> bool:
        """Return whether a word is in the tables, or the name of a month."""
        if self._folded(index) in month_names(self._language):
            return True
        return index in self._indices_in_tables

    @cached_property
    def _phrases(self) -> Sequence[Phrase]:
        return find_phrases(self._tokens, self._language)

    @cached_property
    def _indices_in_tables(self) -> set[int]:
        indices: set[int] = set()
        for phrase in self._phrases:
            # Only a part of a compound is in the tables.
            if not phrase.is_compound:
                indices.update(phrase.indices)
        return indices

    @cached_property
    def _indices_of_places_and_grapes(self) -> set[int]:
        indices: set[int] = set()
        for phrase in self._phrases:
            if phrase.has_field(PLACES_AND_GRAPES):
                indices.update(phrase.indices)
        return indices

    def _begins_sentence(self, index: int) -> bool:
        return index == 0 or self._tokens[index - 1].written in SENTENCE_MARKS

    def _folded(self, index: int) -> str:
        return fold(self._tokens[index].written)


def _is_estate(token: Token) -> bool:
    return token.is_capitalised and fold(token.written) in _estate_words()


def _is_title(token: Token) -> bool:
    # The accents stay: without its accent, the cheese "Comté" would be the title "comte".
    return token.is_capitalised and token.written.lower() in _titles()


@cache
def _estate_words() -> frozenset[str]:
    """Return the first words before the names of estates, folded: "chateau", "cantina"."""
    words: set[str] = set()
    for row in load_rows():
        if row.meanings == {"role": ("estate",)}:
            for phrase in row.phrases[ANY_LANGUAGE]:
                words.update(split_words(phrase)[:1])
    return frozenset(words)


@cache
def _titles() -> frozenset[str]:
    """Return the titles of the nobility in all languages."""
    titles: set[str] = set()
    for language in load_languages().values():
        titles |= language.titles
    return frozenset(titles)

"""Find the words of a message that are in no table, and tell which may be names or dishes."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from agent.language import common_words
from agent.languages import load_languages
from agent.query_reading.exclusions import CLAUSE_ENDS
from agent.query_reading.language_words import load_grammar
from agent.query_reading.tokens import Token, get_stem
from agent.text import fold

MIN_UNKNOWN_LETTERS: Final = 4
"""The minimum length of an unknown word. A shorter one counts only if it looks like a name."""


@dataclass(frozen=True, slots=True)
class UnknownWordsReader:
    """Reads the words of a message that are in no table."""

    tokens: Sequence[Token]
    known_indices: Set[int]
    """The indices of the tokens that are in phrases or express numbers."""
    language: str

    def get_words(self, indices: Iterable[int]) -> list[str]:
        """Return the words at these indices, as they are written."""
        return [self.tokens[index].written for index in indices]

    def find_unknown(self) -> list[int]:
        """Return the indices of the words that are neither in a table nor common."""
        common = common_words(self.language)
        prepositions = load_grammar().dish_prepositions
        unknown: list[int] = []
        for index, token in enumerate(self.tokens):
            if index in self.known_indices:
                continue
            if not token.is_alphanumeric or token.stem in prepositions:
                continue
            if fold(token.written) not in common:
                unknown.append(index)
        return unknown

    def list_dishes_or_names(self, unknown: Iterable[int]) -> Iterator[str]:
        """Yield unknown words that may be proper names or, after a preposition, dishes."""
        for index in unknown:
            if self._may_be_name(index) or self._may_be_dish(index):
                yield self.tokens[index].written

    def count_long(self, unknown: Iterable[int]) -> int:
        """Return the number of unknown words that are too long to be small words."""
        long_words = [index for index in unknown if self._is_long(index)]
        return len(long_words)

    def _is_long(self, index: int) -> bool:
        stem = self.tokens[index].stem
        return len(stem) >= MIN_UNKNOWN_LETTERS

    def _may_be_dish(self, index: int) -> bool:
        """Return whether a word follows a preposition: "with okonomiyaki", "to a laksa"."""
        if not self._is_long(index):
            return False
        prepositions = load_grammar().dish_prepositions
        word_before = get_stem(self.tokens, index - 1)
        if word_before in prepositions:
            return True
        # An article may stand between: "to a laksa".
        word_before_article = get_stem(self.tokens, index - 2)
        return word_before_article in prepositions

    def _may_be_name(self, index: int) -> bool:
        """Return whether a word seems to have a capital letter because it is a name."""
        if load_languages()[self.language].capitalises_nouns:
            return False
        token = self.tokens[index]
        is_shouted = token.written.isupper()
        if not token.is_capitalised or is_shouted:
            return False
        word_before = get_stem(self.tokens, index - 1)
        starts_sentence = index == 0 or word_before in CLAUSE_ENDS
        return not starts_sentence

    def list_capitalised_runs(self) -> list[list[str]]:
        """Return the runs of capitalised unknown words. Some are empty."""
        runs: list[list[str]] = [[]]
        for index, token in enumerate(self.tokens):
            is_unknown = index not in self.known_indices
            if is_unknown and token.is_capitalised:
                last_run = runs[-1]
                last_run.append(token.written)
            else:
                runs.append([])
        return runs

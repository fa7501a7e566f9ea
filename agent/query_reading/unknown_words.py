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
        unknown = []
        for index, token in enumerate(self.tokens):
            if index in self.known_indices or not token.is_alphanumeric:
                continue
            if token.stem not in prepositions and fold(token.written) not in common:
                unknown.append(index)
        return unknown

    def list_dishes_or_names(self, unknown: Iterable[int]) -> Iterator[str]:
        """Yield unknown words that may be proper names or, after a preposition, dishes."""
        for index in unknown:
            if self._may_be_name(index) or self._may_be_dish(index):
                yield self.tokens[index].written

    def count_long(self, unknown: Iterable[int]) -> int:
        """Return the number of unknown words that are too long to be small words."""
        return sum(self._is_long(index) for index in unknown)

    def _is_long(self, index: int) -> bool:
        return len(self.tokens[index].stem) >= MIN_UNKNOWN_LETTERS

    def _may_be_dish(self, index: int) -> bool:
        """Return whether a word follows a preposition: "with okonomiyaki", "to a laksa"."""
        if not self._is_long(index):
            return False
        prepositions = load_grammar().dish_prepositions
        follows_preposition = get_stem(self.tokens, index - 1) in prepositions
        # An article may stand between: "to a laksa".
        return follows_preposition or get_stem(self.tokens, index - 2) in prepositions

    def _may_be_name(self, index: int) -> bool:
        """Return whether a word seems to have a capital letter because it is a name."""
        if load_languages()[self.language].capitalises_nouns:
            return False
        token = self.tokens[index]
        starts_sentence = index == 0 or get_stem(self.tokens, index - 1) in CLAUSE_ENDS
        is_shouted = token.written.isupper()
        return token.is_capitalised and not starts_sentence and not is_shouted

    def list_capitalised_runs(self) -> list[list[str]]:
        """Return the runs of capitalised unknown words. Some are empty."""
        runs: list[list[str]] = [[]]
        for index, token in enumerate(self.tokens):
            if index not in self.known_indices and token.is_capitalised:
                runs[-1].append(token.written)
            else:
                runs.append([])
        return runs

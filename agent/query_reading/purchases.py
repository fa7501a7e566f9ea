"""Read which wine a message says was bought: "I bought three bottles of Chianti 2021"."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from agent import size_limits
from agent.language import common_words
from agent.numerals import YEARS, find_number_words, is_year
from agent.query_reading.bottle_prices import read_stated_price
from agent.query_reading.phrases import find_phrases
from agent.query_reading.tokens import Token, tokenize
from agent.text import fold

NAME_FIELDS: Final = frozenset({"grapes", "regions"})
"""The fields of phrases that are names of wines."""
SAID_AROUND: Final = (
    "bought",
    "wine",
    "ordinary",
    "small_talk",
    "other_unit",
)
"""The roles of phrases that are no part of a name: "I bought", "bottles", "today"."""
NAME_LINKS: Final = frozenset("d da de del della des di du l la le les von".split())
"""The small words within names: "Château de la Tour"."""


class Purchase(NamedTuple):
    """Bottles of a wine that were bought. `price` is that of one bottle, or None if unknown."""

    bottles: int
    name: str
    price: float | None
    currency: str

    @property
    def has_vintage(self) -> bool:
        """Return whether the name contains a vintage."""
        return any(is_year(word) for word in self.name.split())

    @property
    def line(self) -> str:
        """Return the line that `/cellar add` reads, such as "6 Barolo 2016 45 EUR"."""
        line = f"{self.bottles} {self.name}"
        if self.price is None:
            return line
        amount = f"{self.price:.2f}".removesuffix(".00")
        return f"{line} {amount} {self.currency}"


def read_purchase(text: str, language: str) -> Purchase | None:
    """Return the bottles that were bought, or None if the message names no wine or several.

    A price that may be that of all bottles is left out.
    """
    message = text[: size_limits.MESSAGE_CHARS]
    reader = _PurchaseReader(message, language)
    name = reader.read_name()
    if not name:
        return None
    price = reader.stated_price
    amount: float | None = None
    if reader.knows_price_of_bottle:
        amount = price.amount
    return Purchase(reader.count, name, amount, price.currency)


class _PurchaseReader:
    """Reads the count first, because the name follows it."""

    def __init__(self, text: str, language: str) -> None:
        self._text = text
        self._language = language
        self._tokens = tokenize(text)
        self._phrases = find_phrases(self._tokens, language)
        self.stated_price = read_stated_price(self._tokens, self._phrases, language)
        self._used = set(self.stated_price.indices)
        """The indices of the tokens that are no part of the name."""
        for phrase in self._phrases:
            if phrase.has_role(*SAID_AROUND):
                self._used.update(phrase.indices)
        self.count = self._read_count()
        """The number of bottles."""

    @property
    def knows_price_of_bottle(self) -> bool:
        """Return whether the stated price is that of one bottle, or its share in that of all."""
        if self.stated_price.is_of_bottle or self._is_single_bottle():
            return True
        return self.stated_price.sharing_bottles == self.count

    def _is_single_bottle(self) -> bool:
        """Return whether one bottle was bought, and no case of several."""
        for phrase in self._phrases:
            is_unit = phrase.has_role("other_unit")
            if is_unit and not phrase.has_role("bottles"):
                return False
        return self.count == 1

    def _read_count(self) -> int:
        """Return the first number that is no year and no price, or 1, and mark it as used."""
        for phrase in self._phrases:
            for number_text in phrase.values("number"):
                # "Dozen" is a number. "Tenner" has a currency, too.
                if number_text.isdecimal():
                    self._used.update(phrase.indices)
                    return int(number_text)
        words = [fold(token.written) for token in self._tokens]
        for number in find_number_words(words):
            if number.start in self._used:
                continue
            indices = range(number.start, number.end)
            self._used.update(indices)
            return number.value
        for index, token in enumerate(self._tokens):
            if index in self._used:
                continue
            if not token.written.isdecimal():
                continue
            count = int(token.written)
            if count not in YEARS:
                self._used.add(index)
                return count
        return 1

    def read_name(self) -> str:
        """Return the name of the wine, or "" if the message has none or several."""
        names: list[Sequence[int]] = []
        for candidate in self._list_candidates():
            if self._is_name(candidate):
                names.append(candidate)
        if len(names) != 1:
            return ""
        tokens = [self._tokens[index] for index in names[0]]
        if len(tokens) > 1 and _is_small_letter(tokens[-1]):
            tokens.pop()  # "a" introduces the price in "Barolo a 45 euros"
        return self._text[tokens[0].start : tokens[-1].end]

    def _list_candidates(self) -> list[list[int]]:
        """Return the indices of each run of words that may be a name."""
        runs: list[list[int]] = [[]]
        for index, token in enumerate(self._tokens):
            run = runs[-1]
            may_be_name = token.is_alphanumeric and index not in self._used
            if may_be_name and self._continues_name(index, run):
                run.append(index)
            else:
                runs.append([])
        return [run for run in runs if run]

    def _continues_name(self, index: int, run: Sequence[int]) -> bool:
        """Return whether a word is part of a name, after the words of the run."""
        token = self._tokens[index]
        if token.stem in NAME_LINKS:
            return bool(run) and self._comes_before_capital(index)
        word = fold(token.written)
        return word not in common_words(self._language)

    def _comes_before_capital(self, index: int) -> bool:
        """Return whether only small words are between a word and the next capital letter."""
        following = self._tokens[index + 1 :]
        for token in following:
            if token.stem not in NAME_LINKS:
                return token.is_capitalised
        return False

    def _is_name(self, indices: Sequence[int]) -> bool:
        """Return whether words are a known place or grape, or have a capital letter."""
        for phrase in self._phrases:
            if phrase.start not in indices:
                continue
            if phrase.has_field(NAME_FIELDS):
                return True
        tokens = [self._tokens[index] for index in indices]
        return any(token.is_capitalised for token in tokens)


def _is_small_letter(token: Token) -> bool:
    """Return whether a word is a single letter that is no capital."""
    return len(token.written) == 1 and token.written.islower()

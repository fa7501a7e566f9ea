"""Find the bottles that a user wants removed from their cellar, or say why none are clearly meant.

Bottles are named by producer or name, or by the id of the item. A vintage alone does not name them.
In doubt, nothing is removed, because nobody would notice that bottles of the wrong wine are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from agent.cellar.index import name_size
from agent.cellar.items import (
    MAX_NAME_CHARS,
    find_item_by_id,
    select_in_stock,
    to_wine,
)
from agent.i18n import translate
from agent.language import all_common_words
from agent.numerals import is_year
from agent.query_reading.language_words import load_grammar
from agent.query_reading.tokens import strip_plural
from agent.sommelier.wine import CELLAR_PREFIX, Wine
from agent.text import pattern, split_words
from agent.turn import CellarItem

MAX_CANDIDATES: Final = 10
"""The most items among which the user is asked to choose."""
MIN_WORD_CHARS: Final = 2
"""Shorter words do not name a wine, such as the "d" of "Barbera d'Alba"."""
NUMBER_SIGN: Final = "#"
"""The sign that a user may write before the number of an item: "#12"."""
_COUNTED: Final = pattern(r"(?s)([1-9][0-9]{0,2})\s+(.+)")
"""A count of at most `MAX_BOTTLES`, and a name. "2018" alone is not a count."""


@dataclass(frozen=True, slots=True)
class Found:
    """The bottles to remove."""

    item: CellarItem
    """The item with a negative count, as a `Change` has it."""


@dataclass(frozen=True, slots=True)
class TooFew:
    """The item that is meant has fewer bottles than should be removed."""

    item: CellarItem


@dataclass(frozen=True, slots=True)
class Unclear:
    """The items that may be meant: several that fit equally well, or some that fit partly."""

    items: tuple[CellarItem, ...]


@dataclass(frozen=True, slots=True)
class NotFound:
    """No item in stock is meant."""


Removal = Found | TooFew | Unclear | NotFound


def parse_removal(text: str) -> tuple[int, str]:
    """Return the count and the name in a text like "2 Barolo 2016". Without a count it is 1."""
    text = text.strip()
    counted = _COUNTED.fullmatch(text)
    if counted is None:
        return 1, text
    count = int(counted[1])
    name = counted[2]
    return count, name


def find_item_to_remove(
    items: Sequence[CellarItem],
    name: str,
    count: int,
) -> Removal:
    """Return the removal of `count` bottles of the wine that `name` means, or why there is none.

    `name` is the id of an item, or words of its label. Exactly one item must fit all of the words.
    At least one word must be in its producer or name. A year must be its vintage, if that is known.
    """
    name = name[: 2 * MAX_NAME_CHARS].strip()
    candidates, is_sure = _find_candidates(items, name)
    if not candidates:
        return NotFound()
    if len(candidates) > 1 or not is_sure:
        return Unclear(tuple(candidates[:MAX_CANDIDATES]))
    item = candidates[0]
    if item.count < count:
        return TooFew(item)
    return Found(replace(item, count=-count))


def write_number_sign(line: str) -> str:
    """Return a line with "#" in the place of the language's own sign: "n° 12" becomes "#12".

    Users copy a number as their cellar shows it.
    """
    own_sign = translate("cellar_number", number="").strip()
    start = line[: len(own_sign)]
    if start.casefold() != own_sign.casefold():
        return line
    rest = line[len(own_sign) :].lstrip()
    return f"{NUMBER_SIGN}{rest}"


def _find_candidates(
    items: Sequence[CellarItem], name: str
) -> tuple[Sequence[CellarItem], bool]:
    """Return the items that a name may mean, and whether they fit all words of the name."""
    if name.startswith((CELLAR_PREFIX, NUMBER_SIGN)):
        item = find_item_by_id(items, name.removeprefix(NUMBER_SIGN))
        if item is None:
            return [], True
        return [item], True
    written_name = _WrittenName.parse(name)
    labelled = []
    fitting = []
    similar = []
    for item in select_in_stock(items):
        wine = to_wine(item)
        if not written_name.may_mean(wine):
            continue
        similar.append(item)
        if written_name.is_label_of(wine):
            labelled.append(item)
        if written_name.fits(wine, name_size(item)):
            fitting.append(item)
    if labelled:
        return labelled, True
    if fitting:
        return fitting, True
    return similar, False


@dataclass(frozen=True, slots=True)
class _WrittenName:
    """The name of a wine as a user or a model wrote it."""

    words: frozenset[str]
    """The words that identify a wine, without years."""
    years: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "_WrittenName":
        years = set()
        for word in split_words(text):
            if is_year(word):
                years.add(int(word))
        return cls(list_identifying_words(text), frozenset(years))

    def may_mean(self, wine: Wine) -> bool:
        """Return whether a word is in the wine's producer or name, and no other year is named."""
        is_year_known = bool(self.years) and wine.vintage is not None
        if is_year_known and wine.vintage not in self.years:
            return False
        return not self.words.isdisjoint(_list_name_words(wine))

    def fits(self, wine: Wine, size: str) -> bool:
        """Return whether all words are in the name of the wine or in other facts about it."""
        facts = (
            wine.appellation,
            wine.region,
            wine.country,
            *wine.grapes,
            wine.style or "",
            wine.colour or "",
            size,
        )
        other_words = list_identifying_words(" ".join(facts))
        all_words = _list_name_words(wine) | other_words
        return self.words <= all_words

    def is_label_of(self, wine: Wine) -> bool:
        """Return whether this is the whole label of the wine, with its vintage if it has one."""
        if self.words != _list_name_words(wine):
            return False
        if wine.vintage is None:
            return not self.years
        return self.years == {wine.vintage}


def _list_name_words(wine: Wine) -> frozenset[str]:
    return list_identifying_words(f"{wine.producer} {wine.name}")


def list_identifying_words(text: str) -> frozenset[str]:
    """Return the words of a text that can identify a wine.

    Years, the generic words of labels and the common words of all languages cannot.
    """
    words = set()
    for word in split_words(text):
        singular = strip_plural(word)
        if len(singular) >= MIN_WORD_CHARS and not is_year(word):
            words.add(singular)
    return frozenset(words - _load_ignored_words())


@cache
def _load_ignored_words() -> frozenset[str]:
    """Return the generic words of labels and the common words, without plural endings."""
    common_words = split_words(" ".join(all_common_words()))
    singular_words = map(strip_plural, common_words)
    return load_grammar().label_words.union(singular_words)

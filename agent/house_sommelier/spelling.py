"""Misspelt grapes and regions: "Barollo", "chardonay", "reisling". Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from agent.house_sommelier.lexicon import Token, phrases
from agent.house_sommelier.stopwords import stop_words

_SHORTEST: Final = 7
_LONG: Final = 11
_OTHER_WORDS: Final = frozenset(
    "province provincial palatine campagne campagna champion heritage catalogue".split()
)


def respelled(words: Sequence[Token]) -> list[Token]:
    """`words`, each long one that nothing knows as the grape or region it is a slip away from."""
    return [replace(word, stem=_corrected(word.stem)) for word in words]


@cache
def _known() -> frozenset[str]:
    """Every stem of a known phrase, and what says nothing."""
    return stop_words() | {stem for key in phrases() for stem in key} | _OTHER_WORDS


@cache
def _names() -> tuple[str, ...]:
    """The grapes and regions of one long word."""
    return tuple(
        key[0]
        for key, meanings in phrases().items()
        if len(key) == 1
        and len(key[0]) >= _SHORTEST - 1
        and {meaning.field for meaning in meanings} <= {"grapes", "regions", "styles", "text"}
        and {meaning.field for meaning in meanings} & {"grapes", "regions"}
    )


def _corrected(stem: str) -> str:
    if len(stem) < _SHORTEST or stem in _known():
        return stem
    slips = 2 if len(stem) >= _LONG else 1
    near = (name for name in _names() if name[0] == stem[0] and _is_within(stem, name, slips))
    return next(near, stem)


def _is_within(word: str, name: str, slips: int) -> bool:
    """Whether `slips` letters left out, added, changed or swapped make one of the other."""
    if abs(len(word) - len(name)) > slips:
        return False
    before: list[int] = []
    row = list(range(len(name) + 1))
    for at in range(1, len(word) + 1):
        before, row = row, list(_next_row(word, name, at, before, row))
    return row[-1] <= slips


def _next_row(
    word: str, name: str, at: int, before: Sequence[int], row: Sequence[int]
) -> Iterator[int]:
    """One more row of the optimal string alignment distance."""
    left = at
    yield left
    for column in range(1, len(name) + 1):
        changed = row[column - 1] + (word[at - 1] != name[column - 1])
        left = min(left + 1, row[column] + 1, changed)
        swaps = at > 1 and column > 1 and word[at - 2 : at] == name[column - 2 : column][::-1]
        left = min(left, before[column - 2] + 1) if swaps else left
        yield left

"""Find the facts that a user wants forgotten; in doubt, none."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent.cellar.removal import identifying_words
from agent.sommelier.filters import parse_taste
from agent.turn import Fact

MIN_SHARE: Final = 0.5
"""More than this share of the words must agree, of the shorter text."""


def find_meant_facts(said: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return those of some facts of one kind that `said` means; a budget is always meant.

    A fact is named by what it filters ("Syrah"), or else by the words in which it was told. Common
    words ("the", "wine") name none. Of several, those with the most words in common are meant.
    """
    budgets = tuple(fact for fact in facts if fact.kind == "budget")
    if budgets:
        return budgets
    words = identifying_words(said)
    filtered = {
        fact: identifying_words(" ".join(_filter_values(fact))) for fact in facts
    }
    told = {fact: identifying_words(fact.original_text or fact.value) for fact in facts}
    return _most_similar(words, filtered) or _most_similar(words, told)


def _filter_values(fact: Fact) -> list[str]:
    """Return the values of the filters that a like or hate stands for: "Syrah", "red"."""
    if fact.kind not in {"like", "hate"}:
        return []
    return [value for values in parse_taste(fact.value).values() for value in values]


def _most_similar(
    words: frozenset[str], texts: Mapping[Fact, frozenset[str]]
) -> tuple[Fact, ...]:
    """Return the facts whose texts have the most of some words, if they have enough of them."""
    counts: dict[Fact, int] = {}
    for fact, text in texts.items():
        common = len(words & text)
        if common > MIN_SHARE * min(len(words), len(text)):
            counts[fact] = common
    best = max(counts.values(), default=0)
    return tuple(fact for fact, count in counts.items() if count == best)

"""Find the facts that a user wants forgotten. In doubt, no fact is found."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent.cellar.removal import identifying_words
from agent.sommelier.filters import parse_taste
from agent.turn import Fact

MIN_SHARE: Final = 0.5
"""More than this share of the words of the shorter text must be in the other text."""


def find_meant_facts(text: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that a text means, among facts of one kind.

    A text names a fact by what the fact filters ("Syrah"), or else by the words in which the user
    told the fact. Common words ("the", "wine") do not count. If a text names several facts, the
    ones with the most words in common are meant. There is only one budget, so it needs no name.
    """
    filter_words: dict[Fact, frozenset[str]] = {}
    original_words: dict[Fact, frozenset[str]] = {}
    for fact in facts:
        if fact.kind == "budget":
            return tuple(facts)
        filter_words[fact] = identifying_words(" ".join(_filter_values(fact)))
        original_words[fact] = identifying_words(fact.original_text or fact.value)
    words = identifying_words(text)
    named = _most_similar(words, filter_words)
    return named or _most_similar(words, original_words)


def _filter_values(fact: Fact) -> list[str]:
    """Return the values of the filters that a like or hate stands for: "Syrah", "red"."""
    values: list[str] = []
    if fact.kind in {"like", "hate"}:
        for names in parse_taste(fact.value).values():
            values += names
    return values


def _most_similar(
    words: frozenset[str], words_by_fact: Mapping[Fact, frozenset[str]]
) -> tuple[Fact, ...]:
    """Return the facts that have the most of some words, if these are enough words."""
    counts: dict[Fact, int] = {}
    for fact, own_words in words_by_fact.items():
        common = len(words & own_words)
        shorter = min(len(words), len(own_words))
        if common > MIN_SHARE * shorter:
            counts[fact] = common
    best = max(counts.values(), default=0)
    return tuple(fact for fact, count in counts.items() if count == best)

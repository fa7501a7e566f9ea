"""Find the facts that a user wants forgotten. In doubt, no fact is found."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent.cellar.removal import list_identifying_words
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
        filter_values = " ".join(_list_filter_values(fact))
        filter_words[fact] = list_identifying_words(filter_values)
        original_text = fact.original_text or fact.value
        original_words[fact] = list_identifying_words(original_text)
    words = list_identifying_words(text)
    named_by_filters = _find_most_similar(words, filter_words)
    if named_by_filters:
        return named_by_filters
    return _find_most_similar(words, original_words)


def _list_filter_values(fact: Fact) -> list[str]:
    """Return the values of the filters that a like or hate stands for: "Syrah", "red"."""
    if fact.kind not in {"like", "hate"}:
        return []
    values: list[str] = []
    for names in parse_taste(fact.value).values():
        values += names
    return values


def _find_most_similar(
    words: frozenset[str], words_by_fact: Mapping[Fact, frozenset[str]]
) -> tuple[Fact, ...]:
    """Return the facts that share the most words with a text, or none if they share too few."""
    shared_counts: dict[Fact, int] = {}
    for fact, fact_words in words_by_fact.items():
        shared_count = len(words & fact_words)
        shorter_count = min(len(words), len(fact_words))
        if shared_count > MIN_SHARE * shorter_count:
            shared_counts[fact] = shared_count
    if not shared_counts:
        return ()
    highest = max(shared_counts.values())
    return tuple(fact for fact, count in shared_counts.items() if count == highest)

"""What a sentence does: it tells of wine, or it claims what nobody here can know. Pure.

Orders, stock, offers, accounts, messages of the system, awards, promises of health: no sommelier's
words know of them. A linear model tells by the words and by what they mean (`claims.toml`), so that
what it learnt in one language holds in the others; `python -m benchmarks.classifiers claims` fits
it to labelled sentences.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Final

from agent.classifier import Meanings, classifier, features, hashed
from agent.tables import read_toml
from agent.text import pattern, words

MEANINGS: Final = Path(__file__).with_suffix(".toml")
CLAIMS_CLASSIFIER: Final = Path(__file__).with_suffix(".bin")
LABELS: Final = ("ordinary", "off")
SURE: Final = 0.55
"""From which likelihood on a sentence is a claim."""
CERTAIN: Final = 0.9
"""From which on it is one by a clause alone, whatever leads to it."""
LEAST_WORDS: Final = 3
"""Words of such a clause."""
MOST_WORDS: Final = 30
"""Words that are looked at together."""
CLAUSE_END: Final = pattern(r"(?:[,:;]|\s[–—-])\s")
STOP: Final = pattern(r"[.!?…]+\s+")


def is_claim(sentence: str) -> bool:
    """Tell whether a sentence claims what nobody here can know."""
    clauses = (each for each in CLAUSE_END.split(sentence) if len(each.split()) >= LEAST_WORDS)
    return likelihood(sentence) >= SURE or any(likelihood(each) >= CERTAIN for each in clauses)


def likelihood(sentence: str) -> float:
    """Return how likely a sentence is such a claim, from 0 to 1: that of its likeliest part."""
    model = classifier(CLAIMS_CLASSIFIER)
    likely = (model.likelihoods_of(features_of(each))["off"] for each in _parts(sentence))
    return max(likely, default=0.0)


def _parts(sentence: str) -> Iterator[str]:
    """Parts that may be sentences, whatever they begin with; none is too long, nor a lone word."""
    for part in STOP.split(sentence):
        said = part.split()
        if len(words(part)) > 1:
            yield from (
                " ".join(said[at : at + MOST_WORDS]) for at in range(0, len(said), MOST_WORDS)
            )


def features_of(sentence: str) -> frozenset[int]:
    """Return what a sentence has of words, and of what they mean, as checksums."""
    return features(sentence) | hashed(_features(sentence))


def _features(sentence: str) -> Iterator[str]:
    said = [_meanings().of(each) for each in words(sentence)]
    found = sorted(frozenset().union(*said))
    yield from (f"m {each}" for each in found)
    yield from (f"mm {one} {other}" for one, other in combinations(found, 2))
    for one, other in pairwise(said):
        yield from (f"mb {first} {second}" for first, second in product(one, other))


@cache
def _meanings() -> Meanings:
    return Meanings(read_toml(dict[str, str], MEANINGS))

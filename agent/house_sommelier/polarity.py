"""Whether a kind of wine or a taste is named because it is wanted, or because it is not. Pure.

A linear model over the words around it, fitted by `python -m benchmarks.house polarity --write` to
messages in which each is marked. It hears what no list of negations has: "there's always Malbec at
ours", "holz mag er gar nicht".
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from agent.classifier import classifier, hashed
from agent.house_sommelier.lexicon import Phrases, Span

POLARITY_CLASSIFIER: Final = Path(__file__).with_name("polarity.bin")
LABELS: Final = ("wanted", "unwanted")
MENTIONS: Final = frozenset(
    "hue styles sweetness bodies tannins acidities grapes countries regions text".split()
)
_NAMES: Final = frozenset({"hue", "styles", "grapes", "countries", "regions"})
UNWANTED: Final = 0.5
"""From which likelihood on what words of grammar take for a wish is none."""
_AROUND: Final = 7
"""Words looked at on each side, as far as the sentence goes."""
_STOPS: Final = frozenset(".!?;\n")
_MARKERS: Final = ("not", "not_before", "refuse", "drop", "but", "cue", "only", "allergy")
_PLACES: Final = 3
"""Words beside it whose place counts; farther ones only stand before or behind."""


def is_mention(span: Span) -> bool:
    """Whether a phrase names a kind of wine or a taste alone; "not too dry" says more."""
    is_one_word = span.end - span.start == 1 or bool(span.fields & _NAMES)
    return is_one_word and bool(span.fields & MENTIONS) and not span.fields - MENTIONS


def unwanted(phrases: Phrases, span: Span) -> float:
    """Tell how likely a mention is there because it is not wanted."""
    return classifier(POLARITY_CLASSIFIER).likelihoods_of(features(phrases, span))["unwanted"]


def features(phrases: Phrases, span: Span) -> frozenset[int]:
    """Return what stands around a mention, as checksums."""
    before = _said(phrases, range(span.start - 1, span.start - 1 - _AROUND, -1))
    behind = _said(phrases, range(span.end, span.end + _AROUND))
    near = (before[0], behind[0])
    kind = min(span.fields & MENTIONS)
    beside = (
        " ".join(("n", *near)),
        " ".join(("n", *before[:2], near[1])),
        " ".join(("n", near[0], *behind[:2])),
        f"k {kind}",
        f"k {kind} {near[0]}",
        f"k {kind} | {near[1]}",
    )
    return hashed({*_side("b", before), *_side("a", behind), *beside})


def _said(phrases: Phrases, places: Sequence[int]) -> list[str]:
    """The words at some places up to the end of the sentence; another mention is any mention."""
    found: list[str] = []
    for at in places:
        word = phrases.stem(at)
        if not word or word in _STOPS:
            return [*found, word or "."]
        fields = phrases.at(at).fields
        found.append("<wine>" if fields & MENTIONS else "<dish>" if "dish" in fields else word)
        found[-1] = " ".join((found[-1], *(each for each in _MARKERS if each in fields)))
    return found


def _side(name: str, said: Sequence[str]) -> Iterator[str]:
    """Words, pairs and triples of one side, by how near they stand."""
    for at, word in enumerate(said):
        yield from (f"{name} {word}", f"{name}{min(at, _PLACES)} {word}")
    for at, (one, two) in enumerate(pairwise(said)):
        yield from (f"{name} {one} {two}", f"{name}{min(at, _PLACES - 1)} {one} {two}")
    yield from (
        f"{name} {' '.join(three)}" for three in zip(said, said[1:], said[2:], strict=False)
    )

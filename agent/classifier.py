"""What kind of text a short text is, by a linear model over the parts of its words. Pure.

The weights are fitted to labelled sentences by `python -m benchmarks.classifiers`. A file of them
is a line of JSON (labels, biases, scale), then a signed byte for each bucket and label.
"""

import json
import math
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from agent.text import words

BUCKETS: Final = 1 << 15
MOST_WORDS: Final = 200
"""Words of a text that are looked at."""
PARTS: Final = (3, 4, 5)
"""Letters of the parts of words."""
SMALL: Final = range(4, 18)
"""Numbers that may be the age of somebody young stand apart from the others."""


def features(text: str) -> frozenset[int]:
    """Return the buckets of a text's words, of its pairs of words and of the parts of its words."""
    said = [_word(each) for each in words(text)[:MOST_WORDS]]
    return frozenset(zlib.crc32(each.encode()) % BUCKETS for each in _features(said))


def _word(word: str) -> str:
    if not word.isdecimal():
        return word[:40]
    return "#small" if len(word) < 3 and int(word) in SMALL else "#"


def _features(said: list[str]) -> Iterator[str]:
    yield from (f"w {word}" for word in said)
    yield from (f"b {one} {two}" for one, two in pairwise(said))
    yield from (f"s {one} {two}" for one, two in zip(said, said[2:], strict=False))
    for word in said:
        whole = f"^{word}$"
        yield from (whole[at : at + n] for n in PARTS for at in range(len(whole) - n + 1))


@dataclass(frozen=True, slots=True)
class Classifier:
    """A linear model: how likely each of its labels is for a text."""

    labels: tuple[str, ...]
    biases: tuple[float, ...]
    scale: float
    weights: "array[int]"

    def likelihoods(self, text: str) -> Mapping[str, float]:
        """Return how likely each label is, from 0 to 1; together they are 1."""
        found, count = features(text), len(self.labels)
        sums = [0] * count
        for bucket in found:
            at = bucket * count
            for label, weight in enumerate(self.weights[at : at + count]):
                sums[label] += weight
        norm = self.scale / math.sqrt(len(found) or 1)
        scores = [bias + norm * each for bias, each in zip(self.biases, sums, strict=True)]
        powers = [math.exp(each - max(scores)) for each in scores]
        total = sum(powers)
        return {label: each / total for label, each in zip(self.labels, powers, strict=True)}


@cache
def classifier(file: Path) -> Classifier:
    """Read a classifier, once.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is none, or was cut off.
    """
    head, _, body = file.read_bytes().partition(b"\n")
    about = json.loads(head)
    weights = array("b", zlib.decompress(body))
    if len(weights) != BUCKETS * len(about["labels"]):
        raise ValueError(f"{file.name} does not hold a weight for each bucket and label: fit it")
    return Classifier(tuple(about["labels"]), tuple(about["biases"]), about["scale"], weights)


def written(model: Classifier) -> bytes:
    """Return a classifier as its file holds it."""
    about = {"labels": model.labels, "biases": model.biases, "scale": model.scale}
    return json.dumps(about).encode() + b"\n" + zlib.compress(model.weights.tobytes(), 9)

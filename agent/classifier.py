"""What kind of text a short text is, by a linear model over what stands in it. Pure.

The weights are fitted to labelled sentences by `python -m benchmarks.classifiers`. A file of them
is a line of JSON (labels, biases, scale), then a signed byte for each bucket and label.
"""

import json
import math
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from agent.text import fold, words

LONGEST_WORD: Final = 40
"""Letters of a word that are looked at."""
MOST_WORDS: Final = 200
"""Words of a text that are looked at."""
PARTS: Final = (3, 4, 5)
"""Letters of the parts of words."""
SMALL: Final = range(4, 18)
"""Numbers that may be the age of somebody young stand apart from the others."""


def features(text: str, parts: Collection[int] = PARTS) -> frozenset[int]:
    """Return what a text has of words, of pairs of words and of parts of words, as checksums."""
    return hashed(_features([_word(each) for each in words(text)[:MOST_WORDS]], parts))


def hashed(found: Iterable[str]) -> frozenset[int]:
    """Return the checksums of features, of which a classifier makes its buckets."""
    return frozenset(zlib.crc32(each.encode("utf-8", "surrogatepass")) for each in found)


class Meanings:
    """What words mean in any language, by whole words, by beginnings and by endings."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Read words by meaning: `kill*` begins words, `*cillin` ends them."""
        self._whole: dict[str, frozenset[str]] = {}
        self._starts: dict[str, frozenset[str]] = {}
        self._ends: dict[str, frozenset[str]] = {}
        for meaning, said in table.items():
            for each in fold(said).split():
                kept = self._starts if each[-1] == "*" else self._whole
                kept = self._ends if each[0] == "*" else kept
                word = each.strip("*").replace("_", " ")
                kept[word] = kept.get(word, frozenset()) | {meaning}
        self._sizes = sorted({len(each) for each in (*self._starts, *self._ends)})

    def of(self, word: str) -> frozenset[str]:
        """Return the meanings of a folded word, or of some words with spaces between."""
        found = self._whole.get(word, frozenset())
        for size in self._sizes:
            if size > len(word):
                break
            if parts := self._starts.get(word[:size]):
                found |= parts
            if parts := self._ends.get(word[-size:]):
                found |= parts
        return found


def _word(word: str) -> str:
    if not word.isdecimal():
        return word[:LONGEST_WORD]
    return "#small" if len(word) < 3 and int(word) in SMALL else "#"


def _features(said: list[str], parts: Collection[int]) -> Iterator[str]:
    yield from (f"w {word}" for word in said)
    yield from (f"b {one} {two}" for one, two in pairwise(said))
    yield from (f"s {one} {two}" for one, two in zip(said, said[2:], strict=False))
    for word in said:
        whole = f"^{word}$"
        yield from (whole[at : at + n] for n in parts for at in range(len(whole) - n + 1))


@dataclass(frozen=True, slots=True)
class Classifier:
    """A linear model: how likely each of its labels is for a text."""

    labels: tuple[str, ...]
    biases: tuple[float, ...]
    scale: float
    weights: "array[int]"

    def likelihoods(self, text: str) -> Mapping[str, float]:
        """Return how likely each label is, from 0 to 1; together they are 1."""
        return self.likelihoods_of(features(text))

    def likelihoods_of(self, found: Collection[int]) -> Mapping[str, float]:
        """Return how likely each label is for what has these features."""
        count = len(self.labels)
        size = len(self.weights) // count
        buckets = {each % size for each in found}
        rows = (self.weights[at * count : at * count + count] for at in buckets)
        sums = [sum(each) for each in zip(*rows, strict=True)] or [0] * count
        norm = self.scale / math.sqrt(len(buckets) or 1)
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
    try:
        weights = array("b", zlib.decompress(body))
    except zlib.error as error:
        raise ValueError(f"{file.name} does not hold its weights whole, {error}: fit it") from error
    return Classifier(tuple(about["labels"]), tuple(about["biases"]), about["scale"], weights)


def written(model: Classifier) -> bytes:
    """Return a classifier as its file holds it."""
    about = {"labels": model.labels, "biases": model.biases, "scale": model.scale}
    return json.dumps(about).encode() + b"\n" + zlib.compress(model.weights.tobytes(), 9)

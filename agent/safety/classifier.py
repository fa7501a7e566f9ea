"""Classify the concern of a message: a softmax regression on hashed n-grams. No I/O but its file.

The features of a text are its n-grams of characters and of words. Each is hashed to a bucket, and
each bucket has a weight for every label. `agent.safety.train` fits the weights to the messages of
`tests/evals/concerns`. numpy works on all n-grams at once: the longest text takes about 1 ms.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent.safety.words import MAX_NORMALIZED_CHARS

WEIGHTS_FILE: Final = Path(__file__).with_name("weights.npz")
LABELS: Final = (
    "crisis", "dependence", "under_age", "pregnancy", "medication", "driving",
    "health", "none", "other",
)  # fmt: skip
"""The concerns, and what is none of them: another illness, nothing, a concern of someone else."""
CHAR_SIZES: Final = (3, 4, 5)
WORD_SIZES: Final = (1, 2)
BITS: Final = 15
BUCKETS: Final = 1 << BITS
"""The number of buckets for character n-grams, and as many for word n-grams."""
SHORT_WORDS: Final = 60
"""A text with more words and marks is read in windows: one sentence would hardly count in it."""
WINDOW: Final = 20
STEP: Final = 5
"""The words and marks of a window, and those between the beginnings of two windows."""
Integers = NDArray[np.uint32]
_SPACE: Final = ord(" ")
_FACTOR: Final = np.uint32(1_000_003)
_MIXER: Final = np.uint32(2_654_435_761)
_POWERS: Final = np.cumprod(np.full(MAX_NORMALIZED_CHARS, _FACTOR), dtype=np.uint32)
_INVERSE: Final = np.full(
    MAX_NORMALIZED_CHARS, pow(int(_FACTOR), -1, 1 << 32), dtype=np.uint32
)
_INVERSE_POWERS: Final = np.cumprod(_INVERSE, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of each bucket and label as small integers, with the factor of each label."""

    buckets: NDArray[np.int8]
    factors: NDArray[np.float32]
    intercepts: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NGrams:
    """The buckets of a text's n-grams: a row where one begins, a column for each size."""

    chars: Integers
    words: Integers
    word_starts: NDArray[np.intp]
    """The character at which each word begins, and the end of the last."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Says how likely each label is, from 0 to 1, in the window of the text where it is most so."""

    probabilities: dict[str, float]
    windows: dict[str, str]

    def explain(self, label: str, count: int = 5) -> list[str]:
        """Return the n-grams that spoke most for a label."""
        text = self.windows[label]
        words, n_grams = text.split(), find_n_grams(text)
        weights = load_weights().buckets[:, LABELS.index(label)]
        spoken = list[tuple[int, str]]()
        for start, size, weight in _strongest(
            weights, n_grams.chars, CHAR_SIZES, count
        ):
            spoken.append((weight, text[start : start + size]))
        for start, size, weight in _strongest(
            weights, n_grams.words, WORD_SIZES, count
        ):
            spoken.append((weight, " ".join(words[start : start + size])))
        spoken.sort(reverse=True)
        return list(dict.fromkeys(name for _, name in spoken if name.strip(" .,!?;:")))[
            :count
        ]


def classify(normalized: str, weights: Weights) -> Guess:
    """Return how likely each label is for a text from `agent.safety.words.normalize_message`."""
    n_grams = find_n_grams(normalized)
    words = len(n_grams.words)
    window = words if words <= SHORT_WORDS else WINDOW
    firsts = np.arange(0, max(words - window + STEP, 1), STEP)
    ends = np.minimum(firsts + window, words)
    char_firsts, char_ends = n_grams.word_starts[firsts], n_grams.word_starts[ends]
    sums = _window_sums(weights, n_grams.chars, char_firsts, char_ends)
    sums += _window_sums(weights, n_grams.words, firsts, ends)
    scores = sums * weights.factors + weights.intercepts
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    windows = dict[str, str]()
    for label, best in zip(LABELS, shares.argmax(axis=0), strict=True):
        windows[label] = normalized[char_firsts[best] : char_ends[best] + 1]
    return Guess(dict(zip(LABELS, shares.max(axis=0).tolist(), strict=True)), windows)


def find_n_grams(normalized: str) -> NGrams:
    """Return the buckets of the n-grams of a normalized text, which has at least one word."""
    codes = np.frombuffer(normalized.encode("utf-32-le", "replace"), dtype=np.uint32)
    word_starts = np.flatnonzero(codes == _SPACE)
    # A word's hash is the polynomial of its characters, wherever it stands.
    sums = np.add.reduceat(codes * _POWERS[: len(codes)], word_starts, dtype=np.uint32)
    word_hashes = (sums * _INVERSE_POWERS[word_starts])[:-1]
    chars = _hash_n_grams(codes, CHAR_SIZES)[:-1]  # none begins with the last space
    words = _hash_n_grams(word_hashes, WORD_SIZES) + np.uint32(BUCKETS)
    return NGrams(chars, words, word_starts)


def scale(n_grams: Any) -> Any:
    """Return what one of so many n-grams counts, so that long texts weigh as much as short ones."""
    return 1 / np.sqrt(n_grams)


@cache
def load_weights() -> Weights:
    """Return the weights that `agent.safety.train` wrote."""
    with np.load(WEIGHTS_FILE) as file:
        return Weights(**file)


def _hash_n_grams(codes: Integers, sizes: tuple[int, ...]) -> Integers:
    """Return the bucket of each n-gram; behind the end of the text stand zeros."""
    padded = np.concatenate([codes, np.zeros(max(sizes), dtype=np.uint32)])
    hashes = np.zeros(len(codes), dtype=np.uint32)
    columns = list[Integers]()
    for size in range(1, max(sizes) + 1):
        hashes = hashes * _FACTOR ^ padded[size - 1 : size - 1 + len(codes)]
        if size in sizes:
            columns.append(hashes * _MIXER >> np.uint32(32 - BITS))
    return np.stack(columns, axis=1)


def _window_sums(weights: Weights, buckets: Integers, firsts: Any, ends: Any) -> Any:
    """Return the scaled sums of the weights of each window's n-grams, a row for a window."""
    totals = np.zeros((len(buckets) + 1, len(LABELS)), dtype=np.int32)
    for column in buckets.T:
        totals[1:] += weights.buckets[column]
    np.cumsum(totals, axis=0, out=totals)
    counts = (ends - firsts) * buckets.shape[1]
    return (totals[ends] - totals[firsts]) * scale(counts)[:, np.newaxis]


def _strongest(
    weights: Any, buckets: Integers, sizes: tuple[int, ...], count: int
) -> list[tuple[int, int, int]]:
    """Return start, size and weight of the n-grams of each size with the largest weights."""
    strongest = list[tuple[int, int, int]]()
    for size, column in zip(sizes, buckets.T, strict=True):
        found = weights[column]
        for start in np.argsort(-found, kind="stable")[:count]:
            strongest.append((int(start), size, int(found[start])))
    return strongest

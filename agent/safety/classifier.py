"""Classify the concern of a message: a softmax regression on hashed n-grams. No I/O but its file.

The features of a text are which character n-grams (3 to 5) and word n-grams (1 and 2) it has. Each
is hashed to a bucket, and each bucket has a weight for every label. `agent.safety.train` fits the
weights to the labelled messages of `tests/evals/concerns`.
"""

import zlib
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agent.text import fold, pattern

WEIGHTS_FILE: Final = Path(__file__).with_name("weights.npz")
LABELS: Final = (
    "crisis", "dependence", "under_age", "pregnancy", "medication", "driving",
    "health", "none", "other",
)  # fmt: skip
"""The concerns, and what is none of them: another illness, nothing, a concern of someone else."""
CHAR_BUCKETS: Final = 1 << 15
WORD_BUCKETS: Final = 1 << 14
CHAR_SIZES: Final = range(3, 6)
SHORT_CHARS: Final = 300
"""Longer texts are classified by sentences, as one sentence would hardly count among many."""
_SENTENCE_END: Final = pattern(r"[.!?;\n]+")
_WORD: Final = pattern(r"\p{L}+|[0-9]+|[?!]")
_HASH_FACTOR: Final = np.uint32(1_000_003)
_HASH_MIXER: Final = np.uint32(2_654_435_761)
_CHAR_SHIFT: Final = np.uint32(17)
"""Leaves the upper 15 bits of a hash, the number of a bucket of CHAR_BUCKETS."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of each bucket and label as small integers, with the factor of each label."""

    buckets: NDArray[np.int8]
    factors: NDArray[np.float32]
    intercepts: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Guess:
    """How likely each label is for a message, from 0 to 1, and what it was read from."""

    probabilities: dict[str, float]
    text: str
    """The part of the message for which the most likely concern was found."""

    def explain(self, label: str, count: int = 5) -> list[str]:
        """Return the n-grams that spoke most for a label."""
        words = _words_of(self.text)
        weights = load_weights().buckets[:, LABELS.index(label)]
        buckets = _buckets_of(words)
        order = np.argsort(-weights[buckets].astype(int), kind="stable")
        names = _names_of(words)
        return list(dict.fromkeys(names[index] for index in order))[:count]


def classify(text: str) -> Guess:
    """Return how likely each concern is; of a long text, in the part where it is most likely."""
    guesses = [Guess(_classify_part(part), part) for part in _split(text)]
    return max(guesses, key=lambda guess: 1 - guess.probabilities["none"])


def bucket_ids(text: str) -> NDArray[np.intp]:
    """Return the buckets of a text's n-grams, each once, in ascending order."""
    return np.unique(_buckets_of(_words_of(text)))


def bucket_values(ids: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the values of a text's buckets: both kinds of n-grams have a norm of 1."""
    chars = int(np.searchsorted(ids, CHAR_BUCKETS))
    values = np.empty(len(ids), dtype=np.float32)
    values[:chars] = 1 / max(chars, 1) ** 0.5
    values[chars:] = 1 / max(len(ids) - chars, 1) ** 0.5
    return values


@cache
def load_weights() -> Weights:
    """Return the weights that `agent.safety.train` wrote."""
    with np.load(WEIGHTS_FILE) as file:
        return Weights(**file)


def _split(text: str) -> list[str]:
    """Return a short text as it is, and the sentences of a longer one."""
    if len(text) <= SHORT_CHARS:
        return [text]
    return [part for part in _SENTENCE_END.split(text) if part.strip()] or [text]


def _classify_part(text: str) -> dict[str, float]:
    weights, ids = load_weights(), bucket_ids(text)
    sums = bucket_values(ids) @ weights.buckets[ids].astype(np.float32)
    scores = sums * weights.factors + weights.intercepts
    shares = np.exp(scores - scores.max())
    return dict(zip(LABELS, (shares / shares.sum()).tolist(), strict=True))


def _words_of(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _pairs(words: list[str]) -> list[str]:
    """Return the pairs of neighbouring words; the first and last pair have only one word."""
    return [f"{first} {second}" for first, second in pairwise(["", *words, ""])]


def _buckets_of(words: list[str]) -> NDArray[np.intp]:
    """Return the bucket of every n-gram, in the order of `_names_of`."""
    line = f" {' '.join(words)} "
    codes = np.frombuffer(line.encode("utf-32-le"), dtype=np.uint32)
    hashes: NDArray[Any] = np.zeros(len(codes), dtype=np.uint32)
    buckets = list[NDArray[np.intp]]()
    for size in range(1, min(CHAR_SIZES.stop, len(codes) + 1)):
        hashes = hashes[: len(codes) - size + 1] * _HASH_FACTOR ^ codes[size - 1 :]
        if size in CHAR_SIZES:
            buckets.append((hashes * _HASH_MIXER >> _CHAR_SHIFT).astype(np.intp))
    word_hashes = [zlib.crc32(name.encode()) for name in (*words, *_pairs(words))]
    buckets.append(np.array(word_hashes, dtype=np.intp) % WORD_BUCKETS + CHAR_BUCKETS)
    return np.concatenate(buckets)


def _names_of(words: list[str]) -> list[str]:
    line = f" {' '.join(words)} "
    chars = [
        line[start : start + size] for size in CHAR_SIZES for start in range(len(line) - size + 1)
    ]
    return [*chars, *words, *_pairs(words)]

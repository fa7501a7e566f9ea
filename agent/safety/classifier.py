"""Classify the concern of a message: a softmax regression on hashed n-grams.

The features of a text are its n-grams of characters and of words. Each n-gram is hashed to a
bucket, and each bucket has a weight for every label. `agent.safety.train` fits the weights to the
messages of `tests/evals/concerns`. numpy works on all n-grams at once, so the longest text takes
about 1 ms. The only I/O is reading the file of weights, once.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent.safety.words import MAX_NORMALIZED_CHARS

WEIGHTS_FILE: Final = Path(__file__).with_name("weights.npz")
LABELS: Final = (
    "crisis", "dependence", "under_age", "pregnancy", "medication", "driving",
    "health", "none", "other",
)  # fmt: skip
"""The labels of messages.

The first six are concerns. `health` is an illness without a concern of its own, `none` is no
concern, and `other` is a concern of another person than the user.
"""
Sizes = tuple[int, ...]
CHAR_SIZES: Final[Sizes] = (3, 4, 5)
"""The sizes of the n-grams of characters."""
WORD_SIZES: Final[Sizes] = (1, 2)
"""The sizes of the n-grams of words."""
BITS: Final = 15
BUCKETS: Final = 1 << BITS
"""The number of buckets for n-grams of characters. Those of words have as many of their own."""
MAX_WHOLE_WORDS: Final = 60
"""A text of more words is read in windows, because one sentence would hardly count in all of it.

Here and below, a punctuation mark counts as a word.
"""
WINDOW_WORDS: Final = 20
"""The number of words in a window."""
STEP_WORDS: Final = 5
"""The number of words from the beginning of a window to that of the next."""
Integers = NDArray[np.uint32]
_SPACE: Final = ord(" ")
_BASE: Final = np.uint32(1_000_003)
"""The base of the polynomials by which n-grams are hashed. All hashes are modulo 2**32."""
_MIXER: Final = np.uint32(2_654_435_761)
"""An odd factor that spreads a hash, so that its highest bits make a good number of a bucket."""
_INVERSE_BASE: Final = np.uint32(pow(int(_BASE), -1, 1 << 32))


def _list_powers(base: np.uint32) -> Integers:
    """Return the powers of a number modulo 2**32, one for each character of the longest text."""
    factors = np.full(MAX_NORMALIZED_CHARS, base)
    return np.cumprod(factors, dtype=np.uint32)


_POWERS: Final = _list_powers(_BASE)
_INVERSE_POWERS: Final = _list_powers(_INVERSE_BASE)
"""The reciprocals of `_POWERS` modulo 2**32. The product of a power and its reciprocal is 1."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the regression.

    The weight of a bucket for a label is a small integer times the factor of the label.
    """

    by_bucket: NDArray[np.int8]
    """A row for each bucket, a column for each label."""
    factors: NDArray[np.float32]
    intercepts: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NGrams:
    """The buckets of a text's n-grams."""

    chars: Integers
    """A row for each character at which an n-gram begins, a column for each of `CHAR_SIZES`."""
    words: Integers
    """A row for each word at which an n-gram begins, a column for each of `WORD_SIZES`."""
    word_starts: NDArray[np.intp]
    """The position of the space before each word, and of the space after the last word."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Says how likely each label is.

    If a text is read in windows, the window in which a label is most likely decides on the label.
    """

    probabilities: dict[str, float]
    """The probability of each label, from 0 to 1."""
    windows: dict[str, str]
    """The text of the window that decided on each label."""

    def explain(self, label: str, count: int = 5) -> list[str]:
        """Return the n-grams with the largest weights for a label."""
        text = self.windows[label]
        n_grams = find_n_grams(text)
        column = LABELS.index(label)
        weights = load_weights().by_bucket[:, column]
        of_chars = _find_largest(weights, n_grams.chars, CHAR_SIZES, count)
        of_words = _find_largest(weights, n_grams.words, WORD_SIZES, count)
        weighted: list[tuple[int, str]] = []
        for found in of_chars:
            n_gram = text[found.start : found.end]
            weighted.append((found.weight, n_gram))
        words = text.split()
        for found in of_words:
            n_gram_words = words[found.start : found.end]
            n_gram = " ".join(n_gram_words)
            weighted.append((found.weight, n_gram))
        weighted.sort(reverse=True)
        explanation: list[str] = []
        for _, n_gram in weighted:
            has_letters = bool(n_gram.strip(" .,!?;:"))
            if has_letters and n_gram not in explanation:
                explanation.append(n_gram)
        return explanation[:count]


def classify(normalized: str, weights: Weights) -> Guess:
    """Return how likely each label is for a text from `agent.safety.words.normalize_message`."""
    n_grams = find_n_grams(normalized)
    word_count = len(n_grams.words)
    firsts, ends = _split_windows(word_count)
    char_firsts = n_grams.word_starts[firsts]
    char_ends = n_grams.word_starts[ends]
    sums = _sum_windows(weights, n_grams.chars, char_firsts, char_ends)
    sums += _sum_windows(weights, n_grams.words, firsts, ends)
    # From here on, tables have a row for each window and a column for each label.
    scores = sums * weights.factors + weights.intercepts
    shares = _softmax(scores)
    highest_shares = shares.max(axis=0).tolist()
    best_windows = shares.argmax(axis=0)
    probabilities: dict[str, float] = {}
    windows: dict[str, str] = {}
    for column, label in enumerate(LABELS):
        probabilities[label] = highest_shares[column]
        window = best_windows[column]
        start = char_firsts[window]
        end = char_ends[window] + 1  # with the space after its last word
        windows[label] = normalized[start:end]
    return Guess(probabilities, windows)


def _split_windows(word_count: int) -> tuple[Any, Any]:
    """Return the first word of each window of a text, and the word after its last one."""
    window_words = word_count
    if word_count > MAX_WHOLE_WORDS:
        window_words = WINDOW_WORDS
    # The last window is the first that reaches the last word.
    end_of_firsts = max(word_count - window_words + STEP_WORDS, 1)
    firsts = np.arange(0, end_of_firsts, STEP_WORDS)
    ends = np.minimum(firsts + window_words, word_count)
    return firsts, ends


def _softmax(scores: Any) -> Any:
    """Return each row of scores as probabilities. Their sum is 1."""
    # The exponential of a large score would be infinite, so the largest score becomes 0.
    largest = scores.max(axis=1, keepdims=True)
    exponentials = np.exp(scores - largest)
    sums = exponentials.sum(axis=1, keepdims=True)
    return exponentials / sums


def find_n_grams(normalized: str) -> NGrams:
    """Return the buckets of the n-grams of a normalized text, which has at least one word.

    A normalized text has a space before and after every word.
    """
    encoded = normalized.encode("utf-32-le", "replace")
    codes = np.frombuffer(encoded, dtype=np.uint32)
    word_starts = np.flatnonzero(codes == _SPACE)
    # The hash of a word, with the space before it, is the sum of its characters, each times a power
    # of the base. Exponents count from the beginning of the text. So the sum is divided by the
    # power at the beginning of the word, and a word has the same hash wherever it stands.
    powers = _POWERS[: len(codes)]
    terms = codes * powers
    sums = np.add.reduceat(terms, word_starts, dtype=np.uint32)
    hashes = sums * _INVERSE_POWERS[word_starts]
    # No word follows the last space, and no n-gram begins with it.
    word_hashes = hashes[:-1]
    words = _hash_n_grams(word_hashes, WORD_SIZES)
    chars_with_last = _hash_n_grams(codes, CHAR_SIZES)
    chars = chars_with_last[:-1]
    # The buckets of words come after those of characters.
    words += np.uint32(BUCKETS)
    return NGrams(chars, words, word_starts)


def scale(n_gram_count: Any) -> Any:
    """Return the factor of each n-gram in a text. The number of its n-grams may be an array.

    Without it, long texts would have larger sums than short ones.
    """
    return 1 / np.sqrt(n_gram_count)


@cache
def load_weights() -> Weights:
    """Return the weights that `agent.safety.train` wrote."""
    with np.load(WEIGHTS_FILE) as file:
        return Weights(**file)


def _hash_n_grams(units: Integers, sizes: Sizes) -> Integers:
    """Return the bucket of each n-gram of characters or of words, given as integers.

    The result has a row for each unit at which an n-gram begins, and a column for each size. Zeros
    stand for what is missing behind the last unit.
    """
    count = len(units)
    max_size = max(sizes)
    missing_units = np.zeros(max_size, dtype=np.uint32)
    padded = np.concatenate([units, missing_units])
    hashes = np.zeros(count, dtype=np.uint32)
    columns: list[Integers] = []
    for offset in range(max_size):
        # Extend all n-grams by the unit that follows them.
        next_units = padded[offset : offset + count]
        hashes = (hashes * _BASE) ^ next_units
        size = offset + 1
        if size in sizes:
            mixed = hashes * _MIXER
            highest_bits = mixed >> np.uint32(32 - BITS)
            columns.append(highest_bits)
    return np.stack(columns, axis=1)


def _sum_windows(
    weights: Weights,
    buckets: Integers,
    firsts: Any,
    ends: Any,
) -> Any:
    """Return the sums of the weights of the n-grams in each window, scaled by their number.

    The result has a row for each window and a column for each label. `firsts` and `ends` are the
    rows of `buckets` at which windows begin and end.
    """
    # Row i of `totals` becomes the sum over all n-grams before i. Then the sum over a window is the
    # difference of two rows.
    shape = (len(buckets) + 1, len(LABELS))
    totals = np.zeros(shape, dtype=np.int32)
    for column in buckets.T:
        totals[1:] += weights.by_bucket[column]
    np.cumsum(totals, axis=0, out=totals)
    sums = totals[ends] - totals[firsts]
    n_grams_at_unit = buckets.shape[1]
    n_gram_counts = (ends - firsts) * n_grams_at_unit
    factors = scale(n_gram_counts)
    return sums * factors[:, np.newaxis]


class _WeightedNGram(NamedTuple):
    """An n-gram of the characters or words from `start` to before `end`, with its weight."""

    start: int
    end: int
    weight: int


def _find_largest(
    weights: Any,
    buckets: Integers,
    sizes: Sizes,
    count: int,
) -> list[_WeightedNGram]:
    """Return the `count` n-grams of each size with the largest weights.

    `weights` are those of all buckets for one label.
    """
    largest: list[_WeightedNGram] = []
    for size, column in zip(sizes, buckets.T, strict=True):
        n_gram_weights = weights[column]
        descending = np.argsort(-n_gram_weights, kind="stable")
        for index in descending[:count]:
            start = int(index)
            n_gram = _WeightedNGram(
                start=start,
                end=start + size,
                weight=int(n_gram_weights[index]),
            )
            largest.append(n_gram)
    return largest

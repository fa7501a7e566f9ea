"""Find texts by words: BM25 over stems.

The libraries are slow to import, so import this module only where it is needed.
"""

import logging
from array import array
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import Final

import bm25s
import numpy as np
from numpy.typing import NDArray

from agent.language import stem, stop_words
from agent.text import CACHE_SIZE, UNSPACED_SCRIPTS, split_words

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for DEBUG itself

MAX_QUERY_TERMS: Final = 64
MAX_STEM_LETTERS: Final = 7
"""Stems are truncated, so that "recommend" and "recommandation" match."""
MAX_NON_LATIN_LETTERS: Final = 5
"""Words of other alphabets have no stemmer. They are truncated to this length instead."""
HEADING_WEIGHT: Final = 2
"""How many times a word of the title or of a heading counts."""
SATURATION: Final = 1.2  # k1 of BM25
MIN_WORD_SCORE: Final = 1e-6
"""The least score of a word that a text contains.

BM25 gives 0 for a word that half of the texts contain. The text would not be found by it.
"""

MIN_RARITY: Final = 0.05
"""The rarity of a word that every text has. A question may have no other words."""


def extract_terms(text: str) -> list[str]:
    """Return the index terms of a text, in order: the stems of its words, without stop words.

    Terms have no accents and no capitals. A text in a script without spaces, such as Chinese, is
    cut into overlapping pairs of characters.
    """
    terms: list[str] = []
    for word in split_words(text):
        terms += _terms_of_word(word)
    return terms


@lru_cache(CACHE_SIZE)
def _terms_of_word(word: str) -> tuple[str, ...]:
    """Return the terms under which a word is found: its stem, or none for a very common word."""
    if not word.isascii():
        return _terms_of_foreign_word(word)
    if word in stop_words():
        return ()
    stemmed = stem(word)
    if stemmed.isalpha():
        stemmed = stemmed[:MAX_STEM_LETTERS]
    return (stemmed,)


def _terms_of_foreign_word(word: str) -> tuple[str, ...]:
    """Return the terms of a word in another alphabet: "赤ワイン" is "赤ワ", "ワイ" and "イン"."""
    terms: list[str] = []
    end = 0
    for run in UNSPACED_SCRIPTS.finditer(word):
        between = word[end : run.start()]
        terms.append(between[:MAX_NON_LATIN_LETTERS])
        characters = run[0]
        # A run of one character is a term by itself.
        pair_count = max(len(characters) - 1, 1)
        for start in range(pair_count):
            pair = characters[start : start + 2]
            terms.append(pair)
        end = run.end()
    rest = word[end:]
    terms.append(rest[:MAX_NON_LATIN_LETTERS])
    return tuple(filter(None, terms))


class WordIndex:
    """An index of texts by words. Add all texts, then build it, then search."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._terms: list[list[str]] = []
        self._bm25: bm25s.BM25 | None = None

    def add(
        self,
        number: int,
        title: str,
        headings: Sequence[str],
        text: str,
    ) -> None:
        """Add a text, to be indexed by `build`."""
        title_and_headings = " ".join([title, *headings])
        heading_terms = extract_terms(title_and_headings)
        terms = heading_terms * HEADING_WEIGHT
        terms += extract_terms(text)
        self._numbers.append(number)
        self._terms.append(terms)

    def build(self) -> None:
        """Index the texts, which takes 10 s for 100,000."""
        if any(self._terms):
            self._bm25 = bm25s.BM25(k1=SATURATION, method="robertson")
            self._bm25.index(self._terms, show_progress=False)
            scores = self._bm25.scores["data"]
            np.maximum(scores, MIN_WORD_SCORE, out=scores)
        self._terms = []

    def measure_rarity(self, word: str) -> float:
        """Return how rare a word is, from about 0 if all texts have it to 1 if none does."""
        text_count = len(self._numbers)
        if not text_count:
            return 1
        fewest = text_count
        for term in extract_terms(word):
            fewest = min(fewest, self._count_texts(term))
        rarity = log((text_count + 1) / (fewest + 1)) / log(text_count + 1)
        return max(rarity, MIN_RARITY)

    def _count_texts(self, term: str) -> int:
        """Return how many texts have a term."""
        if self._bm25 is None or term not in self._bm25.vocab_dict:
            return 0
        index = self._bm25.vocab_dict[term]
        begin, end = self._bm25.scores["indptr"][index : index + 2]
        return int(end - begin)

    def search(self, query: str, limit: int) -> dict[int, float]:
        """Return the texts that contain words of `query`, the best first, with their scores.

        The best text has the score 1. Common words only count if `query` has no others.
        """
        if self._bm25 is None:
            return {}
        terms = extract_terms(query)
        unique_terms = list(dict.fromkeys(terms))
        term_ids = self._bm25.get_tokens_ids(unique_terms[:MAX_QUERY_TERMS])
        if not term_ids:
            return {}
        scores = self._bm25.get_scores_from_ids(term_ids)
        best_score = scores.max()
        min_score = 0.0
        max_common_score = MIN_WORD_SCORE * MAX_QUERY_TERMS
        if best_score > max_common_score:
            min_score = max_common_score
        return choose_best(
            numbers=np.asarray(self._numbers),
            scores=scores / best_score,
            limit=limit,
            above=min_score / best_score,
        )


def choose_best(
    numbers: NDArray[np.int64],
    scores: NDArray[np.float32],
    limit: int,
    above: float = -np.inf,
) -> dict[int, float]:
    """Return at most `limit` numbers whose scores are over `above`, with the scores.

    The best come first. Of equally good ones, the first of `numbers` comes first.
    """
    indices = np.flatnonzero(scores > above)
    if limit < len(indices):
        # Drop all that are below the last score that counts, so that only the best are sorted.
        eligible = scores[indices]
        score_at_limit = np.partition(eligible, len(eligible) - limit)[-limit]
        indices = indices[eligible >= score_at_limit]
    best_first = np.argsort(-scores[indices], kind="stable")
    best = indices[best_first][:limit]
    best_numbers = numbers[best].tolist()
    best_scores = scores[best].tolist()
    scored = zip(best_numbers, best_scores, strict=True)
    return dict(scored)

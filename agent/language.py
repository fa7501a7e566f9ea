"""Stems, common words and sentences of the languages, and the language of a text. Pure.

The words by which a language is recognized are data, in `language.toml`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, get_args

from agent.tables import StrictModel, WordSet, read_toml
from agent.text import CACHE_SIZE, fold, pattern

Language = Literal["en", "de", "fr", "es", "it", "nl"]
DetectedLanguage = Literal["en", "de", "fr", "es", "it", "nl", "pt"]
"""The languages that are recognized; of Portuguese nothing else is known."""
DETECTED_LANGUAGES: Final[tuple[DetectedLanguage, ...]] = get_args(DetectedLanguage)

_STEMMERS: Final[Mapping[Language, str]] = {
    "en": "porter", "de": "german", "fr": "french",
    "es": "spanish", "it": "italian", "nl": "dutch",
}  # fmt: skip
LONGEST_STEMMED: Final = 64


def stem(word: str, language: Language = "en") -> str:
    """Return the stem of a folded word; one of more than 64 letters is left as it is."""
    return _stem(word, _STEMMERS[language]) if len(word) <= LONGEST_STEMMED else word


@lru_cache(maxsize=CACHE_SIZE)
def _stem(word: str, algorithm: str) -> str:
    # Imported late: it loads every language, which only indexing and searching need.
    import snowballstemmer  # noqa: PLC0415

    # A stemmer holds the word it works on, so that threads cannot share one.
    stemmed: str = snowballstemmer.stemmer(algorithm).stemWord(word)
    return stemmed


_SENTENCE_END: Final = pattern(
    r"([.!?…]+[\"'»”’)\]]*)\s"  # a stop, then white space
    r"|([。！？]+[」』”’）]*)"  # no space follows
)
_PARAGRAPH_END: Final = pattern(r"\n[ \t]*\n")
_LAST_SPACE: Final = pattern(r"\s+\S*\Z")
_LOOK_AROUND: Final = 80
"""Characters around a full stop that say whether it ends a sentence."""
_WORD: Final = pattern(r"\p{L}+'?")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order; a missed boundary is better than a false one."""
    edges = [0, *_sentence_ends(text, len(text)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(edges))
    return [part for part in parts if part]


def truncate_at_boundary(text: str, limit: int) -> str:
    """Return `text` cut at the last paragraph or sentence boundary within `limit` characters.

    A text with no such boundary is cut at the last white space, or at `limit` if there is none.
    Source of the rule: R-006 of the structured-output research.
    """
    if len(text) <= limit:
        return text
    begin = len(text) - len(text.lstrip())
    ends = (match.start() for match in _PARAGRAPH_END.finditer(text[: limit + 2]))
    paragraph = max((end for end in ends if begin < end <= limit), default=0)
    cut = max(paragraph, find_last_sentence_end(text, limit))
    if cut <= 0:
        space = _LAST_SPACE.search(text[: limit + 1])
        cut = space.start() if space and space.start() else limit
    return text[:cut].rstrip()


def find_last_sentence_end(text: str, limit: int) -> int:
    """Return where the last sentence ends within the first `limit` characters, 0 if none does."""
    return max(_sentence_ends(text, limit), default=0)


def _sentence_ends(text: str, limit: int) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text[: limit + 1]):
        start, end = match.span(2 if match[2] else 1)
        if end <= limit and _ends_sentence(text, start, end):
            yield end


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Tell if a stop ends a sentence: not in "1.5 l", "Dr. No", "e.g. this", "3. item"."""
    if text[start:end].strip("\"'»”’)]") != ".":
        return True
    line = text[max(0, start - _LOOK_AROUND) : start].rpartition("\n")[2]
    *before, last = line.split() or [""]
    word = last.strip("([\"'«„“").lower()
    is_item = word.isdigit() and not "".join(before).strip("*#>-")
    is_initial = len(word) == 1 and word.isalpha()
    goes_on = text[end : end + _LOOK_AROUND].lstrip()[:1].islower()
    return not (word in _data().abbreviations or is_item or is_initial or goes_on)


LEAST_LEAD: Final = 1.4
"""A language must score this many times more than the next one."""
LEAST_WORDS, LEAST_COMMON, LEAST_SHARE = 3, 2, 0.2
"""Words in all, and common words of the language among them: in number and as a share."""


def detect_language(text: str) -> DetectedLanguage | None:
    """Return the language of `text`, None where there is too little of it or it is not clear.

    It is recognized by its commonest words: a short message has enough of them. A common word that
    no other language has is evidence of 1.
    """
    evidence, found = score_languages(text), _tokens(text)
    best, second = sorted(evidence, key=evidence.__getitem__, reverse=True)[:2]
    common = sum(word in _weights()[best] for word in found)
    is_clear = evidence[best] >= max(1, LEAST_LEAD * evidence[second])
    is_enough = len(found) >= LEAST_WORDS and common >= max(LEAST_COMMON, LEAST_SHARE * len(found))
    return best if is_clear and is_enough else None


def score_languages(text: str) -> dict[DetectedLanguage, float]:
    """Return how much the common words of `text` speak for each language."""
    found = _tokens(text)
    return {
        language: sum(weights.get(word, 0.0) for word in found)
        for language, weights in _weights().items()
    }


def _tokens(text: str) -> list[str]:
    """List the words of a text as `language.toml` has them: "l'", but no English "wine's"."""
    known = frozenset().union(*_weights().values())
    found = _WORD.findall(text.casefold().replace("’", "'"))
    return [word if word in known else word.rstrip("'") for word in found]


def stop_words() -> frozenset[str]:
    """Return the English words that tell nothing in a search, folded."""
    return _data().stop_words


def common_words(language: str) -> frozenset[str]:
    """Return the commonest words of a language, folded; none if it is not recognized."""
    common = _data().common.items()
    return frozenset(fold(word) for code, words in common if code == language for word in words)


class _Data(StrictModel):
    """The content of `language.toml`."""

    stop_words: WordSet
    abbreviations: WordSet
    common: dict[DetectedLanguage, WordSet]


@cache
def _data() -> _Data:
    return read_toml(_Data, Path(__file__).with_suffix(".toml"))


@cache
def _weights() -> Mapping[DetectedLanguage, Mapping[str, float]]:
    """Return the weights of each language's common words: less for those that others have too."""
    common = _data().common
    shared = Counter(word for words in common.values() for word in words)
    return {
        language: {word: 1 / shared[word] ** 2 for word in words}
        for language, words in common.items()
    }

"""Common words, stemming and the splitting of sentences, in the languages of `languages/`."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from agent.languages import ENGLISH, load_languages
from agent.text import CACHE_SIZE, fold, pattern, split_words

MAX_STEMMED_CHARS: Final = 64
"""A longer word is not stemmed, because no language has such words."""


def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a folded word, unchanged if it has over 64 letters.

    The words of a language without a stemmer are unchanged too.
    """
    algorithm = load_languages()[language].stemmer
    if not algorithm or len(word) > MAX_STEMMED_CHARS:
        return word
    return _stem(word, algorithm)


@lru_cache(maxsize=CACHE_SIZE)
def _stem(word: str, algorithm: str) -> str:
    # Imported late: it loads all languages, and only indexing and searching need it.
    import snowballstemmer  # noqa: PLC0415

    # A new stemmer for each call: it has state, so threads cannot share one.
    stemmed: str = snowballstemmer.stemmer(algorithm).stemWord(word)
    return stemmed


_SENTENCE_END: Final = pattern(
    r"([.!?…]+[\"'»”’)\]]*)\s"  # Western punctuation, then white space
    r"|([。！？]+[」』”’）]*)"  # Chinese and Japanese punctuation
)
_PARAGRAPH_END: Final = pattern(r"\n[ \t]*\n")
_LAST_SPACE: Final = pattern(r"\s+\S*\Z")
"""The last white space, with the word after it."""
_CONTEXT_CHARS: Final = 80
"""The most characters read before and after a full stop to decide whether it ends a sentence."""
_WORD: Final = pattern(r"\p{L}+'?")
"""A word, with an apostrophe after it: "l'"."""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text. In doubt, two sentences stay together."""
    length = len(text)
    boundaries = [0, *_find_sentence_ends(text, length), length]
    sentences = []
    for start, end in pairwise(boundaries):
        sentence = text[start:end].strip()
        if sentence:
            sentences.append(sentence)
    return sentences


def begins_with_pronoun(sentence: str) -> bool:
    """Return whether the first word of a sentence refers to what was said before it."""
    words = split_words(sentence)
    if not words:
        return False
    return words[0] in _load_pronouns()


def truncate_at_boundary(text: str, limit: int) -> str:
    """Return `text` cut at the last paragraph or sentence boundary within `limit` characters.

    Without a boundary it is cut at the last white space, or else exactly at `limit`.
    """
    if len(text) <= limit:
        return text
    end = find_last_sentence_end(text, limit)
    first_visible = len(text) - len(text.lstrip())
    # A paragraph may end directly at the limit. A blank line has two line feeds.
    for blank_line in _PARAGRAPH_END.finditer(text[: limit + 2]):
        if first_visible < blank_line.start() <= limit:
            end = max(end, blank_line.start())
    if end == 0:
        space = _LAST_SPACE.search(text[: limit + 1])
        if space is not None:
            end = space.start()
    if end == 0:
        end = limit
    return text[:end].rstrip()


def find_last_sentence_end(text: str, limit: int) -> int:
    """Return the end of the last full sentence in the first `limit` characters, or 0."""
    return max(_find_sentence_ends(text, limit), default=0)


def _find_sentence_ends(text: str, limit: int) -> Iterator[int]:
    """Yield the ends of the sentences in the first `limit` characters of a text."""
    # One more character shows whether white space follows.
    for match in _SENTENCE_END.finditer(text[: limit + 1]):
        group = 1 if match[1] else 2  # Western, or else Chinese and Japanese
        start, end = match.span(group)
        if end <= limit and _ends_sentence(text, start, end):
            yield end


def _ends_sentence(
    text: str,
    start: int,
    end: int,
) -> bool:
    """Return whether `text[start:end]` ends a sentence. In "Dr. No" and "e.g. this" it does not."""
    mark = text[start:end].strip("\"'»”’)]")
    if mark != ".":
        return True
    before = text[max(0, start - _CONTEXT_CHARS) : start]
    _, _, line = before.rpartition("\n")
    *words_before, last_word = line.split() or [""]
    word = last_word.strip("([\"'«„“").lower()
    # Only the markup of a list or heading stands before the number of a list item.
    begins_line = not "".join(words_before).strip("*#>-")
    is_list_number = begins_line and word.isdigit()
    is_initial = len(word) == 1 and word.isalpha()
    if is_list_number or is_initial or word in _load_abbreviations():
        return False
    following = text[end : end + _CONTEXT_CHARS].lstrip()
    return not following[:1].islower()


def score_common_words(text: str) -> dict[str, float]:
    """Return a score for each language: the sum of the weights of its common words in `text`."""
    scores = dict.fromkeys(detected_languages(), 0.0)
    weights = _load_weights()
    for word in _list_words(text):
        weights_of_word = weights.get(word, {})
        for language, weight in weights_of_word.items():
            scores[language] += weight
    return scores


def _list_words(text: str) -> list[str]:
    """Return the words of a text, with the apostrophe if a common word has one, as in "l'"."""
    known_words = _load_weights()
    plain_text = text.casefold().replace("’", "'")
    words = []
    for word in _WORD.findall(plain_text):
        if word in known_words:
            words.append(word)
        else:
            words.append(word.rstrip("'"))
    return words


@cache
def detected_languages() -> tuple[str, ...]:
    """Return the codes of the languages that can be recognised, English first."""
    codes = []
    for code, language in load_languages().items():
        if language.common_words:
            codes.append(code)
    return tuple(codes)


def stop_words() -> frozenset[str]:
    """Return the folded English words that a search ignores."""
    return load_languages()[ENGLISH].stop_words


@cache
def common_words(language: str) -> frozenset[str]:
    """Return the folded common words of a language, which may be none."""
    entry = load_languages().get(language)
    if entry is None:
        return frozenset()
    return frozenset(map(fold, entry.common_words))


@cache
def all_common_words() -> frozenset[str]:
    """Return the folded common words of all languages."""
    words: set[str] = set()
    for language in detected_languages():
        words |= common_words(language)
    return frozenset(words)


@cache
def _load_abbreviations() -> frozenset[str]:
    abbreviations: set[str] = set()
    for language in load_languages().values():
        abbreviations.update(language.abbreviations)
    return frozenset(abbreviations)


@cache
def _load_pronouns() -> frozenset[str]:
    pronouns: set[str] = set()
    for language in load_languages().values():
        pronouns.update(map(fold, language.pronouns))
    return frozenset(pronouns)


@cache
def _load_weights() -> Mapping[str, Mapping[str, float]]:
    """Return the weight of each common word in each of its languages.

    The weight is 1 for a word of one language, and much less for a word that languages share: 1/4
    for two of them, 1/9 for three.
    """
    languages_by_word: dict[str, list[str]] = {}
    for language in detected_languages():
        common = load_languages()[language].common_words
        for word in common:
            languages_by_word.setdefault(word, []).append(language)
    weights: dict[str, dict[str, float]] = {}
    for word, languages in languages_by_word.items():
        weight = 1 / len(languages) ** 2
        weights[word] = dict.fromkeys(languages, weight)
    return weights

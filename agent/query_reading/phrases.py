"""The known phrases of a message, and the language that they show.

Phrases are compared by the stems of their words, and the longest match wins. Names of dishes,
grapes, places and kinds of wine are understood in every language, other words only in the language
of the message.
"""

from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Final

from agent.language import all_common_words, score_common_words
from agent.languages import load_languages
from agent.query_reading.tables import (
    ANY_LANGUAGE,
    Meanings,
    PhraseKey,
    Values,
    load_country_lexicon,
    load_lexicon,
)
from agent.query_reading.tokens import Token, tokenize
from agent.text import fold

MIN_FOREIGN_LETTERS: Final = 4
"""The minimum length of a phrase that is understood in languages other than its own."""
OWN_LANGUAGE_FIELDS: Final = frozenset(
    {
        "role",
        "order",
        "offer",
        "usual_max_price",
        "number",
        "allergen",
        "cellar",
        "position",
        "comparison",
    }
)
"""Fields of phrases that are understood only in messages in their language."""
NAME_FIELDS: Final = frozenset({"grapes", "regions"})
"""Fields of phrases that are proper names, which say nothing about the language of a message."""
DISH_FIELDS: Final = frozenset({"dish"})
COMPOUND_FIELDS: Final = (
    "dish",
    "colour",
    "styles",
    "countries",
    "regions",
    "grapes",
)
"""Fields of phrases that occur in compounds, such as "Braten" in "Zwiebelrostbraten"."""
MIN_PART_LETTERS: Final = 4
"""The minimum length of the known part of a compound word."""
MIN_REST_CHARS: Final = 2
"""The minimum length of the rest of a compound word."""
MIN_SCORE: Final = 0.8
"""The minimum score of a language other than the user's: "Du bist echt dumm" has a word that is
common in French."""
MIN_SCORE_PER_WORD: Final = 0.4
"""The minimum score of a message of one or two words, for each of them."""
MIN_SCORE_RATIO: Final = 1.5
"""A detected language must beat the user's language, or all others, by this factor."""
MIN_SCORE_ALONE: Final = 1.5
"""The minimum score if the user's language is unknown: one word is not enough."""
MAX_DISTANCE: Final = 5
"""The most tokens between a word such as "without" or "allergy" and a phrase that belongs to it."""
CACHED_LANGUAGES: Final = 256


@dataclass(frozen=True, slots=True)
class Phrase:
    """A known phrase in a message. Its tokens are those from index `start` to before `end`."""

    start: int
    end: int
    meanings: Meanings
    is_compound: bool = False
    """Whether only a part of its word is known, such as "Braten" in "Zwiebelrostbraten"."""

    @property
    def indices(self) -> range:
        """Return the indices of its tokens."""
        return range(self.start, self.end)

    def values(self, field: str) -> Values:
        """Return the values of the phrase for a field, which may be none."""
        return self.meanings.get(field, ())

    def has_role(self, *roles: str) -> bool:
        """Return whether the phrase has one of these roles."""
        own_roles = self.values("role")
        return any(role in own_roles for role in roles)

    def has_field(self, fields: Set[str]) -> bool:
        """Return whether the phrase has a value for one of these fields."""
        return not fields.isdisjoint(self.meanings)


def is_foreign_phrase(stems: Sequence[str], language: str) -> bool:
    """Return whether the phrase with these stems belongs to other languages only."""
    key = tuple(stems)
    by_language = load_lexicon().get(key, {})
    if not by_language:
        return False
    return language not in by_language and ANY_LANGUAGE not in by_language


def stems_between(
    tokens: Sequence[Token],
    first: Phrase,
    second: Phrase,
) -> list[str]:
    """Return the stems of the tokens between two phrases, whichever comes first."""
    left, right = sorted((first, second), key=attrgetter("start"))
    between = tokens[left.end : right.start]
    return [token.stem for token in between]


def phrases_in(phrases: Sequence[Phrase], clause: range) -> Sequence[Phrase]:
    """Return the phrases that begin in a clause. `phrases` are in order from left to right."""
    # Bisection is fast: a message may have a thousand clauses.
    get_start = attrgetter("start")
    first = bisect_left(phrases, clause.start, key=get_start)
    end = bisect_left(phrases, clause.stop, key=get_start)
    return phrases[first:end]


def find_phrases(
    tokens: Sequence[Token],
    language: str,
    country: str = "",
) -> list[Phrase]:
    """Return the known phrases of a message from left to right, without overlaps.

    `country` is that of the user, in which some phrases mean something else.
    """
    known = _load_known_phrases(language)
    if (language, country) in load_country_lexicon():
        known = _load_phrases_known_in(language, country)
    phrases: list[Phrase] = []
    has_compounds = load_languages()[language].has_compounds
    for start, key in _match_phrases(tokens, known):
        if key:
            end = start + len(key)
            phrase = Phrase(start, end, known[key])
            phrases.append(phrase)
            continue
        if not has_compounds:
            continue
        meanings = _find_compound_meanings(tokens[start].stem)
        if meanings:
            end = start + 1
            phrase = Phrase(start, end, meanings, is_compound=True)
            phrases.append(phrase)
    return phrases


@lru_cache(CACHED_LANGUAGES)
def detect_language(text: str, usual: str = "") -> str:
    """Return the language of a text by its common words and known phrases.

    `usual` is the language in which the writer usually writes. This language is returned unless
    another one clearly fits better. If `usual` is unknown (""), the best language must beat all
    others clearly. Otherwise "" is returned.
    """
    tokens = tokenize(text)
    scores = _score_languages(text, tokens)
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    best = ranked[0]
    if usual:
        word_count = sum(token.is_alphanumeric for token in tokens)
        min_score = min(MIN_SCORE, MIN_SCORE_PER_WORD * word_count)
        rival_score = scores.get(usual, 0)
    else:
        min_score = MIN_SCORE_ALONE
        second = ranked[1]
        rival_score = scores[second]
    required_score = max(min_score, MIN_SCORE_RATIO * rival_score)
    if scores[best] > required_score:
        return best
    return usual


def _score_languages(text: str, tokens: Sequence[Token]) -> dict[str, float]:
    """Return a score for each language, by its common words and its phrases in a text.

    A common word in a phrase is not counted again, because it may be common in another language:
    "mais" is a word for "but" in French, and for "more" in Portuguese. A phrase of every language
    and the name of a grape or region count for none, and neither do their common words: "Ribera del
    Duero" is written so in English.
    """
    scores = score_common_words(text)
    lexicon = load_lexicon()
    for start, key in _match_phrases(tokens, lexicon):
        if _count_letters(key) < MIN_FOREIGN_LETTERS:
            continue
        end = start + len(key)
        phrase_tokens = tokens[start:end]
        by_language = lexicon[key]
        languages = scores.keys() & by_language.keys()
        is_of_every_language = ANY_LANGUAGE in by_language
        if is_of_every_language or _has_field(by_language, NAME_FIELDS):
            _subtract_common_words(scores, phrase_tokens)
            continue
        if len(languages) > 1 and _has_field(by_language, DISH_FIELDS):
            # "Coq au vin" is a dish in English, too.
            _subtract_common_words(scores, phrase_tokens)
        weight = _count_uncommon(phrase_tokens)
        # A phrase of several languages counts for each of them in part.
        for language in languages:
            scores[language] += weight / len(languages)
    return scores


def _has_field(by_language: Mapping[str, Meanings], fields: Set[str]) -> bool:
    """Return whether a phrase has one of these fields in any language."""
    for meanings in by_language.values():
        if not fields.isdisjoint(meanings):
            return True
    return False


def _subtract_common_words(scores: dict[str, float], tokens: Sequence[Token]) -> None:
    """Take the common words among these tokens out of the scores of the languages."""
    text = " ".join(token.written for token in tokens)
    for language, score in score_common_words(text).items():
        scores[language] -= score


def _count_letters(key: PhraseKey) -> int:
    """Return the number of letters of all words of a phrase."""
    return sum(map(len, key))


def _count_uncommon(tokens: Sequence[Token]) -> int:
    """Return the number of words that are not common in any language."""
    common = all_common_words()
    return sum(fold(token.written) not in common for token in tokens)


def _match_phrases(
    tokens: Sequence[Token], known: Container[PhraseKey]
) -> Iterator[tuple[int, PhraseKey]]:
    """Yield the start and the key of each longest phrase.

    A token that begins no phrase has an empty key.
    """
    stems = tuple(token.stem for token in tokens)
    longest_by_start = _load_longest_phrases()
    index = 0
    while index < len(stems):
        longest = longest_by_start.get(stems[index], 0)
        following = stems[index : index + longest]
        key = _find_longest_key(following, known)
        yield index, key
        index += max(len(key), 1)


def _find_longest_key(stems: PhraseKey, known: Container[PhraseKey]) -> PhraseKey:
    """Return the longest known key with which these stems begin, or an empty key."""
    for length in range(len(stems), 0, -1):
        key = stems[:length]
        if key in known:
            return key
    return ()


@cache
def _load_longest_phrases() -> Mapping[str, int]:
    """Return the length in words of the longest phrase that begins with each stem."""
    longest: dict[str, int] = {}
    keys = list(load_lexicon())
    for meanings_in_country in load_country_lexicon().values():
        keys += meanings_in_country
    for key in keys:
        first_stem = key[0]
        known_length = longest.get(first_stem, 0)
        longest[first_stem] = max(len(key), known_length)
    return longest


@cache
def _load_known_phrases(language: str) -> Mapping[PhraseKey, Meanings]:
    """Return the phrases that are understood in a language, its own and those of others."""
    known: dict[PhraseKey, Meanings] = {}
    for key, by_language in load_lexicon().items():
        meanings = dict(by_language.get(ANY_LANGUAGE, {}))
        meanings.update(by_language.get(language, {}))
        if not meanings and _count_letters(key) >= MIN_FOREIGN_LETTERS:
            # If several other languages have the phrase, the first in the table counts.
            first_meanings = next(iter(by_language.values()))
            meanings = dict(first_meanings)
            for field in OWN_LANGUAGE_FIELDS:
                meanings.pop(field, None)
        if meanings:
            known[key] = meanings
    return known


@cache
def _load_phrases_known_in(
    language: str,
    country: str,
) -> Mapping[PhraseKey, Meanings]:
    """Return the phrases that are understood in a language as a country speaks it."""
    meanings_in_country = load_country_lexicon()[language, country]
    return {**_load_known_phrases(language), **meanings_in_country}


def _find_compound_meanings(word: str) -> Meanings:
    """Return the meanings of the longest known ending of a word, or else of its beginning."""
    parts = _load_compound_parts()
    last_start = len(word) - MIN_PART_LETTERS
    for start in range(MIN_REST_CHARS, last_start + 1):
        ending = word[start:]
        if ending in parts:
            return parts[ending]
    longest = len(word) - MIN_REST_CHARS
    for length in range(longest, MIN_PART_LETTERS - 1, -1):
        beginning = word[:length]
        if beginning in parts:
            return parts[beginning]
    return {}


@cache
def _load_compound_parts() -> Mapping[str, Meanings]:
    """Return the single words that are understood within compound words."""
    parts: dict[str, Meanings] = {}
    languages = [ANY_LANGUAGE]
    for code, language in load_languages().items():
        if language.has_compounds:
            languages.append(code)
    for key, by_language in load_lexicon().items():
        word = key[0]
        if len(key) > 1 or len(word) < MIN_PART_LETTERS:
            continue
        for code in languages:
            meanings = by_language.get(code, {})
            of_compounds: dict[str, Values] = {}
            for field in COMPOUND_FIELDS:
                if field in meanings:
                    of_compounds[field] = meanings[field]
            if of_compounds:
                parts.setdefault(word, of_compounds)
    return parts

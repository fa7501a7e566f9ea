"""Find the topics of a question, to find which passages of the documents are about it.

The topics of a question are its content words. The `topics` of each language translate wine terms
for English documents.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from agent.language import common_words, stem, stop_words
from agent.query_reading.language_words import load_language_words
from agent.query_reading.phrases import Phrase, find_phrases
from agent.query_reading.tokens import Token, tokenize
from agent.text import split_words

MIN_TOPIC_LETTERS: Final = 3
MIN_COVERAGE: Final = 0.5
"""The minimum share of a question's topics that a passage must mention."""
MIN_STEM_LETTERS: Final = 3
"""The minimum length of the beginning of a word that stands for a topic: "reif*"."""
MIN_FOREIGN_LETTERS: Final = 6
"""The minimum length of a term, with its "*", that counts in questions of another language too."""
CONTENT_ROLES: Final = frozenset({"estate", "kind", "name", "small_talk"})
"""The roles of phrases that may be what a question is about: "what is a domaine?"."""
PROPER_NAME_FIELDS: Final = ("regions", "grapes", "countries")

Synonyms = tuple[str, ...]
"""Synonyms for a topic of a question. A text that has one of them mentions the topic."""

ASKING_WORDS: Final = frozenset(
    {("mean", "means", "meaning"), ("differ", "difference", "distinguishes")}
)
"""Terms of "what does tannin mean?", which are a topic only if the question has no other."""


class Topics(NamedTuple):
    """The topics of a question."""

    english_terms: Sequence[Synonyms]
    """The topics in English."""
    question_words: Sequence[Synonyms]
    """A topic for each content word of the question, in its own language."""
    proper_names: Sequence[Synonyms] = ()
    """The topics in English that are grapes, regions or countries."""

    def list_queries(self, question: str) -> list[str]:
        """Return the queries by which to search: the question, and its topics in English.

        With topics in English, the content words stand for the question, because its other words
        mislead in documents of another language: "di" is a word of Italian and a Welsh name.
        """
        if not self.english_terms:
            return [question]
        return [_join_words(self.question_words), _join_words(self.english_terms)]

    def are_covered_by(self, text: str) -> bool:
        """Return whether a text is about the topics.

        The text must mention half of the topics in English. If there are none, it must have all
        content words of the question.
        """
        if self.english_terms:
            return rate_coverage(text, self.english_terms) >= MIN_COVERAGE
        if self.question_words:
            return rate_coverage(text, self.question_words) == 1
        return False

    def have_proper_name_in(self, text: str) -> bool:
        """Return whether a text mentions one of the proper names."""
        if not self.proper_names:
            return False
        return rate_coverage(text, self.proper_names) > 0


def _join_words(topics: Iterable[Synonyms]) -> str:
    """Return the words of all topics as one query."""
    words: list[str] = []
    for synonyms in topics:
        words += synonyms
    return " ".join(words)


def rate_coverage(text: str, topics: Sequence[Synonyms]) -> float:
    """Return the share of the topics that a text mentions. There must be at least one topic."""
    text_stems = set(map(stem, split_words(text)))
    mentioned_count = 0
    for topic in topics:
        topic_stems = map(stem, topic)
        if not text_stems.isdisjoint(topic_stems):
            mentioned_count += 1
    return mentioned_count / len(topics)


def rate_focus(heading: str, topics: Sequence[Synonyms]) -> float:
    """Return the share of the content words of a heading that name one of the topics."""
    content_words = set(split_words(heading)) - stop_words()
    heading_stems = set(map(stem, content_words))
    if not heading_stems:
        return 0
    topic_stems: set[str] = set()
    for topic in topics:
        topic_stems.update(map(stem, topic))
    shared_stems = heading_stems & topic_stems
    return len(shared_stems) / len(heading_stems)


def find_topics(question: str, language: str) -> Topics:
    """Return the topics of a question in a language."""
    tokens = tokenize(question)
    phrases = find_phrases(tokens, language)
    proper_names = _list_proper_names(phrases)
    english_terms = list(proper_names)
    question_words: list[Synonyms] = []
    asking_words: dict[str, Synonyms] = {}
    for word in _list_content_words(tokens, phrases, language):
        term = _find_term(word, language)
        if term in ASKING_WORDS:
            asking_words[word] = term
            continue
        if term is not None:
            english_terms.append(term)
        question_words.append((word,))
    if not question_words:
        english_terms.extend(asking_words.values())
        question_words = [(word,) for word in asking_words]
    # A topic that a question names twice counts once.
    return Topics(
        english_terms=list(dict.fromkeys(english_terms)),
        question_words=list(dict.fromkeys(question_words)),
        proper_names=proper_names,
    )


def _list_proper_names(phrases: Sequence[Phrase]) -> list[Synonyms]:
    """Return the English names of the grapes, regions and countries in phrases."""
    names: list[Synonyms] = []
    for phrase in phrases:
        for field in PROPER_NAME_FIELDS:
            for name in phrase.values(field):
                words = split_words(name)
                names.append(tuple(words))
    return names


def _find_term(word: str, language: str) -> Synonyms | None:
    """Return the English words for a wine term, or None if the word is not a wine term.

    If several keys such as "reif*" fit the word, the longest counts.
    """
    terms = _load_terms(language)
    if word in terms:
        return terms[word]
    beginning = word
    while len(beginning) >= MIN_STEM_LETTERS:
        key = f"{beginning}*"
        if key in terms:
            return terms[key]
        beginning = beginning[:-1]
    return None


def _list_content_words(
    tokens: Sequence[Token],
    phrases: Sequence[Phrase],
    language: str,
) -> Iterator[str]:
    """Yield the words that have a meaning of their own, in the form of `split_words`.

    Common words and grammatical words are left out.
    """
    grammatical_indices: set[int] = set()
    for phrase in phrases:
        roles = phrase.values("role")
        if not CONTENT_ROLES.issuperset(roles):
            grammatical_indices.update(phrase.indices)
    ignored_words = common_words(language) | stop_words()
    for index, token in enumerate(tokens):
        words = split_words(token.written)
        if not words:
            continue
        word = words[0]
        has_meaning = len(word) >= MIN_TOPIC_LETTERS and not word.isdecimal()
        if not has_meaning or word in ignored_words:
            continue
        # A grammatical word may also be a wine term, such as "glass" in "which glass".
        is_grammatical = index in grammatical_indices
        if not is_grammatical or _find_term(word, language) is not None:
            yield word


@cache
def _load_terms(language: str) -> Mapping[str, Synonyms]:
    """Return the English words for each wine term that a user of a language may write.

    Long terms of other languages are among them. Short terms are not, because they may be the
    beginning of another word: "mond*" means mouth in Dutch, but not in Italian.
    """
    terms: dict[str, Synonyms] = {}
    for table_language, table in load_language_words().items():
        is_foreign = table_language != language
        for english, translated in table.topics.items():
            english_words = tuple(english.split())
            keys = list(english_words)
            for word in translated.split():
                if not is_foreign or len(word) >= MIN_FOREIGN_LETTERS:
                    keys.append(word)
            for key in keys:
                synonyms = (*terms.get(key, ()), *english_words)
                terms[key] = tuple(dict.fromkeys(synonyms))
    return terms

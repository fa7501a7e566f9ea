"""Find the topics of a question, to find which passages of the documents are about it.

The topics of a question are its content words. The tables of wine words and the `topics` of each
language translate them for English documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from agent.language import common_words, stop_words
from agent.languages import ENGLISH
from agent.query_reading.language_words import load_language_words
from agent.query_reading.phrases import Phrase, find_phrases
from agent.query_reading.tables import load_dishes
from agent.query_reading.tokens import Token, tokenize
from agent.text import fold, split_words

MIN_TOPIC_LETTERS: Final = 3
MIN_STEM_LETTERS: Final = 3
"""The minimum length of the beginning of a word that stands for a topic: "reif*"."""
MIN_FOREIGN_LETTERS: Final = 6
"""The minimum length of a term, with its "*", that counts in questions of another language too."""
CONTENT_ROLES: Final = frozenset({"estate", "kind", "name", "small_talk"})
"""The roles of phrases that may be what a question is about: "what is a domaine?"."""
NAME_FIELDS: Final = ("regions", "grapes", "countries")
"""The fields of phrases whose values are names in English."""
KIND_FIELDS: Final = ("colour", "styles", "sweetness")
"""The fields of phrases whose values are kinds of wine in English."""

Synonyms = tuple[str, ...]

ASKING_WORDS: Final = frozenset(
    {("mean", "means", "meaning"), ("differ", "difference", "distinguishes")}
)
"""Terms of "what does tannin mean?", which are a topic only if the question has no other."""


class Topic(NamedTuple):
    """A thing that a question is about. A text that has one of its words mentions it."""

    own_words: Synonyms
    """The words of the question itself, or none for a topic that a name stands for."""
    english_words: Synonyms = ()
    is_translated: bool = False
    """Whether another topic stands for this one in English, because it is a name.

    It then counts only if the library has its own words: "fino" beside Sherry.
    """

    @property
    def words(self) -> Synonyms:
        """Return all words for the topic, each once."""
        return _join(self.own_words, self.english_words)


class Topics(NamedTuple):
    """The topics of a question."""

    topics: Sequence[Topic]

    def list_words(self) -> list[str]:
        """Return the words of all topics."""
        words: list[str] = []
        for topic in self.topics:
            words += topic.words
        return words

    def list_queries(self, question: str) -> list[str]:
        """Return the queries by which to search: the question, and its topics in English.

        With topics in English, the content words stand for the question, because its other words
        mislead in documents of another language: "di" is a word of Italian and a Welsh name.
        """
        own_words: list[str] = []
        english_words: list[str] = []
        for topic in self.topics:
            own_words += topic.own_words
            english_words += topic.english_words
        if not english_words:
            return [question]
        return [" ".join(own_words), " ".join(english_words)]


def find_topics(question: str, language: str) -> Topics:
    """Return the topics of a question in a language."""
    tokens = tokenize(question)
    phrases = find_phrases(tokens, language)
    topics: list[Topic] = []
    asking_topics: list[Topic] = []
    for unit in _split_into_units(tokens, phrases):
        words = _list_content_words(tokens, unit, language)
        names = _list_names(unit)
        if names:
            topics += _list_name_topics(words, names)
            continue
        term = _find_terms(words, language) + _list_kinds(unit)
        if term in ASKING_WORDS:
            asking_topics.append(Topic(words, term))
        elif words:
            topics.append(Topic(words, term))
    # A topic that a question names twice counts once.
    return Topics(tuple(dict.fromkeys(topics or asking_topics)))


def _split_into_units(
    tokens: Sequence[Token], phrases: Sequence[Phrase]
) -> Iterator[Phrase]:
    """Yield the phrases of a question, and each token between them as a phrase of its own."""
    end = 0
    for phrase in phrases:
        for index in range(end, phrase.start):
            yield Phrase(index, index + 1, {})
        yield phrase
        end = phrase.end
    for index in range(end, len(tokens)):
        yield Phrase(index, index + 1, {})


def _list_name_topics(words: Synonyms, names: Sequence[Synonyms]) -> list[Topic]:
    """Return the topics of a phrase that stands for names, such as "fino" for Sherry."""
    topics = [Topic((), name) for name in names]
    known_words = {word for name in names for word in name}
    if not known_words.issuperset(words):
        topics.append(Topic(words, is_translated=True))
    return topics


def _list_names(phrase: Phrase) -> list[Synonyms]:
    """Return the English names of the grapes, regions and countries in a phrase."""
    names: list[Synonyms] = []
    for field in NAME_FIELDS:
        for name in phrase.values(field):
            names.append(tuple(split_words(name)))
    return names


def _list_kinds(phrase: Phrase) -> Synonyms:
    """Return the English words for the kinds of wine and the foods in a phrase."""
    words: list[str] = []
    for field in KIND_FIELDS:
        for kind in phrase.values(field):
            words += kind.split("_")
    for row in phrase.values("dish"):
        dish = load_dishes()[int(row)]
        for food in dish.foods:
            _, _, general_name = food.rpartition("_")  # "hard_cheese"
            words.append(general_name)
    return tuple(word for word in words if word not in stop_words())


def _find_terms(words: Sequence[str], language: str) -> Synonyms:
    """Return the English words for the wine terms among words."""
    english_words: list[str] = []
    for word in words:
        english_words += _find_term(word, language)
    return tuple(dict.fromkeys(english_words))


def _find_term(word: str, language: str) -> Synonyms:
    """Return the English words for a wine term, or none if the word is no wine term.

    The terms of the language itself come first. If several keys such as "reif*" fit the word, the
    longest counts.
    """
    own_terms = _load_own_terms(language)
    return _look_up(word, own_terms) or _look_up(word, _load_foreign_terms(language))


def _look_up(word: str, terms: Mapping[str, Synonyms]) -> Synonyms:
    """Return the English words for a wine term, or none if the terms have it not."""
    if word in terms:
        return terms[word]
    beginning = word
    while len(beginning) >= MIN_STEM_LETTERS:
        key = f"{beginning}*"
        if key in terms:
            return terms[key]
        beginning = beginning[:-1]
    return ()


def _list_content_words(
    tokens: Sequence[Token],
    phrase: Phrase,
    language: str,
) -> Synonyms:
    """Return the words of a phrase that have a meaning of their own, in the form of `split_words`.

    Common words and grammatical words are left out.
    """
    roles = phrase.values("role")
    is_grammatical = not CONTENT_ROLES.issuperset(roles)
    content_words: list[str] = []
    for index in phrase.indices:
        words = split_words(tokens[index].written)
        if not words:
            continue
        word = words[0]
        has_meaning = len(word) >= MIN_TOPIC_LETTERS and not word.isdecimal()
        if not has_meaning or word in _load_ignored_words(language):
            continue
        # A grammatical word may also be a wine term, such as "glass" in "which glass".
        if not is_grammatical or _find_term(word, language):
            content_words.append(word)
    return tuple(content_words)


@cache
def _load_ignored_words(language: str) -> frozenset[str]:
    """Return the words that no question is about: common ones, and those that only ask."""
    ignored = common_words(language) | stop_words()
    words = load_language_words().get(language)
    if words is None:
        return ignored
    asking_words = map(fold, words.grammar.asking_words)
    return ignored.union(asking_words)


@cache
def _load_own_terms(language: str) -> Mapping[str, Synonyms]:
    """Return the English words for each wine term of a language, and for those of English."""
    words = load_language_words()
    terms = _list_terms(words[ENGLISH].topics)
    if language in words and language != ENGLISH:
        terms |= _list_terms(words[language].topics)
    return terms


@cache
def _load_foreign_terms(language: str) -> Mapping[str, Synonyms]:
    """Return the English words for each long wine term of other languages.

    Short terms are not among them, because they may be the beginning of another word: "mond*" means
    mouth in Dutch, but not in Italian.
    """
    terms: dict[str, Synonyms] = {}
    for foreign, words in load_language_words().items():
        if foreign == language:
            continue
        for term, english_words in _list_terms(words.topics).items():
            if len(term) >= MIN_FOREIGN_LETTERS:
                terms[term] = _join(terms.get(term, ()), english_words)
    return terms


def _list_terms(topics: Mapping[str, str]) -> dict[str, Synonyms]:
    """Return the English words for each term in the table of a language."""
    terms: dict[str, Synonyms] = {}
    for english, translated in topics.items():
        english_words = tuple(english.split())
        for term in (*english_words, *translated.split()):
            terms[term] = _join(terms.get(term, ()), english_words)
    return terms


def _join(first: Synonyms, second: Synonyms) -> Synonyms:
    """Return the words of both, each once."""
    return tuple(dict.fromkeys((*first, *second)))

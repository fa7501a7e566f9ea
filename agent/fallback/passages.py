"""Find the passage of the documents that answers a question.

The topics of a question are its content words. The `topics` of each language translate wine terms
for English documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from agent.documents.passages import Chunk, DocumentStore, best_passage
from agent.documents.shop import ONLY_OF_SHOP, find_shop_topics, is_shop_document
from agent.language import common_words, stem, stop_words, truncate_at_boundary
from agent.query_reading.language_words import load_language_words
from agent.query_reading.phrases import Phrase, find_phrases
from agent.query_reading.tokens import Token, tokenize
from agent.text import split_words

MAX_CHUNKS: Final = 8
MAX_PASSAGE_CHARS: Final = 700
MIN_TOPIC_LETTERS: Final = 3
MIN_TOPIC_SHARE: Final = 0.5
"""The minimum share of a question's topics that a passage must mention."""
MIN_STEM_LETTERS: Final = 3
"""The minimum length of a word's beginning that a topic may have: "reif*"."""
CONTENT_ROLES: Final = frozenset({"estate", "kind", "name", "small_talk"})
"""The roles of phrases that may be what a question is about: "what is a domaine?"."""
PROPER_NAME_FIELDS: Final = ("regions", "grapes", "countries")

Synonyms = tuple[str, ...]
"""Synonyms for a topic of a question; a text that contains one of them mentions the topic."""


async def find_passage(question: str, language: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage that answers a question best, or None if none mentions its topics.

    The chunk is cut to the part that answers.
    """
    shop_topics = find_shop_topics([question])
    if shop_topics:
        passage = await find_shop_passage(question, documents)
        if passage is not None or shop_topics & ONLY_OF_SHOP:
            return passage
    topics, word_topics = _find_topics(question, language)
    all_topics = [*topics, *word_topics]
    if not all_topics:
        return None
    topic_words = " ".join(map(" ".join, topics))
    chunks = await documents.search([question, topic_words or question], limit=MAX_CHUNKS)

    def relevance(chunk: Chunk) -> tuple[float, float]:
        share_of_headings = _topic_share(all_topics, f"{chunk.title} {chunk.location}")
        return share_of_headings, _topic_share(all_topics, chunk.title)

    required = topics
    min_share = MIN_TOPIC_SHARE
    if not topics:
        # Without a topic in English, the passage must contain every word of the question.
        required = word_topics
        min_share = 1
    for chunk in sorted(chunks, key=relevance, reverse=True):
        if _topic_share(required, chunk.source_text) >= min_share:
            text = best_passage(chunk.text, f"{question} {topic_words}", MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None


async def find_shop_passage(question: str, documents: DocumentStore) -> Chunk | None:
    """Return what the owner's document says about a question on the shop, or None."""
    for chunk in await documents.search([question], limit=1):
        if is_shop_document(chunk.path):
            return replace(chunk, text=truncate_at_boundary(chunk.text, MAX_PASSAGE_CHARS))
    return None


def _find_topics(question: str, language: str) -> tuple[list[Synonyms], list[Synonyms]]:
    """Return the English topics of a question, and a topic for each of its content words."""
    tokens = tokenize(question)
    phrases = find_phrases(tokens, language)
    topics: list[Synonyms] = []
    for phrase in phrases:
        for field in PROPER_NAME_FIELDS:
            topics += [tuple(split_words(name)) for name in phrase.values(field)]
    word_topics: list[Synonyms] = []
    for word in _content_words(tokens, phrases, language):
        if term := _find_term(word):
            topics.append(term)
        word_topics.append((word,))
    return list(dict.fromkeys(topics)), list(dict.fromkeys(word_topics))


def _find_term(word: str) -> Synonyms | None:
    """Return the English words for a wine term by the longest key that fits it, or None."""
    terms = _load_terms()
    if word in terms:
        return terms[word]
    for length in range(len(word), MIN_STEM_LETTERS - 1, -1):
        if term := terms.get(f"{word[:length]}*"):
            return term
    return None


def _content_words(
    tokens: Sequence[Token], phrases: Sequence[Phrase], language: str
) -> Iterator[str]:
    """Yield the words in the form of `split_words`, without common and grammatical ones."""
    grammar: set[int] = set()
    for phrase in phrases:
        if not CONTENT_ROLES.issuperset(phrase.values("role")):
            grammar.update(phrase.indices)
    common = common_words(language) | stop_words()
    for index, token in enumerate(tokens):
        word = next(iter(split_words(token.written)), "")
        is_topic = index not in grammar or _find_term(word) is not None  # "which glass"
        if is_topic and len(word) >= MIN_TOPIC_LETTERS and word not in common:
            yield word


def _topic_share(topics: Sequence[Synonyms], text: str) -> float:
    """Return the share of the topics that a text mentions."""
    stems = {stem(word) for word in split_words(text)}
    mentioned = sum(not stems.isdisjoint(map(stem, topic)) for topic in topics)
    return mentioned / len(topics)


@cache
def _load_terms() -> Mapping[str, Synonyms]:
    """Return the English words for each wine term, in any language."""
    terms: dict[str, Synonyms] = {}
    for language in load_language_words().values():
        for english, others in language.topics.items():
            topic = tuple(english.split())
            for word in (*topic, *others.split()):
                known = terms.get(word, ())
                terms[word] = tuple(dict.fromkeys((*known, *topic)))
    return terms

"""Answers to questions by a passage of the documents, word for word, with its source.

A question in another language finds English documents by the words of wine that it holds, which
`terms.toml` tells in English.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.documents.passages import Chunk, DocumentStore
from agent.fallback.words import FOLDER, scan, tokens
from agent.tables import read_toml
from agent.text import common_words, stem, stop_words, truncate_at_boundary, words

MOST_CHUNKS: Final = 8
LONGEST_PASSAGE: Final = 700
SHORTEST: Final = 3
"""Letters of a word that tells what a question is about."""
LEAST: Final = 0.5
"""Which part of what a question is about a passage has to speak of."""
TITLE: Final = 1.0
"""How much more a word in a title or a heading counts."""
RARE: Final = 1.5
"""How much a word counts that one of the passages has alone."""
NAMES: Final = ("regions", "grapes", "countries")


@dataclass(frozen=True, slots=True)
class Passage:
    """Words of a document, and which document it is."""

    text: str
    chunk: Chunk


Topic = tuple[str, ...]
"""The English words for something that a question is about."""


async def passage_for(question: str, language: str, documents: DocumentStore) -> Passage | None:
    """Return the passage that answers a question best; None if none speaks of what it asks."""
    topics, others = _topics(question, language)
    if not (topics or others):
        return None
    asked = " ".join(word for topic in topics for word in topic)
    chunks = await documents.search([question, asked or question], limit=MOST_CHUNKS)
    found = [_stems(each.said) for each in chunks]
    rare = {word: RARE / max(1, sum(_is_in(word, each) for each in found)) for word in others}
    ranked = sorted(chunks, key=lambda each: (-_rating(topics, rare, each), each.position))
    if not ranked or not _answers(topics or others, ranked[0]):
        return None
    return Passage(_best_paragraph([*topics, *others], ranked[0].text), ranked[0])


def _topics(question: str, language: str) -> tuple[list[Topic], list[Topic]]:
    """Return what a question is about in English, as far as that is known, and its other words."""
    said = tokens(question)
    spans = scan(said, language)
    names = [name for span in spans for field in NAMES for name in span.values(field)]
    topics = [tuple(words(name)) for name in names]
    grammar = [span for span in spans if "mark" in span.meanings and not span.has("serving")]
    skipped = {place for span in grammar for place in range(span.start, span.end)}
    others: list[Topic] = []
    common = common_words(language) | stop_words()
    for place, token in enumerate(said):
        word = next(iter(words(token.written)), "")
        if place in skipped or len(word) < SHORTEST or word in common:
            continue
        if known := _terms_of(word):
            topics.append(known)
        others.append((word,))
    return list(dict.fromkeys(topics)), list(dict.fromkeys(others))


def _rating(topics: Sequence[Topic], others: Mapping[Topic, float], chunk: Chunk) -> float:
    """Return how much a chunk speaks of what is asked; its title and headings count more."""
    titled, text = _stems(f"{chunk.title} {chunk.location}"), _stems(chunk.text)
    of_topics = (TITLE * _is_in(topic, titled) + _is_in(topic, text) for topic in topics)
    return sum(of_topics) + sum(others[word] for word in others if _is_in(word, text | titled))


def _answers(topics: Sequence[Topic], chunk: Chunk) -> bool:
    """Return whether a chunk speaks of enough of what is asked."""
    said = _stems(chunk.said)
    needed = LEAST if any(_terms_of(topic[0]) or len(topic) > 1 for topic in topics) else 1
    return sum(_is_in(topic, said) for topic in topics) >= needed * len(topics)


def _is_in(topic: Topic, stems: set[str]) -> bool:
    return not stems.isdisjoint(map(stem, topic))


def _best_paragraph(topics: Sequence[Topic], text: str) -> str:
    """Return the paragraph that speaks of most, with what follows it as far as there is room."""
    paragraphs = [each.strip() for each in text.split("\n\n") if each.strip()]
    ratings = [sum(_is_in(topic, _stems(each)) for topic in topics) for each in paragraphs]
    first = ratings.index(max(ratings)) if ratings else 0
    return truncate_at_boundary("\n\n".join(paragraphs[first : first + 2]), LONGEST_PASSAGE)


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text)}


@cache
def _terms() -> Mapping[str, Topic]:
    """Return the words of wine in every language, with the English words for each."""
    table = read_toml(dict[str, str], FOLDER / "terms.toml")
    found: dict[str, Topic] = {}
    for english, said in table.items():
        topic = tuple(english.split())
        for word in (*topic, *said.split()):
            found[word] = tuple(dict.fromkeys((*found.get(word, ()), *topic)))
    return found


def _terms_of(word: str) -> Topic:
    """Return the English words that a word of wine stands for; `*` in the table is any ending."""
    if found := _terms().get(word):
        return found
    heads = (f"{word[:length]}*" for length in range(len(word), 2, -1))
    return next((_terms()[head] for head in heads if head in _terms()), ())

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
"""The share of a question's subjects that a passage has to name."""
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
    wanted = [*topics, *others]
    ranked = sorted(chunks, key=lambda chunk: -_share(wanted, f"{chunk.title} {chunk.location}"))
    found = next((chunk for chunk in ranked if _answers(topics or others, chunk)), None)
    return Passage(_best_paragraph(wanted, found.text), found) if found else None


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


def _answers(topics: Sequence[Topic], chunk: Chunk) -> bool:
    """Return whether a chunk speaks of enough of what is asked."""
    is_known = any(_terms_of(topic[0]) or len(topic) > 1 for topic in topics)
    return _share(topics, chunk.source_text) >= (LEAST if is_known else 1)


def _share(topics: Sequence[Topic], text: str) -> float:
    """Return the share of the topics that a text speaks of."""
    stems = {stem(word) for word in words(text)}
    return sum(not stems.isdisjoint(map(stem, topic)) for topic in topics) / len(topics)


def _best_paragraph(topics: Sequence[Topic], text: str) -> str:
    """Return the paragraph that speaks of most, with what follows it as far as there is room."""
    paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()] or [text]
    best = max(range(len(paragraphs)), key=lambda place: _share(topics, paragraphs[place]))
    return truncate_at_boundary("\n\n".join(paragraphs[best : best + 2]), LONGEST_PASSAGE)


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

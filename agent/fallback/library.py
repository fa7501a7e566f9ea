"""Answers to questions by a passage of the documents, word for word, with its source.

A question in another language finds English documents by the words of wine that it holds, which
`terms.toml` tells in English.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.documents.passages import Chunk, DocumentStore, best_passage
from agent.fallback.words import FOLDER, scan, tokens
from agent.language import common_words, stem, stop_words
from agent.tables import read_toml
from agent.text import words

MOST_CHUNKS: Final = 8
LONGEST: Final = 700
"""Characters of a passage."""
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
    wanted = [*topics, *others]
    if not wanted:
        return None
    in_english = " ".join(word for topic in topics for word in topic)
    chunks = await documents.search([question, in_english or question], limit=MOST_CHUNKS)
    ranked = sorted(chunks, key=lambda chunk: -_share(wanted, f"{chunk.title} {chunk.location}"))
    least = LEAST if topics else 1
    for chunk in ranked:
        if _share(topics or others, chunk.source_text) >= least:
            return Passage(best_passage(chunk.text, f"{question} {in_english}", LONGEST), chunk)
    return None


def _topics(question: str, language: str) -> tuple[list[Topic], list[Topic]]:
    """Return what a question is about in English, as far as that is known, and its other words."""
    question_words = tokens(question)
    spans = scan(question_words, language)
    topics = [tuple(words(name)) for span in spans for key in NAMES for name in span.values(key)]
    grammar = [span for span in spans if "mark" in span.meanings and not span.has("serving")]
    skipped = {place for span in grammar for place in span.places}
    common = common_words(language) | stop_words()
    others: list[Topic] = []
    for place, token in enumerate(question_words):
        word = next(iter(words(token.written)), "")
        if place not in skipped and len(word) >= SHORTEST and word not in common:
            topics += filter(None, [_terms_of(word)])
            others.append((word,))
    return list(dict.fromkeys(topics)), list(dict.fromkeys(others))


def _share(topics: Sequence[Topic], text: str) -> float:
    """Return the share of the topics that a text speaks of."""
    stems = {stem(word) for word in words(text)}
    return sum(not stems.isdisjoint(map(stem, topic)) for topic in topics) / len(topics)


@cache
def _terms() -> Mapping[str, Topic]:
    """Return the words of wine in every language, with the English words for each."""
    found: dict[str, Topic] = {}
    for english, others in read_toml(dict[str, str], FOLDER / "terms.toml").items():
        topic = tuple(english.split())
        for word in (*topic, *others.split()):
            found[word] = tuple(dict.fromkeys((*found.get(word, ()), *topic)))
    return found


def _terms_of(word: str) -> Topic:
    """Return the English words that a word of wine stands for; `*` in the table is any ending."""
    heads = (f"{word[:length]}*" for length in range(len(word), 2, -1))
    return next((_terms()[key] for key in (word, *heads) if key in _terms()), ())

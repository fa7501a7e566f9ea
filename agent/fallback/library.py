"""Answers to questions by a passage of the documents, word for word, with its source.

A question in another language finds English documents by the words of wine that it holds, which
`terms.toml` tells in English.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.documents.passages import Chunk, DocumentStore
from agent.fallback.words import FOLDER, scan, tokens
from agent.tables import read_toml
from agent.text import stem, stop_words, truncate_at_boundary, words

MOST_CHUNKS: Final = 8
LONGEST_PASSAGE: Final = 700
SHORTEST: Final = 4
"""Letters of a word that tells what a question is about."""
LEAST: Final = 0.5
"""Which part of what a question is about a passage has to speak of."""
TITLE: Final = 1.5
"""How much a word in a title or a heading counts."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Words of a document, and which document it is."""

    text: str
    chunk: Chunk


async def passage_for(question: str, language: str, documents: DocumentStore) -> Passage | None:
    """Return the passage that answers a question best; None if none speaks of what it asks."""
    topics = list(dict.fromkeys(_topics(question, language)))
    if not topics:
        return None
    asked = " ".join(word for topic in topics for word in topic)
    chunks = await documents.search([question, asked], limit=MOST_CHUNKS)
    chunk = max(chunks, key=lambda each: (_rating(topics, each), -each.position), default=None)
    of_wine = any(_terms_of(topic[0]) for topic in topics)
    if chunk is None or _rating(topics, chunk) < (LEAST if of_wine else 1) * len(topics):
        return None
    return Passage(_best_paragraph(topics, chunk.text), chunk)


Topic = tuple[str, ...]
"""A word of a question, and the English words that it may stand for."""


def _topics(question: str, language: str) -> Iterator[Topic]:
    """Yield what a question is about: its words that are no grammar, in English if known."""
    said = tokens(question)
    spans = scan(said, language)
    for span in spans:
        for name in (*span.values("regions"), *span.values("grapes"), *span.values("countries")):
            yield tuple(words(name))
    grammar = {place for span in spans for place in range(span.start, span.end)}
    for place, token in enumerate(said):
        word = next(iter(words(token.written)), "")
        terms = _terms_of(word)
        if not terms and (place in grammar or len(word) < SHORTEST or word in stop_words()):
            continue
        yield terms or (word,)


def _rating(topics: Sequence[Topic], chunk: Chunk) -> float:
    """Return how many of the topics a chunk speaks of; its title and headings count more."""
    titled = _stems(f"{chunk.title} {chunk.location}")
    text = _stems(chunk.text)
    return sum(
        TITLE if titled & stems else 1.0 if text & stems else 0.0
        for topic in topics
        for stems in [{stem(word) for word in topic}]
    )


def _best_paragraph(topics: Sequence[Topic], text: str) -> str:
    """Return the paragraph that speaks of most, with what follows it as far as there is room."""
    paragraphs = [each.strip() for each in text.split("\n\n") if each.strip()]
    wanted = [{stem(word) for word in topic} for topic in topics]
    ratings = [sum(bool(_stems(each) & stems) for stems in wanted) for each in paragraphs]
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

"""Find the passage of the documents that answers a question."""

from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from agent.documents.passages import Chunk, DocumentStore, find_best_passage
from agent.documents.shop import ONLY_OF_SHOP, find_shop_topics, is_shop_document
from agent.documents.topics import (
    Topics,
    find_share_on_topic,
    find_topic_share,
    find_topics,
)
from agent.language import truncate_at_boundary

MAX_CHUNKS: Final = 8
MAX_PASSAGE_CHARS: Final = 700


async def find_passage(
    question: str, language: str, documents: DocumentStore
) -> Chunk | None:
    """Return the passage that answers a question best, or None if no document is about it.

    The passage is a chunk of a document, cut to the part with the answer.
    """
    shop_topics = find_shop_topics([question])
    if shop_topics:
        passage = await find_shop_passage(question, documents)
        if passage is not None or shop_topics & ONLY_OF_SHOP:
            return passage
    topics = find_topics(question, language)
    if not topics.english and not topics.words:
        return None
    queries = topics.list_queries(question)
    chunks = await documents.search(queries, limit=MAX_CHUNKS)
    most_relevant = sorted(
        chunks, key=partial(_rate_relevance, topics=topics), reverse=True
    )
    wanted = " ".join(queries)
    for chunk in most_relevant:
        if topics.are_in(chunk.source_text):
            text = find_best_passage(chunk.text, wanted, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None


class _Relevance(NamedTuple):
    """How well a chunk fits the topics of a question. The first number counts most."""

    is_named: bool
    share_of_headings: float
    share_of_title: float
    on_topic: float
    """The share of the heading that is about the topics.

    A user who asks what tannin is wants the section "What tannin is", and not "Tannin and food".
    """
    share_of_text: float
    """The share of the topics that the text names.

    "What does DOCG mean on a label?" has two sections on labels, one of which explains DOCG.
    """


def _rate_relevance(chunk: Chunk, topics: Topics) -> _Relevance:
    """Return how well a chunk fits the topics of a question."""
    all_topics = [*topics.english, *topics.words]
    headings = f"{chunk.title} {chunk.location}"
    share_of_title = find_topic_share(all_topics, chunk.title)
    on_topic = 0.0
    if share_of_title or len(topics.words) == 1:
        on_topic = find_share_on_topic(chunk.location, all_topics)
    return _Relevance(
        is_named=topics.are_named_in(chunk.source_text),
        share_of_headings=find_topic_share(all_topics, headings),
        share_of_title=share_of_title,
        on_topic=on_topic,
        share_of_text=find_topic_share(all_topics, chunk.text),
    )


async def find_shop_passage(question: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage of the owner's document about a question on the shop, or None."""
    for chunk in await documents.search([question], limit=1):
        if is_shop_document(chunk.path):
            text = truncate_at_boundary(chunk.text, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None

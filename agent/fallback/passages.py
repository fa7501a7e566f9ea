"""Find the passage of the documents that answers a question."""

from dataclasses import replace
from typing import Final

from agent.documents.passages import Chunk, DocumentStore, find_best_passage
from agent.documents.shop import ONLY_OF_SHOP, find_shop_topics, is_shop_document
from agent.documents.topics import (
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
    all_topics = [*topics.english, *topics.words]
    if not all_topics:
        return None
    queries = topics.list_queries(question)
    chunks = await documents.search(queries, limit=MAX_CHUNKS)

    def relevance(chunk: Chunk) -> tuple[bool, float, float, float, float]:
        is_named = topics.are_named_in(chunk.source_text)
        headings = f"{chunk.title} {chunk.location}"
        share_of_headings = find_topic_share(all_topics, headings)
        share_of_title = find_topic_share(all_topics, chunk.title)
        # A user who asks what tannin is wants the section "What tannin is", and not "Tannin and
        # food". So the share of the heading that is about the topic counts, too.
        on_topic = 0.0
        if share_of_title or len(topics.words) == 1:
            on_topic = find_share_on_topic(chunk.location, all_topics)
        # "What does DOCG mean on a label?": two sections on labels, one of which explains DOCG.
        share_of_text = find_topic_share(all_topics, chunk.text)
        return is_named, share_of_headings, share_of_title, on_topic, share_of_text

    wanted = " ".join(queries)
    for chunk in sorted(chunks, key=relevance, reverse=True):
        if topics.are_in(chunk.source_text):
            text = find_best_passage(chunk.text, wanted, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None


async def find_shop_passage(question: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage of the owner's document about a question on the shop, or None."""
    for chunk in await documents.search([question], limit=1):
        if is_shop_document(chunk.path):
            text = truncate_at_boundary(chunk.text, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None

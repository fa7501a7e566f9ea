"""Find the passage of the documents that answers a question."""

from dataclasses import replace
from typing import Final

from agent.documents.passages import Chunk, DocumentStore, find_best_passage
from agent.documents.relevance import find_relevant_chunks
from agent.documents.shop import is_shop_document
from agent.documents.topics import find_topics
from agent.language import truncate_at_boundary

MAX_PASSAGE_CHARS: Final = 700


async def find_passage(
    question: str,
    language: str,
    documents: DocumentStore,
) -> Chunk | None:
    """Return the passage that answers a question best, or None if no document is about it.

    The passage is a chunk of a document, cut to the part with the answer.
    """
    chunks = await find_relevant_chunks(question, language, documents)
    if not chunks:
        return None
    best = chunks[0]
    if is_shop_document(best.path):
        return _truncate(best)
    wanted = " ".join(find_topics(question, language).list_words())
    text = find_best_passage(best.text, wanted, MAX_PASSAGE_CHARS)
    return replace(best, text=text)


async def find_shop_passage(question: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage of the owner's document about a question on the shop, or None."""
    for chunk in await documents.search([question], limit=1):
        if is_shop_document(chunk.path):
            return _truncate(chunk)
    return None


def _truncate(chunk: Chunk) -> Chunk:
    """Return a chunk with as much of its text as is shown."""
    text = truncate_at_boundary(chunk.text, MAX_PASSAGE_CHARS)
    return replace(chunk, text=text)

"""Find the passage of the documents that answers a question."""

from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from agent.documents.passages import Chunk, DocumentStore, find_best_passage
from agent.documents.shop import ONLY_OF_SHOP, find_shop_topics, is_shop_document
from agent.documents.topics import Topics, find_topics, rate_coverage, rate_focus
from agent.language import truncate_at_boundary

MAX_CHUNKS: Final = 8
MAX_PASSAGE_CHARS: Final = 700


async def find_passage(
    question: str,
    language: str,
    documents: DocumentStore,
) -> Chunk | None:
    """Return the passage that answers a question best, or None if no document is about it.

    The passage is a chunk of a document, cut to the part with the answer.
    """
    shop_topics = find_shop_topics([question])
    if shop_topics:
        passage = await find_shop_passage(question, documents)
        only_shop_answers = bool(shop_topics & ONLY_OF_SHOP)
        if passage is not None or only_shop_answers:
            return passage
    topics = find_topics(question, language)
    if not topics.question_words and not topics.english_terms:
        return None
    queries = topics.list_queries(question)
    chunks = await documents.search(queries, limit=MAX_CHUNKS)
    most_relevant = sorted(
        chunks, key=partial(_rate_relevance, topics=topics), reverse=True
    )
    wanted = " ".join(queries)
    for chunk in most_relevant:
        # The title and headings count too, but only the text is shown.
        if topics.are_covered_by(chunk.source_text):
            text = find_best_passage(chunk.text, wanted, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None


class _Relevance(NamedTuple):
    """How well a chunk fits the topics of a question. The first number counts most."""

    has_proper_name: bool
    coverage_by_headings: float
    """The share of the topics that the title and the headings of the chunk mention."""
    coverage_by_title: float
    focus_of_headings: float
    """The share of the words of the headings that name topics.

    A user who asks what tannin is wants the section "What tannin is", and not "Tannin and food".
    """
    coverage_by_text: float
    """The share of the topics that the text mentions.

    "What does DOCG mean on a label?" has two sections on labels, one of which explains DOCG.
    """


def _rate_relevance(chunk: Chunk, topics: Topics) -> _Relevance:
    """Return how well a chunk fits the topics of a question."""
    all_topics = [*topics.english_terms, *topics.question_words]
    headings = chunk.location
    title_and_headings = f"{chunk.title} {headings}"
    coverage_by_title = rate_coverage(chunk.title, all_topics)
    # In a document about something else, a short heading with one of several topics misleads.
    focus = 0.0
    if coverage_by_title or len(topics.question_words) == 1:
        focus = rate_focus(headings, all_topics)
    return _Relevance(
        has_proper_name=topics.have_proper_name_in(chunk.source_text),
        coverage_by_headings=rate_coverage(title_and_headings, all_topics),
        coverage_by_title=coverage_by_title,
        focus_of_headings=focus,
        coverage_by_text=rate_coverage(chunk.text, all_topics),
    )


async def find_shop_passage(question: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage of the owner's document about a question on the shop, or None."""
    for chunk in await documents.search([question], limit=1):
        if is_shop_document(chunk.path):
            text = truncate_at_boundary(chunk.text, MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None

"""Choose the passages that are about a question, if no model chooses them.

A passage is about a question if it mentions most of its topics, and if its title or headings name
one of them. If they name none, the passage must mention all of several topics. A topic counts by
how rare its words are in the library: "malolactic" says more about a question than "wine". A word
that no document has is as rare as can be, so a question that is mostly about it has no passage.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.passages import (
    MAX_CHUNKS,
    Chunk,
    DocumentStore,
    describe_chunks,
)
from agent.documents.shop import (
    find_shop_topics,
    is_for_shop,
    is_shop_document,
)
from agent.documents.topics import Topic, find_topics
from agent.engine.run import Span
from agent.i18n import current_language, translate
from agent.language import stem, stop_words
from agent.text import split_words

MAX_CANDIDATES: Final = 50
"""The most chunks of a search that are rated."""
MIN_COVERAGE: Final = 0.6
"""The share of a question's topics that a relevant passage mentions."""
MIN_SHARE_OF_BEST: Final = 0.85
"""The share of the best relevance below which a passage is not shown beside the best."""
UNKNOWN: Final = 1.0
"""The rarity of a word that no document has."""


@dataclass(frozen=True, slots=True)
class WeightedTopic:
    """A topic of a question: the stems of its words, and how much it counts."""

    stems: frozenset[str]
    weight: float


async def find_relevant_chunks(
    question: str, language: str, documents: DocumentStore
) -> list[Chunk]:
    """Return the chunks that are about a question, the most relevant first.

    Their scores say how relevant they are.
    """
    if find_shop_topics([question]):
        shop_chunks = await _find_shop_chunks(question, documents)
        if shop_chunks or is_for_shop(question):
            return shop_chunks
    topics = find_topics(question, language)
    rarity = await documents.measure_rarity(topics.list_words())
    weighted_topics = _weigh(topics.topics, rarity)
    if not weighted_topics:
        return []
    queries = topics.list_queries(question)
    relevant: list[Chunk] = []
    for chunk in await documents.search(queries, limit=MAX_CANDIDATES):
        relevance = _rate_relevance(chunk, weighted_topics)
        if relevance:
            relevant.append(replace(chunk, score=relevance))
    # Of equally relevant chunks, those of own documents stay first.
    relevant.sort(key=lambda chunk: chunk.score, reverse=True)
    return relevant


async def retrieve_relevant(
    question: str, documents: DocumentStore, span: Span
) -> list[Chunk]:
    """Return the most relevant chunks for a question in the current language, and trace them."""
    with span.child("retrieve.documents", "retriever", input=question) as retriever:
        relevant = await find_relevant_chunks(question, current_language(), documents)
        best_score = max((chunk.score for chunk in relevant), default=0.0)
        min_score = MIN_SHARE_OF_BEST * best_score
        near_best = [chunk for chunk in relevant if chunk.score >= min_score]
        chunks = near_best[:MAX_CHUNKS]
        retriever.update(output=describe_chunks(chunks))
    return chunks


def say_nothing_found(question: str) -> str:
    """Return the sentence that no document answers a question, and who may."""
    if is_for_shop(question):
        return translate("only_shop_knows")
    return translate("no_matching_document")


async def _find_shop_chunks(question: str, documents: DocumentStore) -> list[Chunk]:
    """Return the best chunk of the owner's document for a question on the shop, if there is one."""
    best = await documents.search([question], limit=1)
    return [chunk for chunk in best if is_shop_document(chunk.path)]


def _weigh(topics: Sequence[Topic], rarity: Mapping[str, float]) -> list[WeightedTopic]:
    """Return the topics with their weights: the rarity of the most common of their words."""
    weighted: list[WeightedTopic] = []
    for topic in topics:
        weight = min(rarity[word] for word in topic.words)
        is_unknown = weight >= UNKNOWN
        if topic.is_translated and is_unknown:
            continue
        stems = frozenset(map(stem, topic.words))
        weighted.append(WeightedTopic(stems, weight))
    return weighted


def _rate_relevance(chunk: Chunk, topics: Sequence[WeightedTopic]) -> float:
    """Return how well a chunk fits topics, or 0 if it is not about them.

    To be named counts more than to be mentioned: the title says what the document is about, the
    headings what the section is about.
    """
    title = _list_content_stems(chunk.title)
    # Below "Cork taint", the heading "What it is" means "What cork taint is".
    section = _list_content_stems(chunk.location) or title
    headings = title | section
    headings_coverage = _rate_coverage(headings, topics)
    coverage = _rate_coverage(headings | _list_stems(chunk.text), topics)
    mentions_all = coverage == 1 and len(topics) > 1
    is_named = headings_coverage > 0
    if coverage < MIN_COVERAGE or not (is_named or mentions_all):
        return 0
    title_coverage = _rate_coverage(title, topics)
    section_coverage = _rate_coverage(section, topics)
    focus = _rate_focus(section, topics)
    return (
        2 * coverage + 2 * headings_coverage + title_coverage + section_coverage + focus
    )


def _list_stems(text: str) -> set[str]:
    """Return the stems of the words of a text."""
    return set(map(stem, split_words(text)))


def _list_content_stems(heading: str) -> set[str]:
    """Return the stems of the words of a heading that have a meaning of their own."""
    content_words = set(split_words(heading)) - stop_words()
    return set(map(stem, content_words))


def _rate_coverage(stems: Collection[str], topics: Sequence[WeightedTopic]) -> float:
    """Return the share of the topics that have one of the stems, by their weights."""
    total = 0.0
    mentioned = 0.0
    for topic in topics:
        total += topic.weight
        if not topic.stems.isdisjoint(stems):
            mentioned += topic.weight
    return mentioned / total


def _rate_focus(heading_stems: set[str], topics: Sequence[WeightedTopic]) -> float:
    """Return the share of the content words of a heading that name one of the topics.

    A user who asks what tannin is wants the section "What tannin is", and not "Tannin and food".
    """
    if not heading_stems:
        return 0
    topic_stems: set[str] = set()
    for topic in topics:
        topic_stems |= topic.stems
    shared_stems = heading_stems & topic_stems
    return len(shared_stems) / len(heading_stems)

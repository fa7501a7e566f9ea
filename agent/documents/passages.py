"""What cited answers and quotes share: retrieval, passages as they stand, outcome on the trace."""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from agent.documents.store import Chunk, DocumentStore
from agent.engine.loop import AgenticResponse
from agent.engine.span import PromptRef, Span
from agent.outcome import Outcome, error_types, guard_output, record_outcome
from agent.text import truncate_at_boundary, words

T = TypeVar("T")

MAX_CHUNKS: Final = 8
DEFAULT_CHUNKS: Final = 6
PASSAGE_CHARS: Final = 600
SHOWN_PASSAGES: Final = 3

NO_MODEL: Final = "No language model is configured here; these are the best passages, as they are."
MODEL_FAILED: Final = (
    "My language model gave no answer that I could verify; these are the best passages, as they "
    "are."
)
PARAGRAPH: Final = re.compile(r"\S(?:.|\n(?!\s*\n))*")
MARKUP: Final = re.compile(r"<(?=/?(?:excerpts|sources|question)\b)", re.IGNORECASE)


async def retrieve(
    documents: DocumentStore, queries: Sequence[str], limit: int, span: Span
) -> list[Chunk]:
    """The best chunks for any of `queries`, at most 8, whose documents the metadata store knows.

    Raises what the store raises.
    """
    with span.child("retrieve.documents", "retriever", input=list(queries)) as retriever:
        found = await documents.search(queries, min(limit, MAX_CHUNKS))
        known = await documents.known_paths(list({chunk.path for chunk in found}))
        chunks = [chunk for chunk in found[:MAX_CHUNKS] if chunk.path in known]
        retriever.update(
            output=[{"id": chunk.id, "path": chunk.path} for chunk in chunks],
            metadata={"found": len(chunks), "unknown": len(found) - len(chunks)},
        )
    return chunks


def as_data(text: str) -> str:
    """A text that cannot close the fence it is put into."""
    return MARKUP.sub("‹", text)


def best_passage(text: str, question: str, limit: int = PASSAGE_CHARS) -> str:
    """The paragraph of `text` with most words of `question`; a contiguous part of it, as it is."""
    asked = telling_words(question)
    paragraphs = [match[0].rstrip() for match in PARAGRAPH.finditer(text)]
    best = max(paragraphs, key=lambda paragraph: len(asked & telling_words(paragraph)), default="")
    return truncate_at_boundary(best, limit)


def telling_words(text: str) -> set[str]:
    """The words of a text that carry meaning: folded, longer than two letters."""
    return {word for word in words(text) if len(word) > 2 or not word.isascii()}


def outcome_of(response: AgenticResponse[T]) -> Outcome:
    """What a model's answer came to, for the person."""
    if response.ok:
        return "salvaged" if response.outcome == "salvaged" else "answered"
    return "refused" if response.outcome in {"refusal", "content_filter"} else "fallback"


def record(
    span: Span,
    outcome: Outcome,
    response: AgenticResponse[T] | None,
    prompt: PromptRef | None = None,
) -> None:
    """Put what an answer came to onto its span, and what grounding came to below it.

    `prompt` is what a model was asked with, if one was.
    """
    errors = error_types(response) if response else ()
    retries = response.retry_count if response else 0
    record_outcome(span, outcome, retries=retries, error_types=errors, prompt=prompt)
    if response:
        guard_output(response, span)

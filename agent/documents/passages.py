"""What cited answers and quotes share: retrieval, passages as they stand, outcome on the trace."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeVar

from agent.documents.store import Chunk, DocumentStore
from agent.engine.loop import AgenticResponse
from agent.engine.span import PromptRef, Span
from agent.text import REMEMBERED, pattern, truncate_at_boundary, words
from agent.turn import Outcome, error_types, guard_output, record_outcome

T = TypeVar("T")

LONGEST_QUESTION: Final = 1000
"""Characters of a question that is looked up."""

MAX_CHUNKS: Final = 8
DEFAULT_CHUNKS: Final = 6
PASSAGE_CHARS: Final = 600
SHOWN_PASSAGES: Final = 3
LONGEST_COMPOSED: Final = 8000
"""Characters of a text whose accents are put together with their letters before it is compared."""

BEST_PASSAGES: Final = "These are the best passages, as they are."
NO_MODEL: Final = "No language model is configured here."
MODEL_FAILED: Final = "My language model gave no answer that I could verify."
BLANK_LINE: Final = pattern(r"\n\s*\n")
MARKUP: Final = pattern(r"(?i)<(/?(?:excerpts|sources|question))\b")
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂"
SAME_SIGNS: Final = str.maketrans(
    dict.fromkeys(QUOTATION_MARKS, "'")
    | dict.fromkeys("‐‑‒–—―−", "-")
    # What is shown of a document has no square brackets: they would be citations.
    | {"[": "(", "]": ")"}
    | dict.fromkeys("*_\u00ad\u200b\u2060\ufeff")
)


async def retrieve(
    documents: DocumentStore, queries: Sequence[str], limit: int, span: Span
) -> list[Chunk]:
    """Find the best chunks for any of `queries`, at most 8, of documents that the store knows.

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
    """Return a text that cannot close the fence it is put into."""
    return MARKUP.sub(lambda found: f"‹{found[1]}", text)


def best_passage(text: str, question: str, limit: int = PASSAGE_CHARS) -> str:
    """Return the paragraph with most words of `question`; a contiguous part of `text`, as it is."""
    asked = telling_words(question)
    paragraphs = [part.strip() for part in BLANK_LINE.split(text)]
    best = max(paragraphs, key=lambda paragraph: len(asked & telling_words(paragraph)), default="")
    return truncate_at_boundary(best, limit)


def telling_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning: folded, longer than two letters."""
    return {word for word in words(text) if len(word) > 2 or not word.isascii()}


class _Comparable(dict[int, str]):
    """What each character is compared as, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code).translate(SAME_SIGNS)).casefold()
        said = plain.translate(SAME_SIGNS)
        if len(self) < REMEMBERED:
            self[code] = said
        return said


_COMPARABLE: Final = _Comparable()


@lru_cache(maxsize=64)
def comparable(text: str) -> str:
    """Return a text in which kinds of white space, case, quotation marks and dashes are one."""
    if len(text) <= LONGEST_COMPOSED:
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.translate(_COMPARABLE).split())


def verbatim(content: str, text: str) -> str | None:
    """Return the contiguous part of `text` that is `content`, to the letter; None if there is none.

    White space and case make no difference, nor do kinds of quotation marks, dashes and dots, which
    models level as they copy; marks around all of it may be the model's.
    """
    for said in (comparable(content), comparable(content.strip().strip(QUOTATION_MARKS))):
        if said and said in comparable(text) and (found := _part(text, said)):
            return found
    return None


def _part(text: str, said: str) -> str | None:
    """The part of `text` that `said`, a comparable passage, stands for; whole characters only."""
    signs: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for sign in character.translate(_COMPARABLE):
            if not sign.isspace() or (signs and signs[-1] != " "):
                signs.append(" " if sign.isspace() else sign)
                places.append(place)
    whole, start = "".join(signs), -1
    while (start := whole.find(said, start + 1)) >= 0:
        end = start + len(said)
        around = places[max(start - 1, 0)], places[min(end, len(places) - 1)]
        first, last = places[start], places[end - 1]
        if (start == 0 or around[0] < first) and (end == len(places) or last < around[1]):
            return text[first : last + 1]
    return None


def outcome_of(response: AgenticResponse[T]) -> Outcome:
    """Tell what a model's answer came to, for the person."""
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

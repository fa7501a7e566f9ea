"""Retrieve chunks of documents, and format them for models and users."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Protocol, TypeVar

from pydantic import Field

from agent.engine.contract import OutputContract, Source
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Prompt, PromptRef, Run, Span
from agent.engine.tools import Tool, ToolOutput, tool
from agent.formatting import format_language
from agent.i18n import current_language, translate
from agent.language import truncate_at_boundary
from agent.markdown import escape
from agent.query_reading.phrases import detect_language
from agent.text import clip, pattern, split_words
from agent.turn import (
    Lack,
    Reply,
    SearchEffect,
    TurnOutcome,
    get_deps,
    list_error_types,
)

T = TypeVar("T")

MAX_QUESTION_CHARS: Final = 1000
"""Maximum length of a question for the documents."""
MAX_CHUNKS: Final = 6
"""Maximum number of chunks for one question."""
MAX_PASSAGE_CHARS: Final = 600
"""The length to which a passage is cut for a user."""
PASSAGES_SHOWN: Final = 3
"""Maximum number of passages that a user is shown if no model answers."""
TRACED_CHARS: Final = 200
"""Maximum characters of a chunk in a trace."""
DETECTION_CHARS: Final = 1000
"""Maximum characters of a passage from which its language is detected."""

MIN_SCORE_SHARE: Final = 0.6
"""The share of the best score below which a chunk is far worse than the best."""
CHEAPER_MODEL: Final = "quotes"
"""The key, in a turn's models, of the model to ask first if one document is clearly best."""

BLANK_LINE: Final = pattern(r"\n\s*\n")
"""The blank line between two paragraphs of a chunk."""
PROMPT_TAG: Final = pattern(r"(?i)<(/?(?:excerpts|sources|question))\b")
"""The beginning of a tag of our prompts: "<excerpts", "</question"."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable part of a document. Citations name its `path`.

    `position` counts from 1 to `parts`, the number of chunks in the document. `score` is the higher
    of two values: the word score as a share of the best one, and the cosine to the query.
    """

    id: str
    document_id: str
    path: str
    title: str
    headings: tuple[str, ...]
    position: int
    parts: int
    text: str
    score: float = 0.0

    @property
    def location(self) -> str:
        """Return the headings, outermost first, or "Section N of M" if there are none."""
        if not self.headings:
            return f"Section {self.position} of {self.parts}"
        return " > ".join(self.headings)

    @property
    def source_text(self) -> str:
        """Return title, location and text: everything that comes from the document."""
        return f"{self.title}\n{self.location}\n{self.text}"

    @property
    def links(self) -> tuple[str, ...]:
        """Return no addresses, because an answer cites the document by its path."""
        return ()


class DocumentStore(Protocol):
    """The knowledge base: documents in retrievable chunks."""

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        """Return the best chunks for any of `queries`, which word the same question, best first.

        At most 3 chunks come from one document, unless nothing else matches.
        """

    async def measure_rarity(self, words: Sequence[str]) -> Mapping[str, float]:
        """Return how rare each word is, from about 0 if all chunks have it to 1 if none does."""

    async def load_shop(self) -> list[Chunk]:
        """Return all chunks of the owner's document about the shop, in order."""

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that belong to stored documents."""

    async def count(self) -> int:
        """Return the number of documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpResult:
    """The common fields of answers and quotes."""

    outcome: TurnOutcome
    chunks: tuple[Chunk, ...] = ()
    by_model: bool = False
    note: str = ""
    """The reason why no model was asked, or "" if one was."""
    retry_count: int = 0
    error_types: tuple[str, ...] = ()
    prompt: PromptRef | None = None
    """The prompt that was sent to the model."""

    def to_reply(self, *messages: str) -> Reply:
        """Return the reply of a turn with these messages, in Markdown."""
        return Reply(
            text="\n\n".join(messages),
            parts=messages,
            outcome=self.outcome,
            notes=(self.note,) if self.note else (),
            retries=self.retry_count,
            error_types=self.error_types,
            structured_answer=self,
            prompt=self.prompt,
        )


def build_result_fields(
    chunks: Sequence[Chunk],
    response: AgenticResponse[Any] | None,
    prompt: Prompt,
) -> dict[str, Any]:
    """Return the fields of a `LookUpResult`. `response` is None if no model was asked."""
    fields: dict[str, Any] = {}
    fields["outcome"] = "answered"
    fields["chunks"] = tuple(chunks)
    if response is None:
        if chunks:
            fields["note"] = translate("documents_no_model")
        return fields
    if response.outcome in {"refusal", "content_filter"}:
        fields["outcome"] = "refused"
    elif not response.has_text:
        fields["outcome"] = "fallback"
        fields["note"] = translate("documents_model_failed")
    elif response.outcome == "salvaged":
        fields["outcome"] = "salvaged"
    return fields | {
        "by_model": response.has_text,
        "retry_count": response.retry_count,
        "error_types": list_error_types(response),
        "prompt": prompt.ref,
    }


async def retrieve(
    documents: DocumentStore,
    queries: Sequence[str],
    span: Span,
) -> list[Chunk]:
    """Return at most 6 of the best chunks for any of `queries`. Errors of the store are raised.

    Chunks are dropped if their document is no longer stored.
    """
    with span.child(
        "retrieve.documents", "retriever", input=list(queries)
    ) as retriever:
        hits = await documents.search(queries, MAX_CHUNKS)
        paths = [hit.path for hit in hits]
        known_paths = await documents.known_paths(paths)
        chunks = [hit for hit in hits[:MAX_CHUNKS] if hit.path in known_paths]
        found = len(chunks)
        unknown = len(hits) - found
        metadata = {"found": found, "unknown": unknown}
        retriever.update(output=describe_chunks(chunks), metadata=metadata)
    return chunks


def describe_chunks(chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Return chunks as an admin reads them in a trace: with their rank and beginning."""
    rows: list[dict[str, Any]] = []
    for rank, chunk in enumerate(chunks, start=1):
        row = {
            "rank": rank,
            "id": chunk.id,
            "path": chunk.path,
            "text": clip(chunk.text, TRACED_CHARS),
        }
        rows.append(row)
    return rows


def keep_near_best(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks with a score that is not far below the best."""
    scores = [chunk.score for chunk in chunks]
    best_score = max(scores, default=0.0)
    min_score = MIN_SCORE_SHARE * best_score
    return [chunk for chunk in chunks if chunk.score >= min_score]


def escape_tags(text: str) -> str:
    """Return a text without the tags of our prompts, so that it cannot close its own section."""
    return PROMPT_TAG.sub(lambda match: f"‹{match[1]}", text)


def format_excerpts(chunks: Sequence[Chunk]) -> str:
    """Format chunks for the model: `[path]: text`."""
    texts = []
    for chunk in chunks:
        text = f"[{chunk.path}]: {chunk.text}"
        texts.append(escape_tags(text))
    return "\n\n".join(texts)


def format_source_line(
    number: int,
    title: str,
    location: str,
) -> str:
    """Return a Markdown line that names a source, to show below an answer."""
    source = " ".join(f"{title} · {location}".split())
    return f"[{number}] {escape(source)}"


def find_best_passage(
    text: str,
    question: str,
    limit: int = MAX_PASSAGE_CHARS,
) -> str:
    """Return the paragraph of `text` that shares most words with `question`, cut to `limit`."""
    question_words = list_content_words(question)

    def count_shared(paragraph: str) -> int:
        paragraph_words = list_content_words(paragraph)
        return len(question_words & paragraph_words)

    paragraphs = BLANK_LINE.split(text)
    best = max(paragraphs, key=count_shared)
    return truncate_at_boundary(best.strip(), limit)


def list_content_words(text: str) -> set[str]:
    """Return the normalised words of a text, without words of one or two ASCII letters."""
    words = set()
    for word in split_words(text):
        # In other scripts, two characters may be a full word.
        if len(word) > 2 or not word.isascii():
            words.add(word)
    return words


async def ask_cheaper_model_first(
    message: str,
    run: Run,
    contract: OutputContract[T],
    *,
    chunks: Sequence[Chunk],
) -> AgenticResponse[T]:
    """Ask the cheaper model if one document of `chunks` is clearly best.

    Otherwise, or if its answers stay invalid, ask the run's models.
    """
    cheaper_model = get_deps(run).models.get(CHEAPER_MODEL)
    if cheaper_model is not None and has_clear_best(chunks):
        # If this model is down, the run's models are asked.
        one_try = replace(run.limits, model_tries=1)
        cheaper_run = replace(run, models=[cheaper_model], limits=one_try)
        response = await generate_agentic_response(
            message, run=cheaper_run, contract=contract
        )
        if response.outcome == "answered":
            run.span.update(metadata={"tier": 1})
            return response
    if cheaper_model is not None:
        run.span.update(metadata={"tier": 2})
    return await generate_agentic_response(message, run=run, contract=contract)


def has_clear_best(chunks: Sequence[Chunk]) -> bool:
    """Return whether the best document scores far above all others, as for a keyword search."""
    if not chunks:
        return False
    best = chunks[0]
    max_other_score = MIN_SCORE_SHARE * best.score
    for chunk in chunks:
        is_of_other_document = chunk.document_id != best.document_id
        if is_of_other_document and chunk.score > max_other_score:
            return False
    return True


SEARCH_DOCUMENTS: Final = "search_documents"
"""The name of the tool."""
MAX_QUERY_CHARS: Final = 200
QueryText = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]

NO_MATCH: Final = "nothing in the library matches"
SEARCH_LINE: Final = (
    "Look up a question of fact about wine with search_documents before you answer it, and so "
    "every question about this shop. End each sentence that says what an excerpt says with the "
    "[path] of that excerpt; use square brackets for nothing else. If nothing is found in the "
    "guest's language, search in English. If no excerpt has the answer, "
    "say that the library does not have it, then answer from general knowledge. Your own advice "
    "needs no path."
)
NO_MORE: Final = "nothing beyond the excerpts that another search found"
QUOTE_SECONDS: Final = 12
"""Less than the time limit of a tool, so that passages are returned instead of an error."""


def search_documents_tool(documents: DocumentStore) -> Tool:
    """Return the tool search_documents over `documents`."""

    async def search_documents(query: QueryText, run: Run) -> ToolOutput:
        """Search the library. It has articles on this shop (opening hours, delivery, contact),
        on regions, grapes, methods, faults, serving, storing, pairing and labels. Each excerpt
        stands behind its [path]. Words in quotation marks are found letter for letter.
        """
        retrieved = await retrieve(documents, [query], run.span)
        chunks = keep_near_best(retrieved)
        content = _format_new_chunks(chunks, get_deps(run).ids_given_to_model)
        search = SearchEffect(Lack.DOCUMENTS, has_found=bool(chunks))
        return ToolOutput(content, index_by_id(chunks), effects=(search,))

    return replace(
        tool(search_documents), prompt_line=SEARCH_LINE, progress_name="reading"
    )


def _format_new_chunks(chunks: Sequence[Chunk], given_ids: set[str]) -> str:
    """Format the chunks that the model was not given yet, and add them to `given_ids`."""
    if not chunks:
        return NO_MATCH
    new_chunks = [chunk for chunk in chunks if chunk.id not in given_ids]
    if not new_chunks:
        return NO_MORE
    given_ids.update(chunk.id for chunk in new_chunks)
    return format_excerpts(new_chunks)


def index_by_id(chunks: Iterable[Chunk]) -> dict[str, Source]:
    """Return chunks by id, which makes them evidence for an answer."""
    return {chunk.id: chunk for chunk in chunks}


def announce_passages(name: str, text: str, count: int = 1) -> str:
    """Return the sentence above passages. It names their language if it is not the user's.

    `text` is that of the first of the passages.
    """
    language = detect_language(text[:DETECTION_CHARS])
    if language in {"", current_language()}:
        return translate(name, count=count)
    language_name = format_language(language)
    return translate(f"foreign_{name}", language=language_name, count=count)

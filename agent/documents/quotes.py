"""Quotes: snippets that stand, word for word, in the chunk they come from.

Compared after collapsing white space and case. The model is asked without streaming; what it
quoted is delivered one by one, and what of it is not verbatim never leaves this module.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.passages import (
    DEFAULT_CHUNKS,
    MODEL_FAILED,
    NO_MODEL,
    SHOWN_PASSAGES,
    best_passage,
    outcome_of,
    record,
    retrieve,
)
from agent.documents.quote_cache import NO_CACHE, Cache, cache_key
from agent.documents.quote_contract import (
    MAX_SNIPPETS,
    QuotesAnswer,
    Snippet,
    quotes_contract,
    source_chunk,
    user_message,
    verbatim,
)
from agent.documents.store import Chunk, DocumentStore
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.prompts import Prompt
from agent.engine.run import Run
from agent.outcome import Outcome, error_types
from agent.prompts import prompt_for

MAX_TOKENS: Final = 4096
BEST_MATCH: Final = "Found by the search."
NOTHING_FOUND: Final = "No document here speaks of this."
DECLINED: Final = "The model declined to look for quotes on this."


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage as it stands in its source, and where that is; all but `relevance` is the store's.

    `source_id` is the document's id.
    """

    content: str
    source_id: str
    source_title: str
    source_location: str
    relevance: str
    path: str
    chunk_id: str


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes for one query, best first, and a summary across them."""

    query: str
    quotes: tuple[Quote, ...]
    summary: str
    no_results: bool
    outcome: Outcome
    chunks: tuple[Chunk, ...]
    by_model: bool = True
    cached: bool = False
    retry_count: int = 0
    error_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotesDone:
    """What comes after the last quote; `seconds` is the time since the query."""

    result_count: int
    summary: str
    no_results: bool
    outcome: Outcome
    by_model: bool
    seconds: float


async def find_quotes(
    query: str,
    *,
    documents: DocumentStore,
    run: Run,
    cache: Cache = NO_CACHE,
    limit: int = DEFAULT_CHUNKS,
) -> Quotes:
    """Passages of at most `limit` (8 at most) chunks that answer `query`, at most 8, verbatim.

    Without models, or when they fail, they are the best passages of the search. The same query
    over the same chunks, models and prompt is answered from `cache`. Raises only what the store
    raises.
    """
    chunks = await retrieve(documents, [query], limit, run.span)
    prompt = prompt_for(run, "documents-quotes")
    key = cache_key(query, chunks, [model.model for model in run.models], prompt.text)
    if (kept := cache.get(key)) is not None:
        run.span.update(metadata={"cached": True})
        record(run.span, kept.outcome, None, prompt.ref)
        return replace(kept, query=query, cached=True)
    response = await _ask(query, chunks, run, prompt)
    found = _quotes(query, chunks, response)
    record(run.span, found.outcome, response, prompt.ref if response else None)
    if found.by_model and found.outcome == "answered":
        cache.put(key, found)
    return found


async def _ask(
    query: str, chunks: Sequence[Chunk], run: Run, prompt: Prompt
) -> AgenticResponse[QuotesAnswer] | None:
    if not (run.models and chunks):
        return None
    contract = quotes_contract(chunks)
    run = run.instructed(prompt, max_snippets=str(MAX_SNIPPETS), schema=contract.output.text)
    limits = replace(run.limits, answer_tokens=MAX_TOKENS, answer_tokens_ceiling=MAX_TOKENS)
    return await generate_agentic_response(
        user_message(query, chunks), run=replace(run, limits=limits), contract=contract
    )


async def stream_quotes(
    query: str,
    *,
    documents: DocumentStore,
    run: Run,
    cache: Cache = NO_CACHE,
    limit: int = DEFAULT_CHUNKS,
) -> AsyncIterator[Quote | QuotesDone]:
    """The quotes that `find_quotes` finds, one by one, then a `QuotesDone`."""
    clock = asyncio.get_running_loop().time
    started = clock()
    found = await find_quotes(query, documents=documents, run=run, cache=cache, limit=limit)
    for quote in found.quotes:
        yield quote
    yield QuotesDone(
        result_count=len(found.quotes),
        summary=found.summary,
        no_results=found.no_results,
        outcome=found.outcome,
        by_model=found.by_model,
        seconds=clock() - started,
    )


def _quotes(
    query: str, chunks: Sequence[Chunk], response: AgenticResponse[QuotesAnswer] | None
) -> Quotes:
    outcome: Outcome = outcome_of(response) if response else "answered"
    found = Quotes(query, (), NOTHING_FOUND, True, outcome, tuple(chunks), by_model=False)
    if response:
        found = replace(found, retry_count=response.retry_count, error_types=error_types(response))
    if not chunks:
        return found
    if response and response.answer is not None and response.ok:
        return replace(
            found,
            quotes=as_they_stand(response.answer.snippets, chunks),
            summary=response.answer.summary,
            no_results=response.answer.no_results,
            by_model=True,
        )
    if outcome == "refused":
        return replace(found, summary=DECLINED)
    passages = tuple(_passage(query, chunk) for chunk in chunks[:SHOWN_PASSAGES])
    note = MODEL_FAILED if response else NO_MODEL
    return replace(found, quotes=passages, summary=note, no_results=False)


def as_they_stand(snippets: Sequence[Snippet], chunks: Sequence[Chunk]) -> tuple[Quote, ...]:
    """Snippets as quotes, each once: the text is the chunk's own, letter for letter."""
    found: dict[tuple[str, str], Quote] = {}
    for snippet in snippets:
        chunk = source_chunk(snippet, chunks)
        content = verbatim(snippet.content, chunk.text) if chunk else None
        if chunk and content:
            quote = _quote(chunk, content, snippet.relevance.strip())
            found.setdefault((chunk.id, content), quote)
    return tuple(found.values())


def _passage(query: str, chunk: Chunk) -> Quote:
    return _quote(chunk, best_passage(chunk.text, query), BEST_MATCH)


def _quote(chunk: Chunk, content: str, relevance: str) -> Quote:
    return Quote(
        content=content,
        source_id=chunk.document_id,
        source_title=chunk.title,
        source_location=chunk.location,
        relevance=relevance,
        path=chunk.path,
        chunk_id=chunk.id,
    )

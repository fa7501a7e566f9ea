"""Quotes: snippets that are in their source chunk word for word.

The model is asked without streaming. A snippet that is no contiguous part of its source, or that
has a wrong source id or title, is never returned. In the measurements of the source document, a
strict schema made models stitch sentences together; so the schema is loose (`json_object` by
default), and every rule is checked here.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent.documents.passages import (
    CHEAPER,
    DEFAULT_CHUNKS,
    QUOTE_SECONDS,
    SHOWN_PASSAGES,
    Chunk,
    DocumentStore,
    LookupResult,
    QueryText,
    as_data,
    ask_cheaper_first,
    best_passage,
    by_chunk,
    near_best,
    outcome_of,
    record,
    retrieve,
)
from agent.documents.verbatim import verbatim
from agent.engine.contract import OutputContract
from agent.engine.feedback import fence
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import current_language, translate
from agent.prompts import instructed, prompt_for
from agent.turn import Outcome, deps_of, error_types

MAX_SNIPPETS: Final = 8
MAX_TOKENS: Final = 4096
CACHE_SECONDS: Final = 15 * 60.0
CACHE_ENTRIES: Final = 256


class Snippet(BaseModel):
    """One passage, as the model returns it."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    content: str = Field(description="Verbatim text: a contiguous part of one source chunk.")
    source_id: str = Field(description="The id in the chunk's header.")
    source_title: str = Field(description="The source's title in the chunk's header.")
    source_location: str = Field(description="The section in the chunk's header.")
    relevance: str = Field(description="One sentence: why this passage answers the query.")


class QuotesAnswer(BaseModel):
    """The model's whole answer."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    snippets: list[Snippet] = Field(description="At most 8, most relevant first.")
    summary: str = Field(description="2 to 4 sentences across all snippets.")
    no_results: bool = Field(description="true only if no source holds relevant information.")


PROMPT: Final = """\
## Research query

{query}

## Source material

Extract verbatim passages from these chunks that answer the query above.

<sources>
{sources}
</sources>"""


def user_message(query: str, chunks: Sequence[Chunk]) -> str:
    """Return the query and its chunks, each below a header with title, id and section."""
    sources = "\n\n---\n\n".join(
        f'[Source: "{as_data(chunk.title)}" (id: {chunk.document_id}), '
        f'Section: "{as_data(chunk.location)}"]\n{as_data(chunk.text)}'
        for chunk in chunks
    )
    return PROMPT.format(query=as_data(query), sources=sources)


def quotes_contract(chunks: Sequence[Chunk]) -> OutputContract[QuotesAnswer]:
    """Return the contract of quotes from these chunks."""
    return OutputContract(
        QuotesAnswer,
        semantic=consistency_problem,
        grounding=lambda answer, evidence: first_problem(answer, chunks),
        salvage=lambda answer, evidence: valid_part(answer, chunks),
    )


def consistency_problem(answer: QuotesAnswer) -> str | None:
    """Return a contradiction or a gap in an answer, or None."""
    if answer.no_results and answer.snippets:
        return "noResults is true but snippets is not empty"
    if not answer.no_results and not answer.snippets:
        return "snippets is empty but noResults is false; extract passages or set noResults to true"
    if len(answer.snippets) > MAX_SNIPPETS:
        return f"there are {len(answer.snippets)} snippets, at most {MAX_SNIPPETS} are allowed"
    if not answer.summary.strip():
        return "summary is empty"
    return None


def first_problem(answer: QuotesAnswer, chunks: Sequence[Chunk]) -> str | None:
    """Return feedback on the first snippet that is no quote from these chunks, or None."""
    problems = (snippet_problem(snippet, chunks) for snippet in answer.snippets)
    found = ((place, problem) for place, problem in enumerate(problems) if problem)
    return next((f"snippets.{place}: {problem}" for place, problem in found), None)


def snippet_problem(snippet: Snippet, chunks: Sequence[Chunk]) -> str | None:
    """Return why a snippet is no quote from these chunks, or None if it is one."""
    if not snippet.content.strip():
        return "content is empty"
    titles = {chunk.document_id: as_data(chunk.title) for chunk in chunks}
    if snippet.source_id not in titles:
        return f"no source has the id {fence(snippet.source_id)}; ids: {', '.join(titles)}"
    if snippet.source_title != titles[snippet.source_id]:
        return (
            f"the source {snippet.source_id} has the title {fence(titles[snippet.source_id])}, "
            f"not {fence(snippet.source_title)}"
        )
    if find_in_chunks(snippet, chunks):
        return None
    content = fence(snippet.content)
    for chunk in chunks:
        if verbatim(snippet.content, chunk.text):
            return f"content {content} stands in the source {chunk.document_id}, not in this one"
    return (
        f"content {content} does not stand in this source as one contiguous passage; copy it "
        "exactly, one passage of one chunk for each snippet"
    )


def find_in_chunks(snippet: Snippet, chunks: Sequence[Chunk]) -> tuple[Chunk, str] | None:
    """Return the chunk of the named source that holds a snippet, and its text there, or None."""
    named = (chunk for chunk in chunks if chunk.document_id == snippet.source_id)
    found = ((chunk, verbatim(snippet.content, chunk.text)) for chunk in named)
    return next(((chunk, text) for chunk, text in found if text), None)


def valid_part(answer: QuotesAnswer, chunks: Sequence[Chunk]) -> QuotesAnswer | None:
    """Return an answer with only the snippets that are quotes, or None if none of them is."""
    faithful = [snippet for snippet in answer.snippets if not snippet_problem(snippet, chunks)]
    if not faithful:
        return None
    return QuotesAnswer(snippets=faithful[:MAX_SNIPPETS], summary=answer.summary, no_results=False)


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage in its source's exact words, with its location.

    `source_id` is the document's id. `relevance` is written by the model, and empty without one;
    all other fields are those of the store.
    """

    content: str
    source_id: str
    source_title: str
    source_location: str
    relevance: str
    path: str
    chunk_id: str


@dataclass(frozen=True, slots=True)
class Quotes(LookupResult):
    """The quotes for one query, best first, and a summary, in the model's words if `by_model`."""

    query: str
    quotes: tuple[Quote, ...]
    summary: str
    no_results: bool
    cached: bool = False

    @classmethod
    def crisis_help(cls, query: str, text: str) -> "Quotes":
        """Return the quotes result that offers help in a crisis; no document was searched."""
        return cls(query, (), text, no_results=True, outcome="care", by_model=False)


class QuoteCache:
    """Keeps the newest `entries` answered quotes for `seconds`; `clock` returns seconds."""

    def __init__(
        self,
        *,
        seconds: float = CACHE_SECONDS,
        entries: int = CACHE_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds, self._entries, self._clock = seconds, entries, clock
        self._kept: dict[str, tuple[float, Quotes]] = {}

    def get(self, key: str) -> Quotes | None:
        """Return the quotes stored under `key`, or None if there are none or their time is over."""
        until, quotes = self._kept.get(key, (0.0, None))
        return quotes if self._clock() < until else None

    def put(self, key: str, quotes: Quotes) -> None:
        """Store `quotes` under `key`, and drop the oldest entry if the cache is full."""
        self._kept.pop(key, None)
        self._kept[key] = (self._clock() + self._seconds, quotes)
        if len(self._kept) > self._entries:
            del self._kept[next(iter(self._kept))]


def cache_key(query: str, chunks: Sequence[Chunk], models: Sequence[str], prompt: str = "") -> str:
    """Return the cache key of a query over sources, for models with a prompt, in one language.

    White space and case of the query do not matter. The texts of the sources do: a quote from a
    document that has changed since may be wrong.
    """
    sources = [[chunk.id, chunk.document_id, chunk.title, chunk.text] for chunk in chunks]
    named = json.dumps(
        [" ".join(query.lower().split()), sources, list(models), prompt, current_language()]
    )
    return hashlib.sha256(named.encode()).hexdigest()


async def find_quotes(
    query: str,
    *,
    documents: DocumentStore,
    run: Run,
    cache: QuoteCache | None = None,
    limit: int = DEFAULT_CHUNKS,
) -> Quotes:
    """Return at most 8 verbatim passages that answer `query`, from at most `limit` (8) chunks.

    If there are no models or they fail, these are the best passages of the search. A repeated query
    over equal chunks, models and prompt is answered from `cache`. Errors of the store are raised.
    """
    chunks = await retrieve(documents, [query], limit, run.span)
    prompt = prompt_for(run, "documents-quotes")
    cheaper = deps_of(run).models.get(CHEAPER)
    models = [model.model for model in (*run.models, *([cheaper] if cheaper else []))]
    key = cache_key(query, chunks, models, prompt.text)
    if cache is not None and (kept := cache.get(key)) is not None:
        run.span.update(metadata={"cached": True})
        record(run.span, kept.outcome, None, prompt.ref)
        return replace(kept, query=query, cached=True)
    response = None
    if run.models and chunks:
        contract = quotes_contract(chunks)
        asked = instructed(
            run, prompt, max_snippets=str(MAX_SNIPPETS), schema=contract.output.schema_text
        )
        limits = replace(run.limits, answer_tokens=MAX_TOKENS, answer_tokens_ceiling=MAX_TOKENS)
        asked = replace(asked, limits=limits)
        response = await ask_cheaper_first(user_message(query, chunks), asked, contract, chunks)
    found = _quotes(query, chunks, response)
    record(run.span, found.outcome, response, prompt.ref if response else None)
    if cache is not None and found.by_model and found.outcome == "answered":
        cache.put(key, found)
    return found


def _quotes(
    query: str, chunks: Sequence[Chunk], response: AgenticResponse[QuotesAnswer] | None
) -> Quotes:
    outcome: Outcome = outcome_of(response) if response else "answered"
    nothing = translate("no_document_speaks")
    found = Quotes(query, (), nothing, True, outcome=outcome, chunks=tuple(chunks), by_model=False)
    if response:
        found = replace(found, retry_count=response.retry_count, error_types=error_types(response))
    if not chunks:
        return found
    if response and response.answer is not None and response.ok:
        return replace(
            found,
            quotes=located_quotes(response.answer.snippets, chunks),
            summary=response.answer.summary.strip() or nothing,
            no_results=response.answer.no_results,
            by_model=True,
        )
    if outcome == "refused":
        return replace(found, summary=translate("quotes_declined"))
    passages = tuple(
        _quote(chunk, best_passage(chunk.text, query), relevance="")
        for chunk in near_best(chunks)[:SHOWN_PASSAGES]
    )
    note = translate("documents_model_failed" if response else "documents_no_model")
    return replace(
        found, quotes=passages, summary=translate("best_passages"), note=note, no_results=False
    )


def located_quotes(snippets: Sequence[Snippet], chunks: Sequence[Chunk]) -> tuple[Quote, ...]:
    """Return snippets as quotes without duplicates, with the exact text of the chunk."""
    found: dict[tuple[str, str], Quote] = {}
    for snippet in snippets:
        if place := find_in_chunks(snippet, chunks):
            quote = _quote(*place, snippet.relevance.strip())
            found.setdefault((quote.chunk_id, quote.content), quote)
    return tuple(found.values())


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


def quote_documents_tool(documents: DocumentStore, *, cache: QuoteCache | None = None) -> Tool:
    """Return the tool quote_documents over `documents`."""

    async def quote_documents(query: QueryText, run: Run) -> ToolOutput:
        """Passages of the wine library word for word, with their sources; use it when the guest
        wants a quote, a definition or the exact wording. Never change a quote.
        """
        retries = min(1, run.limits.structured_output_max_retries)
        limits = replace(run.limits, structured_output_max_retries=retries, seconds=QUOTE_SECONDS)
        run = replace(run, limits=limits)
        found = await find_quotes(query, documents=documents, run=run, cache=cache)
        content = {
            "quotes": [asdict(quote) for quote in found.quotes],
            "summary": found.summary,
            "no_results": found.no_results,
        }
        quoted = {quote.chunk_id for quote in found.quotes}
        return ToolOutput(content, by_chunk(chunk for chunk in found.chunks if chunk.id in quoted))

    return tool(quote_documents)

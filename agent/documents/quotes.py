"""Quotes: snippets that are in their source chunk word for word.

The model is asked without streaming. A snippet that is no contiguous part of its source, or that
has a wrong source id or title, is never returned. In the measurements of the source document, a
strict schema made models stitch sentences together; so the schema is loose (`json_object` by
default), and every rule is checked here.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent.documents.passages import (
    QUOTE_SECONDS,
    SHOWN_PASSAGES,
    Chunk,
    DocumentStore,
    LookupResult,
    QueryText,
    ask_cheaper_model_first,
    best_passage,
    by_chunk,
    escaped,
    near_best,
    result_fields,
    retrieve,
)
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import quoted
from agent.engine.loop import AgenticResponse
from agent.engine.run import Prompt, Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import current_language, translate
from agent.prompts import get_prompt, with_instructions
from agent.text import UNSPACED_SCRIPTS, Pattern, escape_pattern, pattern, strip_unstorable
from agent.turn import get_deps

MAX_SNIPPETS: Final = 8
MAX_TOKENS: Final = 4096
CACHE_SECONDS: Final = 15 * 60.0
CACHE_ENTRIES: Final = 256
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂"
EQUAL_SIGNS: Final = (QUOTATION_MARKS, "-‐‑‒–—―−")
"""Kinds of quotation marks and of dashes, which models level as they copy."""


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
        f'[Source: "{escaped(chunk.title)}" (id: {chunk.document_id}), '
        f'Section: "{escaped(chunk.location)}"]\n{escaped(chunk.text)}'
        for chunk in chunks
    )
    return PROMPT.format(query=escaped(query), sources=sources)


def quotes_contract(chunks: Sequence[Chunk]) -> OutputContract[QuotesAnswer]:
    """Return the contract of quotes from these chunks."""

    def grounding(answer: QuotesAnswer, _: Evidence) -> str | None:
        problems = (_snippet_problem(snippet, chunks) for snippet in answer.snippets)
        found = ((place, problem) for place, problem in enumerate(problems) if problem)
        return next((f"snippets.{place}: {problem}" for place, problem in found), None)

    def salvage(answer: QuotesAnswer, _: Evidence) -> QuotesAnswer | None:
        faithful = [found for found in answer.snippets if not _snippet_problem(found, chunks)]
        kept = {"snippets": faithful[:MAX_SNIPPETS], "no_results": False}
        return answer.model_copy(update=kept) if faithful else None

    return OutputContract(
        QuotesAnswer, semantic=_consistency_problem, grounding=grounding, salvage=salvage
    )


def _consistency_problem(answer: QuotesAnswer) -> str | None:
    """Return a contradiction or a gap in an answer, or None."""
    if answer.no_results and answer.snippets:
        return "noResults is true but snippets is not empty"
    if not answer.no_results and not answer.snippets:
        return "snippets is empty but noResults is false; extract passages or set noResults to true"
    if len(answer.snippets) > MAX_SNIPPETS:
        return f"there are {len(answer.snippets)} snippets, at most {MAX_SNIPPETS} are allowed"
    return None if answer.summary.strip() else "summary is empty"


def _snippet_problem(snippet: Snippet, chunks: Sequence[Chunk]) -> str | None:
    """Return why a snippet is no quote from these chunks, or None if it is one."""
    named = snippet.source_id
    titles = {chunk.document_id: escaped(chunk.title) for chunk in chunks}
    if not snippet.content.strip():
        return "content is empty"
    if named not in titles:
        return f"no source has the id {quoted(named)}; ids: {', '.join(titles)}"
    if snippet.source_title != titles[named]:
        title, named_title = quoted(titles[named]), quoted(snippet.source_title)
        return f"the source {named} has the title {title}, not {named_title}"
    if find_in_chunks(snippet, chunks):
        return None
    return (
        f"content {quoted(snippet.content)} does not occur in this source as one contiguous "
        "passage; copy it exactly, one passage of one chunk for each snippet"
    )


def find_in_chunks(snippet: Snippet, chunks: Sequence[Chunk]) -> tuple[Chunk, str] | None:
    """Return the chunk of the named source that holds a snippet, and its text there, or None."""
    for chunk in chunks:
        is_named = chunk.document_id == snippet.source_id
        if is_named and (text := verbatim(snippet.content, chunk.text)):
            return chunk, text
    return None


def verbatim(content: str, text: str) -> str | None:
    """Return the contiguous part of `text` that `content` quotes, to the letter, or None.

    White space and case make no difference, nor do kinds of quotation marks and dashes. Quotation
    marks and an ellipsis around the content may be the model's. A quote begins and ends with a
    word.
    """
    words = strip_unstorable(content).strip(f"{QUOTATION_MARKS}… ").split()
    if not words or sum(map(len, words)) > len(text):
        return None
    for found in _quote_pattern(*words).finditer(text):
        start, end = found.span()
        if not any(_is_within_word(text[max(0, at - 1) : at + 1]) for at in (start, end)):
            return text[start:end]
    return None


@lru_cache(maxsize=64)
def _quote_pattern(*words: str) -> Pattern:
    return pattern(r"(?i)" + r"\s+".join("".join(map(_in_any_form, word)) for word in words))


def _in_any_form(sign: str) -> str:
    """Return a pattern of a character, or of those that are equal to it."""
    return next(
        (f"[{escape_pattern(signs)}]" for signs in EQUAL_SIGNS if sign in signs),
        escape_pattern(sign),
    )


def _is_within_word(around: str) -> bool:
    return len(around) == 2 and around.isalnum() and not UNSPACED_SCRIPTS.search(around)


class Quote(Snippet):
    """A passage in its source's exact words.

    `relevance` is written by the model, and empty without one; all else comes from the store.
    """

    path: str
    chunk_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes(LookupResult):
    """The quotes for one query, best first, and a summary, in the model's words if `by_model`."""

    query: str
    quotes: tuple[Quote, ...] = ()
    summary: str
    no_results: bool = True
    cached: bool = False


class QuoteCache:
    """Keeps the newest answered quotes for 15 minutes; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stored: dict[Hashable, tuple[float, Quotes]] = {}

    def get(self, key: Hashable) -> Quotes | None:
        """Return the quotes stored under `key`, or None if there are none or their time is over."""
        until, quotes = self._stored.get(key, (0.0, None))
        return quotes if self._clock() < until else None

    def put(self, key: Hashable, quotes: Quotes) -> None:
        """Store `quotes` under `key`, and drop the oldest entry if the cache is full."""
        self._stored.pop(key, None)
        self._stored[key] = (self._clock() + CACHE_SECONDS, quotes)
        if len(self._stored) > CACHE_ENTRIES:
            del self._stored[next(iter(self._stored))]


async def find_quotes(
    query: str, *, documents: DocumentStore, run: Run, cache: QuoteCache | None = None
) -> Quotes:
    """Return at most 8 verbatim passages that answer `query`, from at most 6 chunks.

    If there are no models or they fail, these are the best passages of the search. A repeated query
    over equal chunks, models and prompt is answered from `cache`. Errors of the store are raised.
    """
    chunks = await retrieve(documents, [query], run.span)
    prompt = get_prompt(run, "documents-quotes")
    words, models = query.lower().split(), (*run.models, *get_deps(run).models.values())
    names = [model.model for model in models]
    # With the texts: a quote from a document that has changed since may be wrong.
    key = *words, *chunks, *names, prompt.text, current_language()
    if cache is not None and (stored := cache.get(key)) is not None:
        run.span.update(metadata={"cached": True})
        return replace(stored, query=query, cached=True)
    response = None
    if run.models and chunks:
        contract = quotes_contract(chunks)
        schema = contract.output.schema_text
        quote_run = with_instructions(run, prompt, max_snippets=str(MAX_SNIPPETS), schema=schema)
        limits = replace(run.limits, answer_tokens=MAX_TOKENS, answer_tokens_ceiling=MAX_TOKENS)
        response = await ask_cheaper_model_first(
            user_message(query, chunks), replace(quote_run, limits=limits), contract, chunks=chunks
        )
    found = _quotes(query, chunks, response, prompt)
    if cache is not None and found.by_model and found.outcome == "answered":
        cache.put(key, found)
    return found


def _quotes(
    query: str,
    chunks: Sequence[Chunk],
    response: AgenticResponse[QuotesAnswer] | None,
    prompt: Prompt,
) -> Quotes:
    nothing = translate("no_matching_document")
    found = Quotes(query=query, summary=nothing, **result_fields(chunks, response, prompt))
    if not chunks:
        return found
    if response and response.answer is not None and response.has_text:
        answer = response.answer
        # The exact text of the chunk, without duplicates.
        located = ((snippet, find_in_chunks(snippet, chunks)) for snippet in answer.snippets)
        quotes = [_quote(*place, one.relevance.strip()) for one, place in located if place]
        unique = {(quote.chunk_id, quote.content): quote for quote in quotes}
        return replace(
            found,
            quotes=tuple(unique.values()),
            summary=answer.summary.strip() or nothing,
            no_results=answer.no_results,
        )
    if found.outcome == "refused":
        return replace(found, summary=translate("quotes_declined"))
    return replace(
        found,
        quotes=tuple(
            _quote(chunk, best_passage(chunk.text, query), relevance="")
            for chunk in near_best(chunks)[:SHOWN_PASSAGES]
        ),
        summary=translate("best_passages"),
        no_results=False,
    )


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
            "quotes": [quote.model_dump() for quote in found.quotes],
            "summary": found.summary,
            "no_results": found.no_results,
        }
        quoted_ids = {quote.chunk_id for quote in found.quotes}
        sources = by_chunk(chunk for chunk in found.chunks if chunk.id in quoted_ids)
        return ToolOutput(content, sources)

    return tool(quote_documents)

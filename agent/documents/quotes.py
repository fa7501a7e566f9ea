"""Find quotes, which are snippets that occur word for word in their source chunk.

A chunk is a stored piece of a document. A snippet is what the model claims to have copied from a
chunk. A quote is a snippet that was checked.

Measurements showed that a strict JSON schema leads models to stitch sentences together. So by
default only a `json_object` is requested, and this module checks every rule of the schema.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent.documents.passages import (
    PASSAGES_SHOWN,
    QUOTE_SECONDS,
    Chunk,
    DocumentStore,
    LookUpResult,
    QueryText,
    announce_passages,
    ask_cheaper_model_first,
    build_result_fields,
    escape_tags,
    find_best_passage,
    index_by_id,
    keep_near_best,
    retrieve,
)
from agent.documents.relevance import retrieve_relevant, say_nothing_found
from agent.documents.topics import find_topics
from agent.engine.contract import Evidence, OutputContract, Part
from agent.engine.errors import clip_quote
from agent.engine.loop import AgenticResponse
from agent.engine.run import Prompt, Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import current_language, translate
from agent.languages import ENGLISH
from agent.prompts import get_prompt, with_instructions
from agent.text import (
    UNSPACED_SCRIPTS,
    Pattern,
    escape_pattern,
    pattern,
    strip_unstorable,
)
from agent.turn import get_deps

MAX_SNIPPETS: Final = 8
MAX_ANSWER_TOKENS: Final = 4096
"""The token limit of an answer, which has up to eight passages."""
CACHE_SECONDS: Final = 15 * 60.0
CACHE_ENTRIES: Final = 256
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›「」『』＂"
EQUIVALENT_CHARS: Final = (QUOTATION_MARKS, "-‐‑‒–—―−")
"""Groups of characters that count as equal, because models often replace one with another."""


class Snippet(BaseModel):
    """A passage that the model claims to have copied."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, frozen=True
    )

    content: str = Field(
        description="Verbatim text: a contiguous part of one source chunk."
    )
    source_id: str = Field(description="The id in the chunk's header.")
    source_title: str = Field(description="The source's title in the chunk's header.")
    source_location: str = Field(description="The section in the chunk's header.")
    relevance: str = Field(
        description="One sentence: why this passage answers the query."
    )


class QuotesAnswer(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, frozen=True
    )

    snippets: list[Snippet] = Field(description="At most 8, most relevant first.")
    summary: str = Field(description="2 to 4 sentences across all snippets.")
    no_results: bool = Field(
        description="true only if no source holds relevant information."
    )


PROMPT: Final = """\
## Research query

{query}

## Source material

Extract verbatim passages from these chunks that answer the query above.

<sources>
{sources}
</sources>"""


def format_user_message(query: str, chunks: Sequence[Chunk]) -> str:
    """Return a prompt with the query and its chunks, each below a header."""
    parts = []
    for chunk in chunks:
        source = f'Source: "{escape_tags(chunk.title)}" (id: {chunk.document_id})'
        section = f'Section: "{escape_tags(chunk.location)}"'
        parts.append(f"[{source}, {section}]\n{escape_tags(chunk.text)}")
    sources = "\n\n---\n\n".join(parts)
    safe_query = escape_tags(query)
    return PROMPT.format(query=safe_query, sources=sources)


def build_quotes_contract(chunks: Sequence[Chunk]) -> OutputContract[QuotesAnswer]:
    """Return the contract for quotes from these chunks."""

    def find_problem(answer: QuotesAnswer, _: Evidence) -> str | None:
        for index, snippet in enumerate(answer.snippets):
            problem = _find_snippet_problem(snippet, chunks)
            if problem is not None:
                return f"snippets.{index}: {problem}"
        return None

    def keep_valid(answer: QuotesAnswer, _: Evidence) -> Part[QuotesAnswer] | None:
        return _keep_valid_snippets(answer, chunks)

    return OutputContract(
        QuotesAnswer,
        semantic=_find_inconsistency,
        grounding=find_problem,
        keep_valid=keep_valid,
    )


def _keep_valid_snippets(
    answer: QuotesAnswer, chunks: Sequence[Chunk]
) -> Part[QuotesAnswer] | None:
    valid = []
    cut_contents = []
    for snippet in answer.snippets:
        if _find_snippet_problem(snippet, chunks) is None:
            valid.append(snippet)
        else:
            cut_contents.append(snippet.content)
    if not valid:
        return None
    changes = {"snippets": valid[:MAX_SNIPPETS], "no_results": False}
    valid_answer = answer.model_copy(update=changes)
    return Part(valid_answer, tuple(cut_contents))


def _find_inconsistency(answer: QuotesAnswer) -> str | None:
    """Return the reason why an answer contradicts itself or lacks or exceeds something, or None."""
    if answer.no_results and answer.snippets:
        return "noResults is true but snippets is not empty"
    if not answer.no_results and not answer.snippets:
        return "snippets is empty but noResults is false; extract passages or set noResults to true"
    if len(answer.snippets) > MAX_SNIPPETS:
        return f"there are {len(answer.snippets)} snippets, at most {MAX_SNIPPETS} are allowed"
    if not answer.summary.strip():
        return "summary is empty"
    return None


def _find_snippet_problem(snippet: Snippet, chunks: Sequence[Chunk]) -> str | None:
    """Return the reason why a snippet is not a quote from these chunks, or None if it is one."""
    titles = {chunk.document_id: escape_tags(chunk.title) for chunk in chunks}
    if not snippet.content.strip():
        return "content is empty"
    if snippet.source_id not in titles:
        return f"no source has the id {clip_quote(snippet.source_id)}; ids: {', '.join(titles)}"
    title = titles[snippet.source_id]
    if snippet.source_title != title:
        wrong_title = clip_quote(snippet.source_title)
        right_title = clip_quote(title)
        return f"the source {snippet.source_id} has the title {right_title}, not {wrong_title}"
    if find_in_chunks(snippet, chunks):
        return None
    return (
        f"content {clip_quote(snippet.content)} does not occur in this source as one contiguous "
        "passage; copy it exactly, one passage of one chunk for each snippet"
    )


def find_in_chunks(
    snippet: Snippet, chunks: Sequence[Chunk]
) -> tuple[Chunk, str] | None:
    """Return the source chunk of a snippet, and the quoted part of its text, or None."""
    for chunk in chunks:
        if chunk.document_id != snippet.source_id:
            continue
        quoted_text = find_verbatim(snippet.content, chunk.text)
        if quoted_text is not None:
            return chunk, quoted_text
    return None


def find_verbatim(content: str, text: str) -> str | None:
    """Return the contiguous part of `text` that `content` quotes, or None.

    White space, case, and the kinds of quotation marks and dashes make no difference. Quotation
    marks and an ellipsis around the content are ignored. A quote never begins or ends within a
    word.
    """
    # Stored texts have no NULs and no lone surrogates either.
    content = strip_unstorable(content).strip(f"{QUOTATION_MARKS}… ")
    words = content.split()
    if not words:
        return None
    # A pattern takes time to build, so content that cannot fit gets none.
    is_too_long = sum(map(len, words)) > len(text)
    if is_too_long:
        return None
    for match in _build_quote_pattern(*words).finditer(text):
        begins_within_word = _is_within_word(text, match.start())
        ends_within_word = _is_within_word(text, match.end())
        if not begins_within_word and not ends_within_word:
            return match[0]
    return None


@lru_cache(maxsize=64)
def _build_quote_pattern(*words: str) -> Pattern:
    word_patterns = []
    for word in words:
        char_patterns = map(_build_char_pattern, word)
        word_patterns.append("".join(char_patterns))
    words_pattern = r"\s+".join(word_patterns)
    return pattern(f"(?i){words_pattern}")


def _build_char_pattern(char: str) -> str:
    """Return a pattern that matches a character and those equivalent to it."""
    for chars in EQUIVALENT_CHARS:
        if char in chars:
            return f"[{escape_pattern(chars)}]"
    return escape_pattern(char)


def _is_within_word(text: str, position: int) -> bool:
    """Return whether the characters before and after a position belong to one word."""
    chars = text[max(0, position - 1) : position + 1]
    is_at_edge = len(chars) < 2  # the text begins or ends here
    if is_at_edge or not chars.isalnum():
        return False
    return UNSPACED_SCRIPTS.search(chars) is None


class Quote(Snippet):
    """A passage in the exact words of its source.

    Only `relevance` is written by the model. It is empty if no model chose the passage.
    """

    path: str
    chunk_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes(LookUpResult):
    """The quotes for one query, best first, and a summary.

    `by_model` says that a model chose them, `cached` that they were found for an earlier query.
    """

    query: str
    quotes: tuple[Quote, ...] = ()
    summary: str
    no_results: bool = True
    cached: bool = False


class QuoteCache:
    """A cache of the newest model-made quotes, for 15 minutes. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stored: dict[Hashable, tuple[float, Quotes]] = {}

    def get(self, key: Hashable) -> Quotes | None:
        """Return the quotes stored under `key`, or None if they are absent or expired."""
        entry = self._stored.get(key)
        if entry is None:
            return None
        expiry, quotes = entry
        if self._clock() >= expiry:
            return None
        return quotes

    def put(self, key: Hashable, quotes: Quotes) -> None:
        """Store `quotes` under `key`, and drop the oldest entry if the cache is full."""
        self._stored.pop(key, None)  # so that the entry is the newest again
        expiry = self._clock() + CACHE_SECONDS
        self._stored[key] = (expiry, quotes)
        if len(self._stored) > CACHE_ENTRIES:
            oldest_key = next(iter(self._stored))
            del self._stored[oldest_key]


async def find_quotes(
    query: str,
    *,
    documents: DocumentStore,
    run: Run,
    cache: QuoteCache | None = None,
) -> Quotes:
    """Return at most 8 verbatim passages that answer `query`, from the retrieved chunks.

    Without models, or if they fail, return the best passages of the search. A query repeated with
    equal chunks, models and prompt is answered from `cache`. Errors from the store propagate.
    """
    chunks = await _retrieve(query, documents, run)
    prompt = get_prompt(run, "documents-quotes")
    key = _build_cache_key(query, chunks, run, prompt)
    if cache is not None:
        stored = cache.get(key)
        if stored is not None:
            run.span.update(metadata={"cached": True})
            return replace(stored, query=query, cached=True)
    response = None
    if run.models and chunks:
        response = await _ask_for_quotes(query, chunks, run, prompt)
    quotes = _build_quotes(query, chunks, response, prompt)
    is_complete = quotes.by_model and quotes.outcome == "answered"
    if cache is not None and is_complete:
        cache.put(key, quotes)
    return quotes


async def _retrieve(query: str, documents: DocumentStore, run: Run) -> list[Chunk]:
    """Return the chunks to quote from. If no model chooses them, all must be relevant."""
    if not run.models:
        return await retrieve_relevant(query, documents, run.span)
    return await retrieve(documents, _list_queries(query), run.span)


def _list_queries(query: str) -> Sequence[str]:
    """Return the searches for `query`, one of them in English."""
    language = current_language()
    if language == ENGLISH:
        return [query]
    # The built-in documents are in English.
    return find_topics(query, language).list_queries(query)


def _build_cache_key(
    query: str,
    chunks: Sequence[Chunk],
    run: Run,
    prompt: Prompt,
) -> Hashable:
    """Return everything on which the quotes for a query depend."""
    cheaper_models = get_deps(run).models.values()  # one of them may be asked first
    models = (*run.models, *cheaper_models)
    return (
        tuple(query.lower().split()),
        tuple(chunks),  # a quote may be wrong after its document has changed
        tuple(model.model for model in models),
        prompt.text,
        current_language(),
    )


async def _ask_for_quotes(
    query: str,
    chunks: Sequence[Chunk],
    run: Run,
    prompt: Prompt,
) -> AgenticResponse[QuotesAnswer]:
    contract = build_quotes_contract(chunks)
    schema = contract.output.schema_text
    run = with_instructions(run, prompt, max_snippets=str(MAX_SNIPPETS), schema=schema)
    limits = replace(
        run.limits,
        answer_tokens=MAX_ANSWER_TOKENS,
        answer_tokens_ceiling=MAX_ANSWER_TOKENS,
    )
    run = replace(run, limits=limits)
    message = format_user_message(query, chunks)
    return await ask_cheaper_model_first(message, run, contract, chunks=chunks)


def _build_quotes(
    query: str,
    chunks: Sequence[Chunk],
    response: AgenticResponse[QuotesAnswer] | None,
    prompt: Prompt,
) -> Quotes:
    """Return the model's quotes, a refusal, or else the best passages of the search."""
    no_match = say_nothing_found(query)
    result_fields = build_result_fields(chunks, response, prompt)
    result = Quotes(query=query, summary=no_match, **result_fields)
    if not chunks:
        return result
    if response and response.has_text and response.answer is not None:
        answer = response.answer
        return replace(
            result,
            quotes=_check_snippets(answer.snippets, chunks),
            summary=answer.summary.strip() or no_match,
            no_results=answer.no_results,
        )
    if result.outcome == "refused":
        return replace(result, summary=translate("quotes_declined"))
    passages = _quote_best_passages(query, chunks)
    first_text = chunks[0].text
    return replace(
        result,
        quotes=passages,
        summary=announce_passages("best_passages", first_text, len(passages)),
        no_results=False,
    )


def _quote_best_passages(query: str, chunks: Sequence[Chunk]) -> tuple[Quote, ...]:
    best_chunks = keep_near_best(chunks)[:PASSAGES_SHOWN]
    quotes = []
    for chunk in best_chunks:
        passage = find_best_passage(chunk.text, query)
        quotes.append(_build_quote(chunk, passage, relevance=""))
    return tuple(quotes)


def _check_snippets(
    snippets: Sequence[Snippet], chunks: Sequence[Chunk]
) -> tuple[Quote, ...]:
    """Return the snippets that occur in the chunks, in the words of the chunks.

    Each passage is returned once, even if several snippets have copied it.
    """
    quotes: dict[tuple[str, str], Quote] = {}
    for snippet in snippets:
        found = find_in_chunks(snippet, chunks)
        if found is None:
            continue
        chunk, content = found
        relevance = snippet.relevance.strip()
        quotes[chunk.id, content] = _build_quote(chunk, content, relevance)
    return tuple(quotes.values())


def _build_quote(
    chunk: Chunk,
    content: str,
    relevance: str,
) -> Quote:
    return Quote(
        content=content,
        source_id=chunk.document_id,
        source_title=chunk.title,
        source_location=chunk.location,
        relevance=relevance,
        path=chunk.path,
        chunk_id=chunk.id,
    )


QUOTE_LINE: Final = (
    "Copy a quote that quote_documents has returned letter for letter, and put its [path] behind "
    "it."
)


def quote_documents_tool(
    documents: DocumentStore, *, cache: QuoteCache | None = None
) -> Tool:
    """Return the tool `quote_documents`, which searches `documents`."""

    # The docstring is the tool's description for the model.
    async def quote_documents(query: QueryText, run: Run) -> ToolOutput:
        """Find passages of the library word for word, with their sources. Use this if the guest
        asks for a quote, a definition or the exact wording, as of a regulation.
        """
        limits = replace(run.limits, seconds=QUOTE_SECONDS)
        run = replace(run, limits=limits)
        result = await find_quotes(query, documents=documents, run=run, cache=cache)
        content = {
            "quotes": [quote.model_dump() for quote in result.quotes],
            "summary": result.summary,
            "no_results": result.no_results,
        }
        quoted_ids = {quote.chunk_id for quote in result.quotes}
        chunks = [chunk for chunk in result.chunks if chunk.id in quoted_ids]
        return ToolOutput(content, index_by_id(chunks))

    return replace(tool(quote_documents), prompt_line=QUOTE_LINE)

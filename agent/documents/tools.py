"""The tools that look into the documents.

`search_documents` gives the turn's model excerpts to cite itself. `ask_documents` and
`quote_documents` ask a model of their own and return what was verified: dearer, and safer.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from agent.documents.answer import answer_question, excerpts
from agent.documents.passages import DEFAULT_CHUNKS, MAX_CHUNKS, retrieve
from agent.documents.quotes import QuoteCache, find_quotes
from agent.documents.store import Chunk, DocumentStore
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput

SEARCH: Final = (
    "Excerpts from the wine library on regions, grapes, methods, faults, serving, storing, "
    "pairing and labels. Cite what you use as [path], exactly as it stands before the excerpt. "
    "What you put in quotation marks must be copied letter for letter."
)
ASK: Final = (
    "A verified answer from the wine library, with a [path] citation for every statement; use it "
    "for questions about wine in general. Keep the citations when you repeat the answer."
)
QUOTE: Final = (
    "Passages of the wine library word for word, with their sources; use it when the guest wants "
    "a quote, a definition or the exact wording. Never change a quote."
)
Text = Annotated[str, Field(max_length=200)]
NOTHING: Final = "nothing in the library matches; say so, do not answer from memory"
TOOL_LIMITS: Final = Limits(structured_output_max_retries=1, seconds=12)
"""Below the time a tool has, so that the best passages are returned instead of a time-out."""


class SearchDocuments(BaseModel):
    """Arguments of search_documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Text
    limit: int = Field(default=DEFAULT_CHUNKS, ge=1, le=MAX_CHUNKS)


class AskDocuments(BaseModel):
    """Arguments of ask_documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Text


class QuoteDocuments(BaseModel):
    """Arguments of quote_documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Text


def search_documents_tool(documents: DocumentStore) -> Tool:
    """search_documents over `documents`."""

    async def search(arguments: SearchDocuments, run: Run) -> ToolOutput:
        chunks = await retrieve(documents, [arguments.query], arguments.limit, run.span)
        return ToolOutput(excerpts(chunks) or NOTHING, by_chunk(chunks))

    return Tool("search_documents", SEARCH, SearchDocuments, search)


def ask_documents_tool(documents: DocumentStore, *, refine: bool = False) -> Tool:
    """ask_documents over `documents`; it asks the turn's models and counts in its ledger."""

    async def ask(arguments: AskDocuments, run: Run) -> ToolOutput:
        run = replace(run, limits=TOOL_LIMITS)
        answer = await answer_question(
            arguments.question, documents=documents, run=run, refine=refine
        )
        sources = {each.path: each.title for each in answer.citations}
        content = {"answer": answer.text, "sources": sources, "found": answer.enough_information}
        cited = [chunk for chunk in answer.chunks if chunk.path in sources]
        return ToolOutput(content, by_chunk(cited))

    return Tool("ask_documents", ASK, AskDocuments, ask)


def quote_documents_tool(documents: DocumentStore, *, cache: QuoteCache | None = None) -> Tool:
    """quote_documents over `documents`; it asks the turn's models and counts in its ledger."""

    async def quote(arguments: QuoteDocuments, run: Run) -> ToolOutput:
        run = replace(run, limits=TOOL_LIMITS)
        found = await find_quotes(arguments.query, documents=documents, run=run, cache=cache)
        content = {
            "quotes": [asdict(each) for each in found.quotes],
            "summary": found.summary,
            "no_results": found.no_results,
        }
        quoted = {each.chunk_id for each in found.quotes}
        return ToolOutput(content, by_chunk(each for each in found.chunks if each.id in quoted))

    return Tool("quote_documents", QUOTE, QuoteDocuments, quote)


def by_chunk(chunks: Iterable[Chunk]) -> dict[str, object]:
    """Chunks as evidence."""
    return {chunk.id: chunk for chunk in chunks}

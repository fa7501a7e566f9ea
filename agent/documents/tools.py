"""The tools that look into the documents.

`search_documents` gives the turn's model excerpts to cite itself. `ask_documents` and
`quote_documents` ask a model of their own and return what was verified: dearer, and safer. They ask
the turn's models, and count in its ledger.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Annotated, Final

from pydantic import Field

from agent.documents.answer import answer_question, excerpts
from agent.documents.passages import DEFAULT_CHUNKS, MAX_CHUNKS, Chunk, DocumentStore, retrieve
from agent.documents.quotes import QuoteCache, find_quotes
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput, tool

Text = Annotated[str, Field(max_length=200)]
Count = Annotated[int, Field(ge=1, le=MAX_CHUNKS)]

NOTHING: Final = "nothing in the library matches; say so, do not answer from memory"
TOOL_LIMITS: Final = Limits(structured_output_max_retries=1, seconds=12)
"""Below the time a tool has, so that the best passages are returned instead of a time-out."""


def search_documents_tool(documents: DocumentStore) -> Tool:
    """Make search_documents over `documents`."""

    async def search_documents(query: Text, run: Run, limit: Count = DEFAULT_CHUNKS) -> ToolOutput:
        """Excerpts from the wine library on regions, grapes, methods, faults, serving, storing,
        pairing and labels. Cite what you use as [path], exactly as it stands before the excerpt.
        What you put in quotation marks must be copied letter for letter.
        """
        chunks = await retrieve(documents, [query], limit, run.span)
        return ToolOutput(excerpts(chunks) or NOTHING, by_chunk(chunks))

    return tool(search_documents)


def ask_documents_tool(documents: DocumentStore, *, refine: bool = False) -> Tool:
    """Make ask_documents over `documents`, with questions refined or not."""

    async def ask_documents(question: Text, run: Run) -> ToolOutput:
        """A verified answer from the wine library, with a [path] citation for every statement; use
        it for questions about wine in general. Keep the citations when you repeat the answer.
        """
        run = replace(run, limits=TOOL_LIMITS)
        answer = await answer_question(question, documents=documents, run=run, refine=refine)
        sources = {each.path: each.title for each in answer.citations}
        content = {"answer": answer.text, "sources": sources, "found": answer.enough_information}
        return ToolOutput(content, by_chunk(each for each in answer.chunks if each.path in sources))

    return tool(ask_documents)


def quote_documents_tool(documents: DocumentStore, *, cache: QuoteCache | None = None) -> Tool:
    """Make quote_documents over `documents`."""

    async def quote_documents(query: Text, run: Run) -> ToolOutput:
        """Passages of the wine library word for word, with their sources; use it when the guest
        wants a quote, a definition or the exact wording. Never change a quote.
        """
        run = replace(run, limits=TOOL_LIMITS)
        found = await find_quotes(query, documents=documents, run=run, cache=cache)
        content = {
            "quotes": [asdict(each) for each in found.quotes],
            "summary": found.summary,
            "no_results": found.no_results,
        }
        quoted = {each.chunk_id for each in found.quotes}
        return ToolOutput(content, by_chunk(each for each in found.chunks if each.id in quoted))

    return tool(quote_documents)


def by_chunk(chunks: Iterable[Chunk]) -> dict[str, object]:
    """Return chunks as evidence."""
    return {chunk.id: chunk for chunk in chunks}

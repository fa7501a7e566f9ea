"""What quotes must be: the schema, the prompt, and the rules that only the chunks can settle.

A strict schema made models stitch sentences together in the measurements this follows, so the
schema is kept loose (`json_object` by default) and every rule is checked here instead.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent.documents.passages import as_data
from agent.documents.store import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.sommelier.grounding import ungrounded_text

MAX_SNIPPETS: Final = 8
QUOTATION_MARKS: Final = "\"'`´“”„‟‘’‚‛«»‹›"
ALIKE: Final = (f"[{QUOTATION_MARKS}]", r"[-‐‑‒–—―−]", r"(?:…|\.\.\.)")
SIGN: Final = re.compile(r"\.\.\.|.", re.DOTALL)
DROPPED_SUMMARY: Final = "These passages stand word for word in their sources."


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
    """The query and its chunks, each below a header with title, id and section."""
    sources = "\n\n---\n\n".join(
        f'[Source: "{as_data(chunk.title)}" (id: {chunk.document_id}), '
        f'Section: "{as_data(chunk.location)}"]\n{as_data(chunk.text)}'
        for chunk in chunks
    )
    return PROMPT.format(query=as_data(query), sources=sources)


def quotes_contract(chunks: Sequence[Chunk]) -> OutputContract[QuotesAnswer]:
    """The contract of quotes from these chunks."""

    def grounding(answer: QuotesAnswer, evidence: Evidence) -> str | None:
        return next(_problems(answer, chunks, evidence), None)

    def salvage(answer: QuotesAnswer, evidence: Evidence) -> QuotesAnswer | None:
        return valid_part(answer, chunks, evidence)

    return OutputContract(QuotesAnswer, semantic=inconsistent, grounding=grounding, salvage=salvage)


def inconsistent(answer: QuotesAnswer) -> str | None:
    """What in an answer contradicts itself or says nothing; None if nothing does."""
    if answer.no_results and answer.snippets:
        return "noResults is true but snippets is not empty"
    if not answer.no_results and not answer.snippets:
        return "snippets is empty but noResults is false; extract passages or set noResults to true"
    if len(answer.snippets) > MAX_SNIPPETS:
        return f"there are {len(answer.snippets)} snippets, at most {MAX_SNIPPETS} are allowed"
    if not answer.summary.strip():
        return "summary is empty"
    return None


def _problems(answer: QuotesAnswer, chunks: Sequence[Chunk], evidence: Evidence) -> Iterator[str]:
    for position, snippet in enumerate(answer.snippets):
        if problem := unfaithful(snippet, chunks):
            yield f"snippets.{position}: {problem}"
    for said in (answer.summary, *(snippet.relevance for snippet in answer.snippets)):
        if problem := ungrounded_text(said, evidence):
            yield problem


def unfaithful(snippet: Snippet, chunks: Sequence[Chunk]) -> str | None:
    """Why a snippet is no quote from these chunks; None if it is one."""
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
    if source_chunk(snippet, chunks) is None:
        return _where_it_stands(snippet, chunks)
    return None


def _where_it_stands(snippet: Snippet, chunks: Sequence[Chunk]) -> str:
    said = fence(snippet.content)
    for chunk in chunks:
        if verbatim(snippet.content, chunk.text):
            return f"content {said} stands in the source {chunk.document_id}, not in this one"
    return (
        f"content {said} does not stand in this source as one contiguous passage; copy it exactly, "
        "one passage of one chunk for each snippet"
    )


def source_chunk(snippet: Snippet, chunks: Sequence[Chunk]) -> Chunk | None:
    """The chunk of the named source that the snippet stands in, None if there is none."""
    for chunk in chunks:
        if chunk.document_id == snippet.source_id and verbatim(snippet.content, chunk.text):
            return chunk
    return None


def verbatim(content: str, text: str) -> str | None:
    """The contiguous part of `text` that is `content`; None if there is none.

    White space and case make no difference, nor do kinds of quotation marks, dashes and dots, which
    models level as they copy; marks around all of it may be the model's. What is returned is the
    text's own wording, to the letter.
    """
    as_it_is = content.strip()
    for said in (as_it_is, as_it_is.strip(QUOTATION_MARKS)):
        words = unicodedata.normalize("NFC", said).split()
        if not words:
            return None
        pattern = r"\s+".join("".join(map(_sign, SIGN.findall(word))) for word in words)
        if found := re.search(pattern, text, re.IGNORECASE):
            return found[0]
    return None


def _sign(said: str) -> str:
    """A pattern for what a text may have where a model wrote this sign."""
    return next((like for like in ALIKE if re.fullmatch(like, said)), re.escape(said))


def valid_part(
    answer: QuotesAnswer, chunks: Sequence[Chunk], evidence: Evidence
) -> QuotesAnswer | None:
    """An answer without the snippets that are no quotes; None if none is left.

    A summary that may speak of what was dropped goes with it.
    """
    faithful = [snippet for snippet in answer.snippets if not unfaithful(snippet, chunks)]
    if not faithful:
        return None
    whole = len(faithful) == len(answer.snippets) and not ungrounded_text(answer.summary, evidence)
    return QuotesAnswer(
        snippets=[_sober(snippet, evidence) for snippet in faithful[:MAX_SNIPPETS]],
        summary=answer.summary if whole and answer.summary.strip() else DROPPED_SUMMARY,
        no_results=False,
    )


def _sober(snippet: Snippet, evidence: Evidence) -> Snippet:
    if not ungrounded_text(snippet.relevance, evidence):
        return snippet
    return snippet.model_copy(update={"relevance": ""})

"""Answers from documents: from the excerpts only, in the model's words, every statement cited.

The model answers in plain text, because small models write brackets more reliably than JSON. A
statement is invalid without a citation, with a path that was not retrieved, or with a number that
the cited passages do not contain. It is returned to the model once, and removed if it is still
invalid. Nothing else is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.citations import (
    NOT_ENOUGH,
    Statement,
    admits_not_enough,
    citations,
    keep_sentences,
    plain_brackets,
    statements,
    without_citations,
)
from agent.documents.figures import unsupported_number
from agent.documents.passages import (
    DEFAULT_CHUNKS,
    SHOWN_PASSAGES,
    Chunk,
    DocumentStore,
    LookupResult,
    as_data,
    ask_cheaper_first,
    best_passage,
    content_words,
    excerpts,
    near_best,
    outcome_of,
    record,
    retrieve,
)
from agent.documents.refine import Refinement, refine_question
from agent.engine.contract import OutputContract
from agent.engine.feedback import CORRECTION_INTRO, fence
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import instructed, prompt_for
from agent.text import pattern
from agent.turn import Outcome, error_types

PROMPT: Final = """\
FILE EXCERPTS:
<excerpts>
{excerpts}
</excerpts>

QUESTION: {question}"""

CORRECTION: Final = CORRECTION_INTRO + (
    "Please answer the question again in plain text, from the excerpts only, with the path of the "
    "source in [brackets] after every statement."
)
FENCED: Final = pattern(r"(?s)\A```\w*\n(.*?)\n?```\s*\Z")
MAX_SHOWN_PATHS: Final = 8
MAX_SHOWN_PROBLEMS: Final = 3
MAX_QUOTED_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered citation: the document, and the passage retrieved from it."""

    number: int
    path: str
    title: str
    location: str
    passage: str


@dataclass(frozen=True, slots=True)
class Answer(LookupResult):
    """An answer from documents. `text` is Markdown with `[path]` citations.

    Every path in it is a document of the store that was retrieved for this question. `footnoted`
    is the text with the numbers of `citations` in place of paths, `[1]`.
    """

    question: str
    text: str
    footnoted: str
    citations: tuple[Citation, ...]
    refinement: Refinement
    enough_information: bool = False

    @classmethod
    def crisis_help(cls, question: str, text: str) -> "Answer":
        """Return the answer that offers help in a crisis; no document was searched."""
        refinement = Refinement(question, question, fallback_reason="disabled")
        return cls(question, text, text, (), refinement, outcome="care", by_model=False)

    @property
    def refined_question(self) -> str | None:
        """Return the question that was also searched for, or None if it was not refined."""
        return self.refinement.refined if self.refinement.used else None


async def answer_question(
    question: str,
    *,
    documents: DocumentStore,
    run: Run,
    refine: bool = False,
    limit: int = DEFAULT_CHUNKS,
) -> Answer:
    """Answer `question` from up to `limit` chunks of `documents`; `limit` is capped at 8.

    If `refine` is true, search for the refined question too; the original question is answered.
    Without models, or when they fail, the answer is the best passages with their citations. Only
    errors of the store are raised.
    """
    refinement = await refine_question(question, run=run, enabled=refine, reserved_requests=1)
    chunks = await retrieve(documents, refinement.queries, limit, run.span)
    prompt = prompt_for(run, "documents-answer")
    response = None
    if run.models and chunks:
        retries = min(1, run.limits.structured_output_max_retries)
        limits = replace(run.limits, structured_output_max_retries=retries)
        response = await ask_cheaper_first(
            PROMPT.format(excerpts=excerpts(chunks), question=as_data(question)),
            replace(instructed(run, prompt, not_enough=NOT_ENOUGH), limits=limits),
            cited_answer(chunks, question),
            chunks,
        )
    answer = _build_answer(question, chunks, refinement, response)
    record(run.span, answer.outcome, response, prompt.ref if response else None)
    return answer


def cited_answer(chunks: Sequence[Chunk], question: str) -> OutputContract[str]:
    """Return the contract of an answer to `question` from these chunks."""
    rules = CitationRules(chunks, question)
    return OutputContract(
        str,
        grounding=lambda text, _: rules.problem(text),
        render=lambda text, _: rules.valid_part(text),
        salvage=lambda text, _: rules.valid_part(text) or None,
        read_text=without_fence,
        correction=CORRECTION,
    )


def without_fence(text: str) -> str:
    """Return a text without a code fence around it, and with its citations in plain brackets."""
    fenced = FENCED.match(text)
    return plain_brackets(fenced[1] if fenced else text)


class CitationRules:
    """Check statements against the chunks that they cite.

    Numbers that the question contains need no source.
    """

    def __init__(self, chunks: Sequence[Chunk], question: str) -> None:
        self._question = question
        self._sources: dict[str, str] = {}
        for chunk in chunks:
            self._sources[chunk.path] = f"{self._sources.get(chunk.path, '')}\n{chunk.source_text}"

    def problem(self, text: str) -> str | None:
        """Return feedback on an answer, or None if it is valid."""
        if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
            return "the answer is JSON; write plain text"
        found = (self._problem_of(statement) for statement in statements(text, self._sources))
        problems = list(dict.fromkeys(filter(None, found)))
        if problems:
            return "; ".join(problems[:MAX_SHOWN_PROBLEMS])
        if self.valid_part(text):
            return None
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH}"

    def valid_part(self, text: str) -> str:
        """Return the valid sentences unchanged, or an empty text if none of them answers."""
        valid = keep_sentences(text, self._sources, self._is_valid)
        is_answer = admits_not_enough(valid) or bool(citations(valid, self._sources))
        return valid if is_answer else ""

    def _is_valid(self, statement: Statement) -> bool:
        return self._problem_of(statement) is None

    def _problem_of(self, statement: Statement) -> str | None:
        shown = fence(statement.text, MAX_QUOTED_CHARS)
        if statement.unknown:
            listed = ", ".join(f"[{path}]" for path in list(self._sources)[:MAX_SHOWN_PATHS])
            return f"[{fence(statement.unknown[0])}] is not one of the excerpts; cite only {listed}"
        if not statement.needs_citation:
            return None
        if not statement.cites:
            return (
                f"this statement has no citation: {shown}; put the [path] of its source after it, "
                "or leave it out"
            )
        sources = "\n".join([self._question, *(self._sources[path] for path in statement.cites)])
        statement_text = without_citations(statement.text, self._sources)
        if number := unsupported_number(statement_text, sources):
            cited = ", ".join(f"[{path}]" for path in statement.cites)
            return f"the number {number} in {shown} does not stand in {cited}; correct it"
        return None


def _build_answer(
    question: str,
    chunks: Sequence[Chunk],
    refinement: Refinement,
    response: AgenticResponse[str] | None,
) -> Answer:
    outcome: Outcome = outcome_of(response) if response else "answered"
    is_enough, note = True, ""
    if not chunks:
        text = f"{translate('not_enough')} {translate('no_document_speaks')}"
    elif outcome == "refused":
        text = translate("look_up_declined")
    elif response and response.ok:
        text = _translate_not_enough(response.text)
        is_enough = not admits_not_enough(response.text)
    elif response and response.outcome == "exhausted":  # no valid answer
        text = f"{translate('not_enough')}\n\n{_best_passages(chunks, question)}"
        is_enough, note = False, translate("documents_model_failed")
    else:
        text = _best_passages(chunks, question)
        note = translate("documents_model_failed" if response else "documents_no_model")
    footnoted, cited = footnotes(text, chunks)
    return Answer(
        question=question,
        text=text,
        footnoted=footnoted,
        citations=cited,
        chunks=tuple(chunks),
        outcome=outcome,
        refinement=refinement,
        enough_information=is_enough and bool(cited),
        by_model=response is not None and response.ok,
        note=note,
        retry_count=response.retry_count if response else 0,
        error_types=error_types(response) if response else (),
    )


def _translate_not_enough(text: str) -> str:
    """Return NOT_ENOUGH in the user's language; return any other text unchanged."""
    return translate("not_enough") if text.strip(" .*_") == NOT_ENOUGH else text


def _best_passages(chunks: Sequence[Chunk], question: str) -> str:
    """Return the best passages with their citations."""
    shown = [
        f"{best_passage(_unbracketed(chunk.text), question)} [{chunk.path}]"
        for chunk in near_best(chunks)[:SHOWN_PASSAGES]
    ]
    return "\n\n".join([translate("best_passages"), *shown])


def _unbracketed(text: str) -> str:
    """Return a passage with round brackets for square ones, which would look like citations."""
    return text.replace("[", "(").replace("]", ")")


def footnotes(text: str, chunks: Sequence[Chunk]) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer with numbers in place of paths, and the citations in order of their numbers.

    A path is replaced by the number of the chunk of its document that shares the most words with
    the preceding text. So two passages of one document have two numbers.
    """
    by_path: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_path.setdefault(chunk.path, []).append(chunk)
    by_chunk_id: dict[str, Citation] = {}
    parts, end = [], 0
    for cited in citations(text, by_path):
        preceding_text, end = text[end : cited.start], cited.end
        parts.append(preceding_text)
        for path in cited.paths:
            chunk = _closest(by_path[path], preceding_text)
            citation = _citation(len(by_chunk_id) + 1, chunk, preceding_text)
            parts.append(f"[{by_chunk_id.setdefault(chunk.id, citation).number}]")
    return "".join([*parts, text[end:]]), tuple(by_chunk_id.values())


def _closest(chunks: Sequence[Chunk], text: str) -> Chunk:
    return max(chunks, key=lambda chunk: len(content_words(chunk.text) & content_words(text)))


def _citation(number: int, chunk: Chunk, text: str) -> Citation:
    return Citation(number, chunk.path, chunk.title, chunk.location, best_passage(chunk.text, text))

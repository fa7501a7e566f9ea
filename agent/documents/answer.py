"""Answers from documents: from the excerpts only, in the model's words, every statement cited.

The model answers in plain text, by the structured prompt and its rules (Option B of the source
document): small models write brackets more reliably than JSON. An answer is sent back once if a
statement has no citation, a path that was not retrieved, or a number that is not in the cited
passages. If the statement is still there, it is left out. No other rule applies.
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
    LookedUp,
    as_data,
    ask_in_tiers,
    best_passage,
    excerpts,
    near_best,
    outcome_of,
    record,
    retrieve,
    telling_words,
)
from agent.documents.refine import Refinement, refine_question
from agent.engine.contract import OutputContract
from agent.engine.feedback import FAILED, fence
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import instructed, prompt_for
from agent.text import pattern
from agent.turn_trace import Outcome, error_types

PROMPT: Final = """\
FILE EXCERPTS:
<excerpts>
{excerpts}
</excerpts>

QUESTION: {question}"""

CORRECTION: Final = FAILED + (
    "Please answer the question again in plain text, from the excerpts only, with the path of the "
    "source in [brackets] after every statement."
)
FENCED: Final = pattern(r"(?s)\A```\w*\n(.*?)\n?```\s*\Z")
SHOWN_PATHS: Final = 8
SHOWN_PROBLEMS: Final = 3
QUOTED_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered citation: the document, and the passage retrieved from it."""

    number: int
    path: str
    title: str
    location: str
    passage: str


@dataclass(frozen=True, slots=True)
class Answer(LookedUp):
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
    def of_help(cls, question: str, text: str) -> "Answer":
        """Return help for a person in a crisis in the form of an answer."""
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
    """Answer `question` from at most `limit` (8 at most) chunks of `documents`.

    With `refine`, chunks are searched for the refined question too, but the original question is
    answered. If there are no models or they fail, the answer consists of the best passages with
    their citations. Errors of the store are raised.
    """
    refinement = await refine_question(question, run=run, enabled=refine, kept_back=1)
    chunks = await retrieve(documents, refinement.queries, limit, run.span)
    prompt = prompt_for(run, "documents-answer")
    response = None
    if run.models and chunks:
        retries = min(1, run.limits.structured_output_max_retries)
        limits = replace(run.limits, structured_output_max_retries=retries)
        response = await ask_in_tiers(
            PROMPT.format(excerpts=excerpts(chunks), question=as_data(question)),
            replace(instructed(run, prompt, not_enough=NOT_ENOUGH), limits=limits),
            cited_answer(chunks, question),
            chunks,
        )
    answer = _answer(question, chunks, refinement, response)
    record(run.span, answer.outcome, response, prompt.ref if response else None)
    return answer


def cited_answer(chunks: Sequence[Chunk], question: str) -> OutputContract[str]:
    """Return the contract of an answer to `question` from these chunks."""
    rules = CitationRules(chunks, question)
    return OutputContract(
        str,
        grounding=lambda text, evidence: rules.problem(text),
        render=lambda text, evidence: rules.valid_part(text),
        salvage=lambda text, evidence: rules.valid_part(text) or None,
        read_text=without_fence,
        correction=CORRECTION,
    )


def without_fence(text: str) -> str:
    """Return a text without a code fence around it, and with its citations in plain brackets."""
    fenced = FENCED.match(text)
    return plain_brackets(fenced[1] if fenced else text)


class CitationRules:
    """The rules for statements from these chunks; numbers of the question need no source."""

    def __init__(self, chunks: Sequence[Chunk], question: str) -> None:
        self._question = question
        self._sources: dict[str, str] = {}
        for chunk in chunks:
            self._sources[chunk.path] = f"{self._sources.get(chunk.path, '')}\n{chunk.said}"

    def problem(self, text: str) -> str | None:
        """Return feedback on an answer, or None if it keeps every rule."""
        if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
            return "the answer is JSON; write plain text"
        problems = (self._problem_of(found) for found in statements(text, self._sources))
        found = list(dict.fromkeys(filter(None, problems)))
        if found:
            return "; ".join(found[:SHOWN_PROBLEMS])
        if self.valid_part(text):
            return None
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH}"

    def valid_part(self, text: str) -> str:
        """Return the sentences that keep every rule; empty if none of them is a cited statement."""
        valid = keep_sentences(text, self._sources, lambda found: self._problem_of(found) is None)
        is_answer = admits_not_enough(valid) or bool(citations(valid, self._sources))
        return valid if is_answer else ""

    def _problem_of(self, statement: Statement) -> str | None:
        shown = fence(statement.text, QUOTED_CHARS)
        if statement.unknown:
            listed = ", ".join(f"[{path}]" for path in list(self._sources)[:SHOWN_PATHS])
            return f"[{fence(statement.unknown[0])}] is not one of the excerpts; cite only {listed}"
        if statement.kind != "statement":
            return None
        if not statement.cites:
            return (
                f"this statement has no citation: {shown}; put the [path] of its source after it, "
                "or leave it out"
            )
        sources = "\n".join([self._question, *(self._sources[path] for path in statement.cites)])
        said = without_citations(statement.text, self._sources)
        if number := unsupported_number(said, sources):
            cited = ", ".join(f"[{path}]" for path in statement.cites)
            return f"the number {number} in {shown} does not stand in {cited}; correct it"
        return None


def _answer(
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
        text = _in_our_language(response.text)
        is_enough = not admits_not_enough(response.text)
    else:
        text = _passages(chunks, question)
        note = translate("documents_model_failed" if response else "documents_no_model")
    if response and response.outcome == "exhausted":
        text, is_enough = f"{translate('not_enough')}\n\n{text}", False
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


def _in_our_language(text: str) -> str:
    """Return an answer; translate it if it only says that there is not enough information."""
    return translate("not_enough") if text.strip(" .*_") == NOT_ENOUGH else text


def _passages(chunks: Sequence[Chunk], question: str) -> str:
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

    A cited path means the chunk of that document which shares most words with the text before the
    citation: two passages of one document have two numbers.
    """
    by_path: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_path.setdefault(chunk.path, []).append(chunk)
    found: dict[str, Citation] = {}
    parts, end = [], 0
    for cited in citations(text, by_path):
        said, end = text[end : cited.start], cited.end
        parts.append(said)
        for path in cited.paths:
            best = _closest(by_path[path], said)
            note = found.setdefault(best.id, _citation(len(found) + 1, best, said))
            parts.append(f"[{note.number}]")
    return "".join([*parts, text[end:]]), tuple(found.values())


def _closest(chunks: Sequence[Chunk], said: str) -> Chunk:
    return max(chunks, key=lambda chunk: len(telling_words(chunk.text) & telling_words(said)))


def _citation(number: int, chunk: Chunk, said: str) -> Citation:
    return Citation(number, chunk.path, chunk.title, chunk.location, best_passage(chunk.text, said))

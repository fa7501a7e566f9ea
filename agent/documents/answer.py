"""Answers from documents: from the excerpts only, in the model's words, every statement cited.

The model answers in plain text, because small models write brackets more reliably than JSON. A
statement that needs a citation (see `citations.py`) is invalid without one. So is a statement with
a path that was not retrieved, or with a number that the cited passages do not contain. An
answer with invalid statements is returned to the model once; those that are still invalid are then
removed. Nothing else is judged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.citations import (
    CITATION_PATTERN,
    NOT_ENOUGH,
    Statement,
    admits_not_enough,
    find_citations,
    keep_sentences,
    plain_brackets,
    statements,
    unsupported_number,
)
from agent.documents.passages import (
    SHOWN_PASSAGES,
    Chunk,
    DocumentStore,
    LookupResult,
    ask_cheaper_model_first,
    best_passage,
    content_words,
    escaped,
    excerpts,
    near_best,
    result_fields,
    retrieve,
)
from agent.documents.refine import Refinement, refine_question
from agent.engine.contract import CORRECTION_INTRO, OutputContract
from agent.engine.errors import quoted
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import prompt_for, with_instructions
from agent.text import pattern

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
CODE_FENCE: Final = pattern(r"(?s)\A```\w*\n(.*?)\n?```\s*\Z")
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
    is the text with `[1]`, `[2]` … in place of `[path]`: the numbers of `citations`.
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
        as_asked = Refinement(question, question, fallback_reason="disabled")
        return cls(question, text, text, (), as_asked, outcome="care", by_model=False)


async def answer_question(
    question: str, *, documents: DocumentStore, run: Run, refine: bool = False
) -> Answer:
    """Answer `question` from the best chunks of `documents`.

    If `refine` is true, search for the refined question too; the original question is answered.
    Without models, or when they fail, the answer is the best passages with their citations. Only
    errors of the store are raised.
    """
    # One request is kept for the answer.
    refinement = await refine_question(question, run=run, enabled=refine, kept_requests=1)
    chunks = await retrieve(documents, refinement.queries, run.span)
    prompt = prompt_for(run, "documents-answer")
    response = None
    if run.models and chunks:
        answer_retries = min(1, run.limits.structured_output_max_retries)
        limits = replace(run.limits, structured_output_max_retries=answer_retries)
        response = await ask_cheaper_model_first(
            PROMPT.format(excerpts=excerpts(chunks), question=escaped(question)),
            replace(with_instructions(run, prompt, not_enough=NOT_ENOUGH), limits=limits),
            cited_answer(chunks, question),
            chunks=chunks,
        )
    answer = _build_answer(question, chunks, refinement, response)
    answer.record(run.span, prompt.ref if response else None)
    return answer


def cited_answer(chunks: Sequence[Chunk], question: str) -> OutputContract[str]:
    """Return the contract of an answer to `question` from these chunks."""
    rules = CitationRules(chunks, question)
    return OutputContract(
        str,
        grounding=lambda text, _: rules.problem(text),
        # A valid text may still change: sentences before a shared citation get it, too.
        render=lambda text, _: rules.valid_part(text),
        salvage=lambda text, _: rules.valid_part(text) or None,
        read_text=lambda text: plain_brackets(CODE_FENCE.sub(lambda fence: fence[1], text)),
        correction=CORRECTION,
    )


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
        found = map(self._statement_problem, statements(text, self._sources))
        problems = list(dict.fromkeys(filter(None, found)))
        if problems:
            return "; ".join(problems[:MAX_SHOWN_PROBLEMS])
        if self.valid_part(text):
            return None
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH}"

    def valid_part(self, text: str) -> str:
        """Return the valid sentences unchanged.

        Return an empty text if they neither cite a source nor say that the excerpts do not suffice.
        """
        valid = keep_sentences(
            text, self._sources, lambda statement: self._statement_problem(statement) is None
        )
        is_answer = admits_not_enough(valid) or bool(find_citations(valid, self._sources))
        return valid if is_answer else ""

    def _statement_problem(self, statement: Statement) -> str | None:
        quoted_text = quoted(statement.text, MAX_QUOTED_CHARS)
        cited = _bracketed(statement.cites)
        if statement.unknown_paths:
            listed = _bracketed(list(self._sources)[:MAX_SHOWN_PATHS])
            name = quoted(statement.unknown_paths[0])
            return f"[{name}] is not one of the excerpts; cite only {listed}"
        if not statement.needs_citation:
            return None
        if not cited:
            return (
                f"this statement has no citation: {quoted_text}; put the [path] of its source "
                "after it, or leave it out"
            )
        sources = "\n".join([self._question, *(self._sources[path] for path in statement.cites)])
        if number := unsupported_number(CITATION_PATTERN.sub("", statement.text), sources):
            return f"the number {number} in {quoted_text} does not occur in {cited}; correct it"
        return None


def _bracketed(paths: Iterable[str]) -> str:
    return ", ".join(f"[{path}]" for path in paths)


def _build_answer(
    question: str,
    chunks: Sequence[Chunk],
    refinement: Refinement,
    response: AgenticResponse[str] | None,
) -> Answer:
    details = result_fields(chunks, response)
    is_enough, note = False, ""
    if not chunks:
        text = f"{translate('not_enough')} {translate('no_matching_document')}"
    elif details["outcome"] == "refused":
        text = translate("look_up_declined")
    elif response and response.has_text:
        only_admits = response.text.strip(" .*_") == NOT_ENOUGH
        text = translate("not_enough") if only_admits else response.text
        is_enough = not admits_not_enough(response.text)
    else:
        text = _best_passages(chunks, question)
        note = translate("documents_model_failed" if response else "documents_no_model")
        # If no model answered, the passages are the answer; they are not if a model's was invalid.
        is_enough = response is None or response.outcome != "exhausted"
        if not is_enough:
            text = f"{translate('not_enough')}\n\n{text}"
    footnoted, cited = footnotes(text, chunks)
    return Answer(
        question=question,
        text=text,
        footnoted=footnoted,
        citations=cited,
        refinement=refinement,
        enough_information=is_enough and bool(cited),
        note=note,
        **details,
    )


def _best_passages(chunks: Sequence[Chunk], question: str) -> str:
    """Return the best passages with their citations.

    Other brackets become parentheses, so that they do not look like citations.
    """
    passages = [
        best_passage(chunk.text.replace("[", "(").replace("]", ")"), question) + f" [{chunk.path}]"
        for chunk in near_best(chunks)[:SHOWN_PASSAGES]
    ]
    return "\n\n".join([translate("best_passages"), *passages])


def footnotes(text: str, chunks: Sequence[Chunk]) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer with numbers in place of paths, and the citations in order of their numbers.

    Passages of one document have numbers of their own: a path gets the number of that chunk of its
    document which shares most words with the statement before it.
    """
    by_path: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_path.setdefault(chunk.path, []).append(chunk)
    by_chunk_id: dict[str, Citation] = {}
    parts, previous_end, statement = [], 0, ""
    for cited in find_citations(text, by_path):
        text_before = text[previous_end : cited.start]
        parts.append(text_before)
        previous_end = cited.end
        if content_words(text_before):  # without words between them, two citations share one
            statement = text_before
        statement_words = content_words(statement)
        for path in cited.paths:
            chunk = max(by_path[path], key=lambda it: len(content_words(it.text) & statement_words))
            if chunk.id not in by_chunk_id:
                number, passage = len(by_chunk_id) + 1, best_passage(chunk.text, statement)
                by_chunk_id[chunk.id] = Citation(
                    number, chunk.path, chunk.title, chunk.location, passage
                )
            parts.append(f"[{by_chunk_id[chunk.id].number}]")
    return "".join([*parts, text[previous_end:]]), tuple(by_chunk_id.values())

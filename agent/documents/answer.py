"""Answers from documents: from the excerpts only, in the model's words, every statement cited.

The model answers in plain text, because small models write brackets more reliably than JSON. A
statement that needs a citation (see `citations.py`) is invalid without one. So is a statement with
a path that was not retrieved, or with a number that the cited passages do not contain. An
answer with invalid statements is returned to the model once; those that are still invalid are then
removed. Nothing else is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.documents.citations import (
    NOT_ENOUGH,
    Citation,
    CitationRules,
    admits_not_enough,
    footnotes,
)
from agent.documents.passages import (
    SHOWN_PASSAGES,
    Chunk,
    DocumentStore,
    LookupResult,
    ask_cheaper_model_first,
    best_passage,
    escaped,
    excerpts,
    near_best,
    result_fields,
    retrieve,
)
from agent.documents.refine import Refinement, refine_question
from agent.engine.contract import CORRECTION_INTRO, OutputContract
from agent.engine.loop import AgenticResponse
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import get_prompt, with_instructions
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(LookupResult):
    """An answer from documents. `text` is Markdown with `[path]` citations.

    Every path in it is a document of the store that was retrieved for this question. `footnoted`
    is the text with `[1]`, `[2]` … in place of `[path]`: the numbers of `citations`.
    """

    question: str
    text: str
    footnoted: str
    citations: tuple[Citation, ...] = ()
    refinement: Refinement
    enough_information: bool = False


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
    prompt, response = get_prompt(run, "documents-answer"), None
    if run.models and chunks:
        retries = min(1, run.limits.structured_output_max_retries)
        limits = replace(run.limits, structured_output_max_retries=retries)
        response = await ask_cheaper_model_first(
            PROMPT.format(excerpts=excerpts(chunks), question=escaped(question)),
            replace(with_instructions(run, prompt, not_enough=NOT_ENOUGH), limits=limits),
            cited_answer(chunks, question),
            chunks=chunks,
        )
    details = result_fields(chunks, response, prompt)
    text, is_enough = _text(question, chunks, response, details["outcome"])
    footnoted, cited = footnotes(text, chunks)
    return Answer(
        question=question,
        text=text,
        footnoted=footnoted,
        citations=cited,
        refinement=refinement,
        enough_information=is_enough and bool(cited),
        **details,
    )


def cited_answer(chunks: Sequence[Chunk], question: str) -> OutputContract[str]:
    """Return the contract of an answer to `question` from these chunks."""
    rules = CitationRules(chunks, question)
    return OutputContract(
        str,
        grounding=lambda text, _: rules.problem(text),
        # A valid text may still change: sentences before a shared citation get it, too.
        render=lambda text, _: rules.valid_part(text),
        salvage=lambda text, _: rules.valid_part(text) or None,
        read_text=lambda text: CODE_FENCE.sub(lambda fence: fence[1], text),
        correction=CORRECTION,
    )


def _text(
    question: str, chunks: Sequence[Chunk], response: AgenticResponse[Any] | None, outcome: str
) -> tuple[str, bool]:
    """Return the text of an answer, and whether it has enough information."""
    if not chunks:
        return f"{translate('not_enough')} {translate('no_matching_document')}", False
    if outcome == "refused":
        return translate("look_up_declined"), False
    if response and response.has_text:
        only_admits = response.text.strip(" .*_") == NOT_ENOUGH
        text = translate("not_enough") if only_admits else response.text
        return text, not admits_not_enough(response.text)
    # Other brackets would look like citations.
    passages = [
        best_passage(chunk.text.replace("[", "(").replace("]", ")"), question) + f" [{chunk.path}]"
        for chunk in near_best(chunks)[:SHOWN_PASSAGES]
    ]
    text = "\n\n".join([translate("best_passages"), *passages])
    if response and response.outcome == "exhausted":  # the passages need not answer the question
        return f"{translate('not_enough')}\n\n{text}", False
    return text, True

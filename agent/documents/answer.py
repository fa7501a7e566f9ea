"""Answer questions from document excerpts, with a citation for every statement.

The model answers in plain text, because small models write [path] citations more reliably than
JSON. A statement is invalid if it needs a citation (see `citations.py`) and has none, cites a path
that was not retrieved, or has a number that the cited passages lack. The model may correct invalid
statements, as often as any answer. Statements that are still invalid are then removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.documents.citations import (
    NOT_ENOUGH_PHRASE,
    Citation,
    CitationRules,
    admits_not_enough,
    number_citations,
)
from agent.documents.passages import (
    PASSAGES_SHOWN,
    Chunk,
    DocumentStore,
    LookUpResult,
    announce_passages,
    ask_cheaper_model_first,
    build_result_fields,
    escape_tags,
    find_best_passage,
    format_excerpts,
    keep_near_best,
    retrieve,
)
from agent.documents.refine import Refinement, refine_question
from agent.documents.relevance import retrieve_relevant, say_nothing_found
from agent.engine.contract import FEEDBACK_INTRO, OutputContract, Part
from agent.engine.loop import AgenticResponse
from agent.engine.run import Prompt, Run
from agent.i18n import translate
from agent.prompts import get_prompt, with_instructions
from agent.text import pattern

PROMPT: Final = """\
FILE EXCERPTS:
<excerpts>
{excerpts}
</excerpts>

QUESTION: {question}"""

FEEDBACK: Final = FEEDBACK_INTRO + (
    "Please answer the question again in plain text, from the excerpts only, with the path of the "
    "source in [brackets] after every statement."
)
CODE_FENCE: Final = pattern(r"(?s)\A```\w*\n(.*?)\n?```\s*\Z")
"""An answer that is a code block as a whole: "```text" above it and "```" below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(LookUpResult):
    """An answer from documents. `text` is Markdown with `[path]` citations.

    Every cited path belongs to a document that was retrieved for this question. `footnoted` is the
    same text with the numbers of `citations` instead of the paths: `[1]`, `[2]`.
    """

    question: str
    text: str
    footnoted: str
    citations: tuple[Citation, ...] = ()
    refinement: Refinement
    enough_information: bool = False


async def answer_question(
    question: str,
    *,
    documents: DocumentStore,
    run: Run,
    refine: bool = False,
) -> Answer:
    """Answer `question` from the best chunks of `documents`.

    If `refine` is true, also search with a rewritten question. Without models, or if they fail, the
    answer consists of the best passages with citations. Without models, passages that do not
    mention the topics of the question are left out. Only errors from the document store are raised.
    """
    # One request is reserved for the answer.
    refinement = await refine_question(
        question, run=run, enabled=refine, reserved_requests=1
    )
    prompt = get_prompt(run, "documents-answer")
    if run.models:
        chunks = await retrieve(documents, refinement.queries, run.span)
    else:
        chunks = await retrieve_relevant(question, documents, run.span)
    response = None
    if run.models and chunks:
        response = await _ask_model(question, chunks, run, prompt)
    result_fields = build_result_fields(chunks, response, prompt)
    text, is_enough = _compose_text(
        question, chunks, response, result_fields["outcome"]
    )
    footnoted, citations = number_citations(text, chunks)
    return Answer(
        question=question,
        text=text,
        footnoted=footnoted,
        citations=citations,
        refinement=refinement,
        enough_information=is_enough and bool(citations),
        **result_fields,
    )


async def _ask_model(
    question: str,
    chunks: Sequence[Chunk],
    run: Run,
    prompt: Prompt,
) -> AgenticResponse[str]:
    message = PROMPT.format(
        excerpts=format_excerpts(chunks),
        question=escape_tags(question),
    )
    run = with_instructions(run, prompt, not_enough=NOT_ENOUGH_PHRASE)
    contract = build_answer_contract(chunks, question)
    return await ask_cheaper_model_first(message, run, contract, chunks=chunks)


def build_answer_contract(
    chunks: Sequence[Chunk], question: str
) -> OutputContract[str]:
    """Return the contract for an answer to `question` from these chunks."""
    rules = CitationRules(chunks, question)
    return OutputContract(
        str,
        grounding=lambda text, _: rules.find_grounding_error(text),
        # A text without invalid parts only gets shared citations after each of its sentences.
        render=lambda text, _: rules.keep_valid_part(text),
        keep_valid=lambda text, _: _keep_cited(text, rules),
        read_text=_remove_code_fence,
        feedback_wording=FEEDBACK,
    )


def _remove_code_fence(text: str) -> str:
    """Return the content of an answer that is a code block, or else the answer unchanged."""
    return CODE_FENCE.sub(lambda match: match[1], text)


def _keep_cited(text: str, rules: CitationRules) -> Part[str] | None:
    """Return the valid part of an answer, or None if that part does not answer anything."""
    valid = rules.keep_valid_part(text)
    if not valid:
        return None
    return Part(valid, rules.find_invalid_statements(text))


def _compose_text(
    question: str,
    chunks: Sequence[Chunk],
    response: AgenticResponse[Any] | None,
    outcome: str,
) -> tuple[str, bool]:
    """Return the text, and whether the excerpts are enough (assumed True without a model)."""
    if not chunks:
        text = f"{translate('not_enough')} {say_nothing_found(question)}"
        return text, False
    if outcome == "refused":
        return translate("look_up_declined"), False
    if response and response.has_text:
        if response.text.strip(" .*_") == NOT_ENOUGH_PHRASE:
            return translate("not_enough"), False
        return response.text, not admits_not_enough(response.text)
    shown = keep_near_best(chunks)[:PASSAGES_SHOWN]
    announcement = announce_passages("best_passages", shown[0].text, len(shown))
    paragraphs = [announcement]
    for chunk in shown:
        # Brackets within a passage would look like citations.
        unbracketed = chunk.text.replace("[", "(").replace("]", ")")
        passage = find_best_passage(unbracketed, question)
        paragraphs.append(f"{passage} [{chunk.path}]")
    text = "\n\n".join(paragraphs)
    # The passages may not answer a question that the model could not answer.
    if response and response.outcome == "exhausted":
        return f"{translate('not_enough')}\n\n{text}", False
    return text, True

"""Answers from documents: only the excerpts, a citation for every statement, never a made-up path.

The model is asked in plain text, with the structured prompt and its four rules (Option B of the
research on prompts for retrieval): small models write brackets more reliably than JSON. It says
which statements answer the question, in which order; what a person reads of them are the words of
their sources, unless the check that may be enabled finds a statement to say the same.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.citations import (
    Statement,
    admission,
    admits,
    admits_not_enough,
    citations,
    is_path,
    kept,
    only_cites,
    reworded,
    statements,
    uncited,
    without_citations,
)
from agent.documents.grounding import (
    Passage,
    Standing,
    StandingKind,
    read_sources,
    source_of,
    supported,
)
from agent.documents.passages import (
    DEFAULT_CHUNKS,
    SHOWN_PASSAGES,
    TOOL_LIMITS,
    Chunk,
    DocumentStore,
    LookedUp,
    Text,
    as_data,
    best_passage,
    by_chunk,
    excerpts,
    outcome_of,
    record,
    retrieve,
    telling_words,
    verbatim,
)
from agent.documents.refine import Refinement, refine_question
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import FAILED, fence
from agent.engine.limits import Limits
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import say
from agent.prompts import prompt_for
from agent.text import Match, pattern, sentences
from agent.turn_trace import Outcome, error_types

NOT_ENOUGH: Final = "I don't have enough information"

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
CITING_LINK: Final = pattern(
    r"\[(?P<label>[^\[\]\n]+)\]\((?P<target>[^()\n]+)\)|【(?P<wide>[^【】\n]+)】"
)
SHOWN_PATHS: Final = 8


@dataclass(frozen=True, slots=True)
class Citation:
    """What a citation points at: a document, and the passage retrieved from it."""

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

    @classmethod
    def of_help(cls, question: str, text: str) -> "Answer":
        """What is said to somebody in a crisis instead of an answer; nothing was looked up."""
        refinement = Refinement(question, question, fallback_reason="disabled")
        return cls(question, text, text, (), refinement, outcome="care", by_model=False)

    @property
    def refined_question(self) -> str | None:
        """What was searched for beside the question, None if it was not refined."""
        return self.refinement.refined if self.refinement.used else None

    @property
    def enough_information(self) -> bool:
        """Whether the documents answer the question."""
        return bool(self.citations) and not admits_not_enough(self.text)


async def answer_question(
    question: str,
    *,
    documents: DocumentStore,
    run: Run,
    refine: bool = False,
    limit: int = DEFAULT_CHUNKS,
) -> Answer:
    """Answer `question` from at most `limit` (8 at most) chunks of `documents`.

    With `refine` the refined question is searched for too; the question itself is answered.
    Without models, or when they fail, the answer is the best passages with their citations. Raises
    only what the store raises.
    """
    refinement = await refine_question(question, run=run, enabled=refine, kept_back=1)
    chunks = await retrieve(documents, refinement.queries, limit, run.span)
    prompt = prompt_for(run, "documents-answer")
    response = None
    if run.models and chunks:
        await read_sources(chunks)
        response = await generate_agentic_response(
            PROMPT.format(excerpts=excerpts(chunks), question=as_data(question)),
            run=replace(
                run.instructed(prompt, not_enough=NOT_ENOUGH), limits=once_more(run.limits)
            ),
            contract=cited_answer(chunks),
        )
    written = response.text if response and response.ok else ""
    checked: Collection[str] = ()
    if "check" in run.aside:
        checked = await supported(await asyncio.to_thread(doubtful, written, chunks), run)
    wording = Wording(chunks, checked)
    said = await asyncio.to_thread(wording.of, written)
    if said:
        run.span.update(metadata={"sentences": dict(wording.counts)})
    answer = _answer(question, chunks, refinement, response, said)
    if wording.counts["stopped"]:
        answer = replace(answer, outcome="salvaged")
    record(run.span, answer.outcome, response, prompt.ref if response else None)
    return answer


def once_more(limits: Limits) -> Limits:
    """Return limits by which an answer is sent back once, and cut after that."""
    return replace(
        limits, structured_output_max_retries=min(1, limits.structured_output_max_retries)
    )


def cited_answer(chunks: Sequence[Chunk]) -> OutputContract[str]:
    """Return the contract of an answer from these chunks."""
    paths = list(dict.fromkeys(chunk.path for chunk in chunks))

    def broken(text: str, evidence: Evidence) -> str | None:
        if problem := unretrieved_citation(text, paths):
            return problem
        shown = bool(Wording(chunks).of(text))
        return None if shown else f"nothing of it stands in the excerpts; if they do: {NOT_ENOUGH}"

    def salvage(text: str, evidence: Evidence) -> str | None:
        left = kept(text, lambda each: not unretrieved_citation(each.text, paths), paths)
        return left if citations(left, paths) or admits_not_enough(left) else None

    return OutputContract(
        str,
        semantic=uncited_statement,
        grounding=broken,
        render=lambda text, _: text.strip(),
        salvage=salvage,
        read_text=plain_brackets,
        correction=CORRECTION,
    )


class Wording:
    """How a person reads an answer: each statement in the words of what it cites.

    `supported` are statements that a check found to say the same: they stand as they are. `counts`
    says what became of the statements.
    """

    def __init__(self, chunks: Sequence[Chunk], supported: Collection[str] = ()) -> None:
        self._chunks = tuple(chunks)
        self._paths = {chunk.path for chunk in chunks}
        self._supported = supported
        self._shown: list[str] = []
        self._admitted = False
        self.counts: Counter[StandingKind] = Counter()

    def of(self, text: str) -> str:
        """Return an answer as it is read; empty if nothing of it stands in the chunks."""
        said = reworded(text, self._say, self._paths)
        return said if self._shown or self._admitted else ""

    def _say(self, statement: Statement) -> str:
        said = bare(statement, self._paths)
        match statement.kind:
            case "statement" if statement.cites and not only_cites(statement.text):
                return self._stated(statement, said)
            case "heading" if self._is_title(said.rstrip(":： ")):
                return statement.text
            case "admission":
                return self._admission(said)
        return ""

    def _is_title(self, said: str) -> bool:
        """Whether a heading is one of the sources': it claims nothing else."""
        titles = (f"{chunk.title} > {chunk.location}" for chunk in self._chunks)
        return any(verbatim(said, each) for each in titles)

    def _stated(self, statement: Statement, said: str) -> str:
        told = standing_of(statement, said, self._chunks)
        if said in self._supported:
            told = replace(told, kind="kept")
        self.counts[told.kind] += 1
        if told.kind == "kept":
            self._shown.append(said)
            own = citations(statement.text, self._paths)
            added = () if own else (f"[{path}]" for path in statement.cites)
            return " ".join([statement.text, *added])
        if told.kind == "stopped" and admits(said):
            return self._admission(said)
        return " ".join(filter(None, map(self._quote, told.passages)))

    def _admission(self, said: str) -> str:
        if self._admitted:
            return ""
        self._admitted = True
        return admission(said, rest=bool(self._shown))

    def _quote(self, passage: Passage) -> str:
        """A passage from the first of its sentences that was not shown yet to the last."""
        parts = sentences(passage.text)
        new = [
            at for at, each in enumerate(parts) if not any(each in shown for shown in self._shown)
        ]
        if not new:
            return ""
        text = " ".join(parts[new[0] : new[-1] + 1])
        self._shown.append(text)
        return f"“{text}” [{passage.path}]"


def doubtful(text: str, chunks: Sequence[Chunk]) -> dict[str, str]:
    """Return the statements of an answer that are to be replaced, each with what would be."""
    paths = {chunk.path for chunk in chunks}
    found: dict[str, str] = {}
    for statement in statements(text, paths):
        said = bare(statement, paths)
        if statement.kind == "statement" and statement.cites and not only_cites(statement.text):
            passages = standing_of(statement, said, chunks).passages
            found |= {said: " ".join(each.text for each in passages)} if passages else {}
    return found


def bare(statement: Statement, paths: Collection[str]) -> str:
    """Return the words of a statement alone."""
    return without_citations(statement.text, paths).strip(" *_#")


def standing_of(statement: Statement, said: str, chunks: Sequence[Chunk]) -> Standing:
    """Tell what is shown of a statement: by what it cites, or else by all that was retrieved."""
    cited = tuple(chunk for chunk in chunks if chunk.path in statement.cites)
    told = source_of(cited or tuple(chunks)).standing(said)
    return told if told.kind != "stopped" else source_of(tuple(chunks)).standing(said)


def plain_brackets(text: str) -> str:
    """Return a text without the fence around all of it, its citations in plain brackets.

    Some models make links of them, `[Sur lie](sur-lie.md)`, or write wide brackets.
    """
    fenced = FENCED.match(text)
    return CITING_LINK.sub(_as_citation, fenced[1] if fenced else text)


def _as_citation(found: Match) -> str:
    label, path = found["label"] or "", found["target"] or found["wide"]
    if not is_path(path) or "://" in path:
        return found[0]
    said = "" if label in {"", path} else f"{label} "
    return f"{said}[{path}]"


def uncited_statement(text: str) -> str | None:
    """Say why an answer does not cite its source for every statement; None if it does."""
    if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
        return "the answer is JSON; write plain text"
    if missing := uncited(text):
        return (
            f"this statement has no citation: {fence(missing[0], 120)} ({len(missing)} in all); "
            "put the [path] of its source after it, or leave it out"
        )
    if not admits_not_enough(text) and not citations(text, ()):
        return f"the answer cites nothing; cite [path], or say: {NOT_ENOUGH}"
    return None


def unretrieved_citation(text: str, paths: Sequence[str]) -> str | None:
    """Return feedback on the first thing in brackets that is no path among `paths`, or None."""
    for cited in citations(text, paths):
        for name in cited.unknown:
            listed = ", ".join(f"[{path}]" for path in paths[:SHOWN_PATHS])
            return f"[{fence(name)}] is not one of the excerpts; cite only {listed}"
    return None


def _answer(
    question: str,
    chunks: Sequence[Chunk],
    refinement: Refinement,
    response: AgenticResponse[str] | None,
    said: str,
) -> Answer:
    outcome: Outcome = outcome_of(response) if response else "answered"
    note = ""
    if not chunks:
        text = f"{say('not_enough')} {say('no_document_speaks')}"
    elif outcome == "refused":
        text = say("look_up_declined")
    elif response and response.ok:
        text = said
    else:
        text = _passages(chunks, question)
        note = say("documents_model_failed" if response else "documents_no_model")
    if response and response.outcome == "exhausted":
        text = f"{say('not_enough')}\n\n{text}"
    footnoted, cited = footnotes(text, chunks)
    return Answer(
        question=question,
        text=text,
        footnoted=footnoted,
        citations=cited,
        chunks=tuple(chunks),
        outcome=outcome,
        refinement=refinement,
        by_model=response is not None and response.ok,
        note=note,
        retry_count=response.retry_count if response else 0,
        error_types=error_types(response) if response else (),
    )


def _passages(chunks: Sequence[Chunk], question: str) -> str:
    """The best passages with their citations."""
    shown = [
        f"{best_passage(_unbracketed(chunk.text), question)} [{chunk.path}]"
        for chunk in chunks[:SHOWN_PASSAGES]
    ]
    return "\n\n".join([say("best_passages"), *shown])


def _unbracketed(text: str) -> str:
    """A passage in whose text nothing looks like a citation."""
    return text.replace("[", "(").replace("]", ")")


def footnotes(text: str, chunks: Sequence[Chunk]) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer with numbers for paths, and what each number stands for, in order.

    A path stands for the one of its chunks that fits best what is said before it: two passages of
    one document have two numbers.
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

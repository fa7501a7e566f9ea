"""How well a model quotes: 24 questions with known answers, no retry to hide behind.

Each model is asked once for each question, through the same prompt, retrieval and core as a
person's query; what is marked is its raw response. The metrics:

    json_parse     whether the response is a JSON object as it stands
    schema         whether it has every field of the schema
    verbatim       share of its snippets that stand in a retrieved chunk, for a question that has an
                   answer; 0 for a response that brought no snippet
    attribution    share of its snippets that name, exactly, the source they stand in; likewise
    negative       for a question without an answer: whether it got noResults and no snippet, or
                   nothing was retrieved, so that nobody was asked
    latency        seconds of a request, median and 95th percentile (nearest rank)
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import ValidationError

from agent.documents.passages import DEFAULT_CHUNKS, Chunk, DocumentStore, verbatim
from agent.documents.quotes import MAX_SNIPPETS, Quotes, QuotesAnswer, Snippet, find_quotes, located
from agent.engine.limits import KNOWN_PRICES, Ledger, Limits, Prices
from agent.engine.messages import LLM, ResponseMode
from agent.engine.run import Run
from agent.evals.dataset import Question
from agent.evals.evaluators import Mark
from agent.evals.run import Outcome, Trial
from agent.turn import Reply, answer_turn

MODES: Final[Mapping[str, ResponseMode]] = {
    "A": "prompt",
    "B": "json_object",
    "C": "json_schema",
    "D": "tool",
}
"""The letters of the response modes, as settings and `LLMService` name them."""


@dataclass(frozen=True, slots=True)
class QuotesVariant:
    """A model in one response mode, asked for quotes from `documents`.

    With `first` only where that one's answer fails its own check.
    """

    label: str
    llm: LLM
    documents: DocumentStore
    limit: int = DEFAULT_CHUNKS
    limits: Limits = field(default_factory=Limits)
    prices: Prices = KNOWN_PRICES
    first: LLM | None = None

    async def attempt(self, trial: Trial) -> Outcome:
        """Ask the question once and mark the raw response. A model that fails is marked as such.

        What the response was, what it cost and how long it took is read off the trace.
        """
        case = trial.case
        if not isinstance(case, Question):
            raise TypeError(f"{case.id} is no question for quotes")
        limits = replace(self.limits, structured_output_max_retries=0)
        ledger = Ledger(prices=self.prices)

        async def work(run: Run) -> Reply:
            found = await find_quotes(
                case.query, documents=self.documents, run=run, limit=self.limit
            )
            return found.reply("\n\n".join([*(q.content for q in found.quotes), found.summary]))

        with trial.turn(case.query) as span:
            aside = {"quotes": self.first} if self.first else {}
            run = Run([self.llm], limits=limits, ledger=ledger, span=span, aside=aside)
            reply = await answer_turn(run, work)
        if reply.answer is None:
            raise RuntimeError(f"the turn failed: {', '.join(reply.error_types)}")
        found: Quotes = reply.answer
        asked = [each for each in trial.traces[-1].spans if each.kind == "generation"]
        raw = next((str(each.output) for each in asked[-1:] if each.output is not None), None)
        made = marked(case, raw, found.chunks, asked=bool(asked))
        usage = ledger.usage
        spent = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": ledger.cost_usd,
        }
        seconds = (sum(each.seconds for each in asked),) if asked else ()
        figures = {**made.figures, **(spent if raw is not None else {})}
        return replace(made, figures=figures, seconds=seconds)


def marked(question: Question, raw: str | None, chunks: Sequence[Chunk], *, asked: bool) -> Outcome:
    """Hold a raw response against what was retrieved.

    The figure `retrieved`, the share of the known sources among the chunks, is not the model's
    doing.
    """
    figures = {"retrieved": _retrieved(question, chunks)} if question.sources else {}
    texts = (raw,) if raw is not None else ()
    if not asked and not chunks:
        found = _judged(question, None, chunks, "nothing was retrieved")
        return Outcome(marks=found, figures=figures)
    answer, problem = _read(raw) if raw is not None else (None, "no response")
    parsed = problem not in ("no response", "no JSON")
    given = {
        "json_parse": Mark(1) if parsed else Mark(0, problem),
        "schema": Mark(1) if answer else Mark(0, problem),
        **_judged(question, answer, chunks, problem),
    }
    if answer:
        figures["snippets"] = len(answer.snippets)
    return Outcome(marks=given, figures=figures, texts=texts)


def _retrieved(question: Question, chunks: Sequence[Chunk]) -> float:
    found = [any(chunk.path.endswith(source) for chunk in chunks) for source in question.sources]
    return sum(found) / len(found)


def _read(content: str) -> tuple[QuotesAnswer | None, str]:
    """The answer that the raw text is, or None and what is wrong; nothing is repaired."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None, "no JSON"
    if not isinstance(value, dict):
        return None, "no JSON"
    try:
        answer = QuotesAnswer.model_validate(value, strict=True, by_name=False)
    except ValidationError as error:
        return None, f"schema: {'.'.join(map(str, error.errors()[0]['loc']))}"
    if len(answer.snippets) > MAX_SNIPPETS:
        return None, f"schema: more than {MAX_SNIPPETS} snippets"
    return answer, ""


def _judged(
    question: Question, answer: QuotesAnswer | None, chunks: Sequence[Chunk], problem: str
) -> dict[str, Mark]:
    """The marks of an answer's snippets; without an answer all of them are 0.

    Where nothing was retrieved nobody is asked, which is right where there is no answer.
    """
    if question.kind == "negative":
        handled = not chunks if answer is None else answer.no_results and not answer.snippets
        return {"negative": Mark(1) if handled else Mark(0, problem or "quoted for a negative")}
    snippets = answer.snippets if answer else []
    problem = problem or ("" if snippets else "no snippet")
    return {
        "verbatim": _share([_stands(each, chunks) for each in snippets], problem or "not verbatim"),
        "attribution": _share(
            [_attributed(each, chunks) for each in snippets], problem or "wrong source"
        ),
    }


def _share(right: Sequence[bool], reason: str) -> Mark:
    return Mark(1) if right and all(right) else Mark(sum(right) / (len(right) or 1), reason)


def _stands(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    return any(verbatim(snippet.content, chunk.text) for chunk in chunks)


def _attributed(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Whether id and title are those of a retrieved source, and of the one it stands in."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    return located(snippet, chunks) is not None or not _stands(snippet, chunks)

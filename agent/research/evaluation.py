"""How well a model quotes: 24 questions with known answers, seven metrics, no retry to hide behind.

Each model is asked once for each question, through the same prompt, retrieval and core as a
person's query; what is measured is its raw response. Definitions of the metrics:

    json_parse     share of responses that are a JSON object as they stand
    schema         share of responses that have every field of the schema
    verbatim       share of snippets that stand in a retrieved chunk, averaged over the questions
                   that have an answer; 0 for one that brought no snippet
    attribution    share of snippets that name, exactly, the source they stand in; averaged alike
    negative       share of the questions without an answer that got noResults and no snippet
    latency        seconds of a request, median and 95th percentile (nearest rank)
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.budget import Ledger, Limits, price_of
from agent.messages import LLM, LLMResponse, Message, OutputSchema, ToolSchema, Usage
from agent.ports import Chunk, DocumentStore
from agent.research.passages import DEFAULT_CHUNKS
from agent.research.quote_contract import (
    MAX_SNIPPETS,
    QuotesAnswer,
    Snippet,
    source_chunk,
    verbatim,
)
from agent.research.quotes import find_quotes
from agent.wire import ResponseMode

Kind = Literal["keyword", "paraphrase", "multi", "negative"]
Progress = Callable[[str, int, int], None]
"""Called with the label of the run, questions done, questions in all."""

MODES: Final[Mapping[str, ResponseMode]] = {"A": "prompt", "B": "json_object", "C": "json_schema"}
"""The letters of the response modes, as settings and `LLMService` name them."""

GROUND_TRUTH: Final = Path(__file__).with_name("ground_truth.json")


class Question(BaseModel):
    """A question with a known answer: the documents that hold it, by the end of their path."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    kind: Kind
    query: str
    sources: tuple[str, ...]


def ground_truth(file: Path = GROUND_TRUTH) -> list[Question]:
    """The 24 questions over the starter documents: 6 of each kind."""
    return TypeAdapter(list[Question]).validate_json(file.read_bytes())


@dataclass(frozen=True, slots=True)
class Score:
    """What one response came to. Shares are from 0 to 1, None where the question has none.

    `retrieved`: the share of the known sources among the chunks; not the model's doing.
    """

    question: Question
    asked: bool = False
    parsed: bool = False
    compliant: bool = False
    snippets: int = 0
    verbatim: float | None = None
    attribution: float | None = None
    negative: bool | None = None
    retrieved: float | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """All scores of one model in one response mode."""

    label: str
    model: str
    scores: tuple[Score, ...]

    @property
    def values(self) -> dict[str, float]:
        """The seven metrics by name; shares from 0 to 1, latencies in seconds."""
        asked = [score for score in self.scores if score.asked]
        seconds = [score.seconds for score in asked]
        return {
            "json_parse": mean([score.parsed for score in asked]),
            "schema": mean([score.compliant for score in asked]),
            "verbatim": mean([s.verbatim for s in self.scores if s.verbatim is not None]),
            "attribution": mean([s.attribution for s in self.scores if s.attribution is not None]),
            "negative": mean([s.negative for s in self.scores if s.negative is not None]),
            "latency_p50": percentile(seconds, 0.50),
            "latency_p95": percentile(seconds, 0.95),
        }

    @property
    def cost_per_query(self) -> float:
        """US dollars, averaged over the requests made."""
        return mean([score.cost_usd for score in self.scores if score.asked])


@dataclass(slots=True)
class _Recorder:
    """A model whose last response and its time are kept."""

    llm: LLM
    clock: Callable[[], float]
    response: LLMResponse | None = None
    seconds: float = 0.0
    asked: bool = False

    @property
    def model(self) -> str:
        return self.llm.model

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> LLMResponse:
        self.asked, self.response = True, None
        started = self.clock()
        try:
            self.response = await self.llm.generate_with_tools(
                messages, tools, output=output, max_tokens=max_tokens, temperature=temperature
            )
        finally:
            self.seconds = self.clock() - started
        return self.response


async def evaluate_quotes(
    models: Mapping[str, LLM],
    *,
    documents: DocumentStore,
    questions: Sequence[Question] = (),
    limit: int = DEFAULT_CHUNKS,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    clock: Callable[[], float] = time.perf_counter,
    progress: Progress | None = None,
) -> list[Run]:
    """Ask every model (a label for each, its response mode, say) every question, one by one.

    `questions` are the 24 of `ground_truth` unless given. A model that fails is scored as such.
    """
    asked = questions or ground_truth()
    runs = []
    for label, llm in models.items():
        scores: list[Score] = []
        for question in asked:
            scores.append(await _ask(question, llm, documents, limit, limits=limits, clock=clock))
            if progress:
                progress(label, len(scores), len(asked))
        runs.append(Run(label, llm.model, tuple(scores)))
    return runs


async def _ask(
    question: Question,
    llm: LLM,
    documents: DocumentStore,
    limit: int,
    *,
    limits: Limits,
    clock: Callable[[], float],
) -> Score:
    recorder = _Recorder(llm, clock)
    found = await find_quotes(
        question.query,
        documents=documents,
        models=[recorder],
        limit=limit,
        limits=replace(limits, structured_output_max_retries=0),
        ledger=Ledger(),
    )
    score = scored(question, recorder.response, found.chunks)
    return replace(score, asked=recorder.asked, seconds=recorder.seconds)


def scored(question: Question, response: LLMResponse | None, chunks: Sequence[Chunk]) -> Score:
    """A raw response held against what was retrieved."""
    score = replace(_worst(question), retrieved=_retrieved(question, chunks))
    if response is None:
        return replace(score, problem="no response" if chunks else "nothing was retrieved")
    score = replace(
        score, usage=response.usage, cost_usd=price_of(response.model).of(response.usage)
    )
    answer, problem = _read(response.content)
    score = replace(score, parsed=problem != "no JSON", problem=problem)
    return score if answer is None else _judged(replace(score, compliant=True), answer, chunks)


def _worst(question: Question) -> Score:
    """The score of no usable response: every metric that the question counts for is 0."""
    if question.kind == "negative":
        return Score(question, negative=False)
    return Score(question, verbatim=0.0, attribution=0.0)


def _retrieved(question: Question, chunks: Sequence[Chunk]) -> float | None:
    if not question.sources:
        return None
    return mean(
        [any(chunk.path.endswith(source) for chunk in chunks) for source in question.sources]
    )


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


def _judged(score: Score, answer: QuotesAnswer, chunks: Sequence[Chunk]) -> Score:
    score = replace(score, snippets=len(answer.snippets))
    if score.question.kind == "negative":
        handled = answer.no_results and not answer.snippets
        return replace(score, negative=handled, problem="" if handled else "quoted for a negative")
    verbatims = [_stands(snippet, chunks) for snippet in answer.snippets]
    attributed = [_attributed(snippet, chunks) for snippet in answer.snippets]
    problems = {
        "no snippet": not answer.snippets,
        "not verbatim": not all(verbatims),
        "wrong source": not all(attributed),
    }
    return replace(
        score,
        verbatim=mean(verbatims),
        attribution=mean(attributed),
        problem=", ".join(name for name, found in problems.items() if found),
    )


def _stands(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    return any(verbatim(snippet.content, chunk.text) for chunk in chunks)


def _attributed(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Whether id and title are those of a retrieved source, and of the one it stands in."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    return source_chunk(snippet, chunks) is not None or not _stands(snippet, chunks)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed, 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0

"""How well a model quotes: 24 questions with known answers, seven metrics, no retry to hide behind.

Each model is asked once for each question, through the same prompt, retrieval and core as a
person's query; what is measured is its raw response. Definitions of the metrics:

    json_parse     share of responses that are a JSON object as they stand
    schema         share of responses that have every field of the schema
    verbatim       share of snippets that stand in a retrieved chunk, averaged over the questions
                   that have an answer; 0 for one that brought no snippet
    attribution    share of snippets that name, exactly, the source they stand in; averaged alike
    negative       share of the questions without an answer that got noResults and no snippet, or
                   for which nothing was retrieved, so that nobody was asked
    latency        seconds of a request, median and 95th percentile (nearest rank)
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from agent.documents.passages import DEFAULT_CHUNKS
from agent.documents.quotes import find_quotes
from agent.documents.store import DocumentStore
from agent.engine import run as engine
from agent.engine.limits import Limits
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ToolSchema
from agent.engine.prices import KNOWN_PRICES, Prices
from agent.engine.span import Span
from agent.engine.wire import ResponseMode
from agent.evals.quote_scores import Question, Score, ground_truth, mean, percentile, scored
from agent.evals.traces import USER, Kept, give_scores, session
from agent.tracing.recorder import Recorder, Tracer
from agent.tracing.records import TraceRecord, trace_id_of

__all__ = [
    "MODES",
    "Progress",
    "Question",
    "Record",
    "Run",
    "Score",
    "evaluate_quotes",
    "ground_truth",
    "mean",
    "percentile",
    "scored",
]

Progress = Callable[[str, int, int], None]
"""Called with the label of the run, questions done, questions in all."""

Record = Callable[[str, Question, Sequence[TraceRecord]], Awaitable[None]]
"""Called with the label of the run, a question, and its trace, which has the scores."""

MODES: Final[Mapping[str, ResponseMode]] = {"A": "prompt", "B": "json_object", "C": "json_schema"}
"""The letters of the response modes, as settings and `LLMService` name them."""


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
    def snippets_per_query(self) -> float:
        """Averaged over the responses that had the shape of an answer."""
        return mean([score.snippets for score in self.scores if score.compliant])

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
    run: str = "",
    record: Record | None = None,
    prices: Prices = KNOWN_PRICES,
) -> list[Run]:
    """Ask every model (a label for each, its response mode, say) every question, one by one.

    `questions` are the 24 of `ground_truth` unless given. A model that fails is scored as such.
    Each question is traced in the session of `run`, and handed to `record`.
    """
    asked = questions or ground_truth()
    runs = []
    for label, llm in models.items():
        scores: list[Score] = []
        for question in asked:
            kept = Kept()
            with _opened(Recorder(kept), run, label, question) as span:
                span.update(metadata={"question": question.id, "variant": label})
                scores.append(
                    await _ask(
                        question,
                        llm,
                        documents,
                        limit,
                        limits=limits,
                        clock=clock,
                        span=span,
                        prices=prices,
                    )
                )
            give_scores(kept.traces[-1], scores[-1].shares)
            if record:
                await record(label, question, kept.traces)
            if progress:
                progress(label, len(scores), len(asked))
        runs.append(Run(label, llm.model, tuple(scores)))
    return runs


def _opened(
    tracer: Tracer, run: str, label: str, question: Question
) -> AbstractContextManager[Span]:
    """The trace of a question, under an id that is the same when a run of this name is repeated."""
    return tracer.turn(
        input=question.query,
        session=session(run),
        user=USER,
        trace_id=trace_id_of("eval", run, label, question.id),
    )


async def _ask(
    question: Question,
    llm: LLM,
    documents: DocumentStore,
    limit: int,
    *,
    limits: Limits,
    clock: Callable[[], float],
    span: Span,
    prices: Prices,
) -> Score:
    recorder = _Recorder(llm, clock)
    found = await find_quotes(
        question.query,
        documents=documents,
        run=engine.Run(
            [recorder], limits=replace(limits, structured_output_max_retries=0), span=span
        ),
        limit=limit,
    )
    score = scored(question, recorder.response, found.chunks, prices)
    return replace(score, asked=recorder.asked, seconds=recorder.seconds)

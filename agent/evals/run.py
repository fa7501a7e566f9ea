"""Answer the cases of a dataset with every variant; trace and mark the turns.

A variant is the sommelier with a model and a prompt, or a model that quotes. Results are yielded as
they come, so that an interrupted run keeps what is done.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final, Protocol, cast

from agent.documents.passages import DocumentStore
from agent.documents.quotes import find_quotes
from agent.engine.errors import log_failure
from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.run import Run
from agent.engine.span import Span
from agent.evals.dataset import Case, Conversation, Question
from agent.evals.evaluators import Mark, Observed, marks
from agent.evals.quotes import quote_marks
from agent.sommelier.history import messages_for_model
from agent.sommelier.service import Answerer
from agent.sommelier.wine import Catalogue
from agent.tracing.records import ScoreRecord, TraceRecord, trace_id_of
from agent.turn import Reply, StoredMessage, answer_turn

USER: Final = "eval"


@dataclass(slots=True)
class Trial:
    """One case, tried by one variant, with the traces of its turns."""

    run: str
    variant: str
    case: Case
    traces: list[TraceRecord] = field(default_factory=list)

    @contextmanager
    def turn(self, message: str) -> Iterator[Span]:
        """Trace one message."""
        trace_id = trace_id_of("eval", self.run, self.variant, self.case.id, len(self.traces))
        trace = TraceRecord(trace_id, session=f"eval:{self.run}", user=USER)
        with trace.open_root(message) as span:
            span.update(metadata={"case": self.case.id, "variant": self.variant})
            self.traces.append(span.trace)
            yield span


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answers of a variant to a case, with their marks, other numbers and seconds a turn."""

    marks: Mapping[str, Mark]
    figures: Mapping[str, float] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    wine_ids: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a case for a variant, with its traces.

    `failure` is the type of the exception that ended it, empty without one.
    """

    variant: str
    case: Case
    outcome: Outcome
    traces: tuple[TraceRecord, ...] = ()
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Return whether every metric that applies is at its best."""
        return not self.failure and all(mark.passed for mark in self.outcome.marks.values())


class Variant(Protocol):
    """Something that answers cases; its label names a model, a prompt or a response mode."""

    @property
    def label(self) -> str:
        """Return the name in reports."""
        ...

    async def attempt(self, trial: Trial) -> Outcome:
        """Answer the case of `trial`, every turn within `trial.turn`, and mark the answer."""
        ...


async def evaluate(
    variants: Sequence[Variant], cases: Sequence[Case], *, run: str, concurrency: int = 4
) -> AsyncIterator[Result]:
    """Yield the result of every case for every variant, `concurrency` at a time.

    An exception in a case is its failure and ends nothing else.
    """
    slots = asyncio.Semaphore(concurrency)
    tasks = [
        asyncio.create_task(_attempt(variant, Trial(run, variant.label, case), slots))
        for case in cases
        for variant in variants
    ]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()


async def _attempt(variant: Variant, trial: Trial, slots: asyncio.Semaphore) -> Result:
    failure = ""
    try:
        async with slots:
            outcome = await variant.attempt(trial)
    except Exception as error:
        failure = log_failure(f"case {trial.case.id} failed", error)
        outcome = Outcome(marks={"answered": Mark(0, f"failed: {failure}")})
    if trial.traces:
        scores = trial.traces[-1].scores
        scores |= {score.name: score for score in _scores(outcome)}
    return Result(trial.variant, trial.case, outcome, tuple(trial.traces), failure)


def _scores(outcome: Outcome) -> Iterator[ScoreRecord]:
    """Yield the scores of the last turn of a case; a turn has scores of its own too."""
    for metric, mark in outcome.marks.items():
        yield ScoreRecord(f"eval_{metric}", mark.score, "NUMERIC", mark.reason)
    if outcome.seconds:
        yield ScoreRecord("eval_seconds", fmean(outcome.seconds), "NUMERIC")
        yield ScoreRecord("eval_cost_usd", outcome.figures.get("cost_usd", 0.0), "NUMERIC")


def _figures(spent: Spent) -> dict[str, float]:
    return {"requests": spent.requests, "tokens": spent.tokens, "cost_usd": spent.cost_usd}


@dataclass(frozen=True, slots=True)
class SommelierVariant:
    """The sommelier in a conversation, with its own answers as history."""

    label: str
    answerer: Answerer
    catalogue: Catalogue
    run: Run

    async def attempt(self, trial: Trial) -> Outcome:
        """Send every message after the answer to the previous one, and mark the last answer."""
        case = cast(Conversation, trial.case)
        history, replies, spent = [*case.history], list[Reply](), NOTHING_SPENT
        for message in case.messages:
            reply = await self._answer(trial, message, history)
            replies.append(reply)
            spent += reply.spent
            history += [
                StoredMessage("user", message),
                StoredMessage("assistant", reply.text, reply.wine_ids),
            ]
        observed = await self._observe(case, replies)
        by_model = [
            reply.spent.requests > 0 and reply.outcome in ("answered", "salvaged")
            for reply in replies
        ]
        return Outcome(
            marks=marks(observed, case),
            figures=_figures(spent) | {"by_model": fmean(by_model)},
            texts=observed.texts,
            wine_ids=tuple(wine.id for wine in observed.wines),
            seconds=tuple(trace.root.seconds for trace in trial.traces),
        )

    async def _answer(self, trial: Trial, message: str, history: Sequence[StoredMessage]) -> Reply:
        async def work(run: Run) -> Reply:
            return await self.answerer.answer(message, run)

        with trial.turn(message) as span:
            turn = self.run.for_turn(span=span, history=messages_for_model(history))
            reply = await answer_turn(turn, work)
        return replace(reply, spent=turn.ledger.spent)

    async def _observe(self, case: Conversation, replies: Sequence[Reply]) -> Observed:
        """Return the last reply with its wines as the catalogue has them."""
        last = replies[-1]
        wines = await self.catalogue.get(last.wine_ids)
        earlier = [said.wine_ids for said in case.history if said.role == "assistant"]
        earlier += [reply.wine_ids for reply in replies[:-1]]
        known = {wine.id for wine in wines}
        return Observed(
            reply=last,
            texts=tuple(reply.shown for reply in replies),
            wines=tuple(wines),
            unknown=tuple(wine_id for wine_id in last.wine_ids if wine_id not in known),
            previous=tuple(await self.catalogue.get(earlier[-1])) if earlier else (),
            shown_before=frozenset(wine_id for wine_ids in earlier for wine_id in wine_ids),
        )


@dataclass(frozen=True, slots=True)
class QuotesVariant:
    """A model in one response mode, asked for quotes from `documents` without any retry."""

    label: str
    run: Run
    documents: DocumentStore

    async def attempt(self, trial: Trial) -> Outcome:
        """Ask the question once and mark the raw response, which is read off the trace."""
        case = cast(Question, trial.case)
        once = replace(self.run.limits, structured_output_max_retries=0)

        async def work(run: Run) -> Reply:
            found = await find_quotes(case.query, documents=self.documents, run=run)
            return found.reply(found.summary)

        with trial.turn(case.query) as span:
            run = replace(self.run, limits=once).for_turn(span=span)
            reply = await answer_turn(run, work)
        if reply.answer is None:
            raise RuntimeError(f"the turn failed: {', '.join(reply.error_types)}")
        chunks = reply.answer.chunks
        asked = [span for span in trial.traces[-1].spans if span.kind == "generation"]
        raw = next((str(span.output) for span in asked[-1:] if span.output is not None), None)
        return Outcome(
            marks=quote_marks(case, raw, chunks, asked=bool(asked)),
            figures=_figures(run.ledger.spent),
            texts=() if raw is None else (raw,),
            seconds=(sum(span.seconds for span in asked),) if asked else (),
        )

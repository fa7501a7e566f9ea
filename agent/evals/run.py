"""Running cases side by side: every variant answers every case, each turn traced and marked.

A variant is whoever answers: the sommelier with a model and a prompt, a model that quotes, or one
that reads pictures (`agent.evals.pictures`). What a case came to is handed on as soon as it is
known, so that a run that is broken off keeps what is done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, cast

from agent.care.concerns import read_care_in_talk
from agent.deps import deps_of
from agent.documents.passages import DocumentStore
from agent.documents.quotes import find_quotes
from agent.engine.errors import log_failure
from agent.engine.limits import Ledger, Spent
from agent.engine.run import Run
from agent.engine.span import ScoreRecord, Span, TraceRecord
from agent.evals.dataset import Case, Conversation, Question
from agent.evals.evaluators import Mark, Observed, marks, marks_of_quotes
from agent.repositories import StoredMessage
from agent.sommelier.history import window
from agent.sommelier.service import Answerer
from agent.sommelier.wine import Catalogue, Wine
from agent.tracing.recorder import Recorder, trace_id_of
from agent.turn import NOBODY, Person, Reply, Work, answer_turn, changed

USER: Final = "eval"
GUEST: Final = 1
"""Of whom something is remembered, within a conversation."""
SCORE_PREFIX: Final = "eval_"
"""Before a metric's name in the scores of a trace, whose other scores a turn gives itself."""


@dataclass(slots=True)
class Trial:
    """One case by one variant while it is tried, with its turns' traces."""

    run: str
    variant: str
    case: Case
    traces: list[TraceRecord] = field(default_factory=list)

    @contextmanager
    def turn(self, message: str) -> Iterator[Span]:
        """Trace one message; its trace has the same id in every run of this name."""
        number = len(self.traces)
        opened = Recorder().turn(
            input=message,
            session=f"eval:{self.run}",
            user=USER,
            trace_id=trace_id_of("eval", self.run, self.variant, self.case.id, number),
        )
        with opened as span:
            span.update(metadata={"case": self.case.id, "variant": self.variant})
            self.traces.append(span.trace)
            yield span

    async def look_up(self, asked: str, run: Run, work: Work) -> tuple[Any, Ledger]:
        """Do the work of a look-up in a turn of its own: what was found, and what that took.

        Raises:
            RuntimeError: it failed.
        """
        with self.turn(asked) as span:
            turn = run.turn(span=span)
            reply = await answer_turn(turn, work)
        if reply.answer is None:
            raise RuntimeError(f"the turn failed: {', '.join(reply.error_types)}")
        return reply.answer, turn.ledger

    def score(self, metric: str, score: float, reason: str = "") -> None:
        """Score the last turn by a metric; the id of the score is fixed by both."""
        if self.traces:
            given = ScoreRecord(f"{SCORE_PREFIX}{metric}", score, "NUMERIC", reason)
            self.traces[-1].scores[given.name] = given


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a variant made of a case.

    `figures` are numbers that are no scores, averaged in reports: retries, tokens, cost_usd …
    `error` says what kept the model from answering at all; `seconds` are those of its turns, or of
    its request.
    """

    marks: Mapping[str, Mark]
    figures: Mapping[str, float] = field(default_factory=dict)
    outcome: str = ""
    error: str = ""
    texts: tuple[str, ...] = ()
    wine_ids: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One case by one variant. `traces` are its turns, the last one with its scores.

    `failure` is the type of an error that kept it from being answered, empty without one.
    """

    variant: str
    case: Case
    outcome: Outcome
    traces: tuple[TraceRecord, ...] = ()
    failure: str = ""

    @property
    def marks(self) -> Mapping[str, Mark]:
        """The mark of every metric that applies."""
        return self.outcome.marks

    @property
    def passed(self) -> bool:
        """Whether every metric that applies is at its best."""
        return not self.failure and all(mark.passed for mark in self.marks.values())


class Variant(Protocol):
    """What is compared. The label names a model, a prompt, a response mode or several of them."""

    @property
    def label(self) -> str:
        """By what the variant is told in a report."""
        ...

    async def attempt(self, trial: Trial) -> Outcome:
        """Answer the case of `trial`, each turn within `trial.turn`, and mark what came of it."""
        ...


Done = Callable[[Result], Awaitable[None]]
"""Takes each result as soon as it is known."""


async def evaluate(
    variants: Sequence[Variant],
    cases: Sequence[Case],
    *,
    run: str,
    done: Done,
    concurrency: int = 4,
) -> None:
    """Have every variant answer every case, `concurrency` at a time, and mark the answers.

    A case that fails counts as failed and ends nothing. Raises only what `done` raises.
    """
    slots = asyncio.Semaphore(concurrency)

    async def one(variant: Variant, case: Case) -> None:
        async with slots:
            await done(await _tried(variant, Trial(run, variant.label, case)))

    async with asyncio.TaskGroup() as tasks:
        for case in cases:
            for variant in variants:
                tasks.create_task(one(variant, case))


async def _tried(variant: Variant, trial: Trial) -> Result:
    failure = ""
    try:
        outcome = await variant.attempt(trial)
    except Exception as error:
        failure = log_failure(f"case {trial.case.id} failed", error)
        outcome = Outcome(marks={"validity": Mark(0, f"failed: {failure}")})
    for metric, mark in outcome.marks.items():
        trial.score(metric, mark.score, mark.reason)
    if outcome.seconds:
        trial.score("seconds", sum(outcome.seconds) / len(outcome.seconds))
        trial.score("cost_usd", outcome.figures.get("cost_usd", 0.0))
    return Result(trial.variant, trial.case, outcome, tuple(trial.traces), failure)


@dataclass(frozen=True, slots=True)
class SommelierVariant:
    """The sommelier in a conversation: answers are fed back as history, as a guest has them."""

    label: str
    answerer: Answerer
    catalogue: Catalogue
    run: Run = field(default_factory=Run)

    async def attempt(self, trial: Trial) -> Outcome:
        """Say every message, each after the answer to the one before, and mark the last answer."""
        case = cast(Conversation, trial.case)
        history = [*case.history]
        person = Person(user_id=GUEST) if case.is_remembered else NOBODY
        replies: list[Reply] = []
        spent: list[Spent] = []
        for message in case.messages:
            with trial.turn(message) as span:
                turn = self.run.turn(span=span, history=window(history))
                if case.is_remembered:
                    care = read_care_in_talk([*_said(history), message])
                    deps = replace(deps_of(turn), person=replace(person, care=care))
                    turn = replace(turn, deps=deps)
                reply = await answer_turn(turn, partial(self.answerer.answer, message))
            replies.append(reply)
            for each in reply.changes:
                person = changed(person, each)
            spent.append(turn.ledger.spent)
            history += [
                StoredMessage("user", message),
                StoredMessage("assistant", reply.text, reply.wine_ids),
            ]
        observed = await self._observed(case, replies, trial.traces[-1])
        observed = replace(observed, person=person)
        return Outcome(
            marks=marks(observed, case),
            figures={
                "retries": observed.retries,
                "requests": sum(each.requests for each in spent),
                "tokens": sum(each.tokens for each in spent),
                "cost_usd": sum(each.cost_usd for each in spent),
            },
            outcome=observed.outcome,
            error=observed.model_error,
            texts=observed.texts,
            wine_ids=tuple(wine.id for wine in observed.wines),
            seconds=tuple(trace.root.seconds for trace in trial.traces),
        )

    async def _observed(
        self, case: Conversation, replies: Sequence[Reply], trace: TraceRecord
    ) -> Observed:
        """What came of it, with the wines as the catalogue has them."""
        last = replies[-1]
        wines = await self._wines(last.wine_ids)
        earlier = [each.wine_ids for each in case.history if each.role == "assistant"]
        earlier += [reply.wine_ids for reply in replies[:-1]]
        known = {wine.id for wine in wines}
        return Observed(
            texts=tuple(reply.shown for reply in replies),
            outcome=last.outcome,
            answer=last.answer,
            wines=tuple(wines),
            unknown=tuple(wine_id for wine_id in last.wine_ids if wine_id not in known),
            previous=tuple(await self._wines(earlier[-1])) if earlier else (),
            shown_before=frozenset(wine_id for wine_ids in earlier for wine_id in wine_ids),
            error_types=last.error_types,
            model_error=_model_error(trace) if "model_error" in last.error_types else "",
            retries=last.retries,
        )

    async def _wines(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids that exist."""
        return await self.catalogue.get(wine_ids) if wine_ids else []


def _said(history: Sequence[StoredMessage]) -> list[str]:
    return [each.content for each in history if each.role == "user"]


def _model_error(trace: TraceRecord) -> str:
    """The type of the last error that kept a model from answering in this turn; empty if none."""
    failed = (each for each in reversed(trace.spans) if each.kind == "generation")
    return next((str(kind) for each in failed if (kind := each.metadata.get("error_type"))), "")


@dataclass(frozen=True, slots=True)
class QuotesVariant:
    """A model in one response mode, asked for quotes from `documents`: without any retry.

    What the response was, what it cost and how long it took is read off the trace.
    """

    label: str
    run: Run
    documents: DocumentStore

    async def attempt(self, trial: Trial) -> Outcome:
        """Ask the question once and mark the raw response. A model that fails is marked as such."""
        case = cast(Question, trial.case)
        once = replace(self.run.limits, structured_output_max_retries=0)

        async def work(run: Run) -> Reply:
            found = await find_quotes(case.query, documents=self.documents, run=run)
            return found.reply("\n\n".join([*(q.content for q in found.quotes), found.summary]))

        found, ledger = await trial.look_up(case.query, replace(self.run, limits=once), work)
        asked = [each for each in trial.traces[-1].spans if each.kind == "generation"]
        raw = next((str(each.output) for each in asked[-1:] if each.output is not None), None)
        given, figures = marks_of_quotes(case, raw, found.chunks, asked=bool(asked))
        if raw is not None:
            figures |= {
                "prompt_tokens": ledger.usage.prompt_tokens,
                "completion_tokens": ledger.usage.completion_tokens,
                "cost_usd": ledger.cost_usd,
            }
        return Outcome(
            marks=given,
            figures=figures,
            texts=() if raw is None else (raw,),
            seconds=(sum(each.seconds for each in asked),) if asked else (),
        )

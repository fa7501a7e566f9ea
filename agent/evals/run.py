"""Answer the conversations of a dataset with every variant; mark the answers, and report them.

Results are yielded as they come, so that an interrupted run keeps what is done.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from statistics import fmean
from typing import Any, Final

from agent.engine.errors import log_failure
from agent.engine.run import NOTHING_SPENT, Run
from agent.evals.dataset import Conversation
from agent.evals.evaluators import METRICS, Mark, Observed, mark_answer
from agent.sommelier.answer import to_history
from agent.sommelier.service import Answerer
from agent.sommelier.wine import Catalogue
from agent.text import clip
from agent.tracing.records import ScoreRecord, TraceRecord, trace_id_of
from agent.turn import Reply, StoredMessage, answer_turn

USER: Final = "eval"
MAX_WORST: Final = 10
MAX_REASON_CHARS: Final = 160
FIGURES: Final = {
    "by_model": "{:.0%} of turns",
    "seconds p50": "{:.1f} s",
    "seconds p95": "{:.1f} s",
    "requests": "{:.1f}",
    "tokens": "{:,.0f}",
    "cost_usd": "${:.4f}",
}
"""Numbers beside the marks and their format: percentiles, or averages over the cases."""
PERCENTILES: Final = {"seconds p50": 0.50, "seconds p95": 0.95}


@dataclass(slots=True)
class Result:
    """The answers of a variant to a case, with their marks and traces.

    `figures` are numbers beside the marks, averaged in reports. `failure` is the type of the
    exception that ended it, empty without one.
    """

    variant: str
    case: Conversation
    marks: Mapping[str, Mark] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    wine_ids: tuple[str, ...] = ()
    traces: list[TraceRecord] = field(default_factory=list)
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Return whether every metric that applies is at its best."""
        return not self.failure and all(mark.passed for mark in self.marks.values())

    @property
    def seconds(self) -> list[float]:
        """Return the seconds of every turn."""
        return [trace.root.seconds for trace in self.traces]


@dataclass(frozen=True, slots=True)
class Variant:
    """The sommelier with a model and a prompt, which the label names."""

    label: str
    answerer: Answerer
    catalogue: Catalogue
    run: Run

    async def attempt(self, case: Conversation, run: str) -> Result:
        """Send every message after the answer to the previous one, and mark the last answer.

        An exception is the failure of the case, and ends nothing else.
        """
        result = Result(self.label, case)
        try:
            await self._converse(result, run)
        except Exception as error:
            result.failure = log_failure(f"case {case.id} failed", error)
            result.marks = {"answered": Mark(0, f"failed: {result.failure}")}
        if result.traces:
            for score in _scores(result):
                result.traces[-1].scores[score.name] = score
        return result

    async def _converse(self, result: Result, run: str) -> None:
        case = result.case
        history, replies, spent = [*case.history], list[Reply](), NOTHING_SPENT
        for message in case.messages:
            reply = await self._answer(result, run, message, history)
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
        result.marks, result.texts = mark_answer(observed, case), observed.texts
        result.wine_ids = tuple(wine.id for wine in observed.wines)
        result.figures = {
            "by_model": fmean(by_model),
            "requests": spent.requests,
            "tokens": spent.tokens,
            "cost_usd": spent.cost_usd,
        }

    async def _answer(
        self, result: Result, run: str, message: str, history: Sequence[StoredMessage]
    ) -> Reply:
        trace_id = trace_id_of("eval", run, self.label, result.case.id, len(result.traces))
        trace = TraceRecord(trace_id, session=f"eval:{run}", user=USER)
        with trace.open_root(message) as span:
            span.update(metadata={"case": result.case.id, "variant": self.label})
            result.traces.append(trace)
            earlier = to_history(history)
            turn = replace(self.run.for_turn(), span=span, history=earlier)
            reply = await answer_turn(turn, partial(self.answerer.answer, message))
        return replace(reply, spent=turn.ledger.spent)

    async def _observe(self, case: Conversation, replies: Sequence[Reply]) -> Observed:
        """Return the last reply with its wines as the catalogue has them."""
        last = replies[-1]
        wines = await self.catalogue.get(last.wine_ids)
        earlier = [message.wine_ids for message in case.history if message.role == "assistant"]
        earlier += [reply.wine_ids for reply in replies[:-1]]
        return Observed(
            reply=last,
            texts=tuple(reply.full_text for reply in replies),
            wines=tuple(wines),
            unknown=tuple({*last.wine_ids} - {wine.id for wine in wines}),
            previous=tuple(await self.catalogue.get(earlier[-1])) if earlier else (),
            shown_before=frozenset(wine_id for wine_ids in earlier for wine_id in wine_ids),
        )


def _scores(result: Result) -> list[ScoreRecord]:
    """Return the scores of the last turn of a case; a turn has scores of its own too."""
    figures = {"seconds": fmean(result.seconds), "cost_usd": result.figures.get("cost_usd", 0.0)}
    return [
        *(
            ScoreRecord(f"eval_{metric}", mark.score, "NUMERIC", mark.reason)
            for metric, mark in result.marks.items()
        ),
        *(ScoreRecord(f"eval_{name}", value, "NUMERIC") for name, value in figures.items()),
    ]


async def evaluate(
    variants: Sequence[Variant], cases: Sequence[Conversation], *, run: str, concurrency: int = 4
) -> AsyncIterator[Result]:
    """Yield the result of every case for every variant, `concurrency` at a time."""
    slots = asyncio.Semaphore(concurrency)

    async def attempt(variant: Variant, case: Conversation) -> Result:
        async with slots:
            return await variant.attempt(case, run)

    tasks = [asyncio.create_task(attempt(variant, case)) for case in cases for variant in variants]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()


def _by_variant(results: Sequence[Result]) -> Mapping[str, list[Result]]:
    found = defaultdict[str, list[Result]](list)
    for result in results:
        found[result.variant].append(result)
    return found


def table_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    """Yield the rows of the table: a metric or figure, then its value for each variant."""
    variants = _by_variant(results)
    lists = variants.values()
    yield ["Metric", *variants]
    for name in (*METRICS, *FIGURES):
        cells = [_cell(name, found) for found in lists]
        if {*cells} != {"–"}:
            yield [name, *cells]
    passed = (sum(one.passed for one in found) for found in lists)
    failed = (sum(bool(one.failure) for one in found) for found in lists)
    costs = (sum(one.figures.get("cost_usd", 0.0) for one in found) for found in lists)
    yield ["all passed", *(f"{n} of {len(found)}" for n, found in zip(passed, lists, strict=True))]
    yield ["failed", *map(str, failed)]
    yield ["cost in all", *(f"${cost:.2f}" for cost in costs)]


def _cell(name: str, results: Sequence[Result]) -> str:
    """Return the mean of a metric or figure as text; a dash if it never applied."""
    if name in METRICS:
        scores = [result.marks[name].score for result in results if name in result.marks]
        return f"{fmean(scores):.0%} of {len(scores)}" if scores else "–"
    numbers = [result.figures[name] for result in results if name in result.figures]
    seconds = sorted(taken for result in results for taken in result.seconds)
    if seconds and name in PERCENTILES:
        numbers = [seconds[ceil(PERCENTILES[name] * len(seconds)) - 1]]
    return FIGURES[name].format(fmean(numbers)) if numbers else "–"


def worst(results: Sequence[Result]) -> list[Result]:
    """Return the cases that did not pass, the lowest scores first."""

    def rank(result: Result) -> tuple[bool, float]:
        scores = [mark.score for mark in result.marks.values()]
        return not result.failure, fmean(scores) if scores else 0.0

    return sorted((result for result in results if not result.passed), key=rank)[:MAX_WORST]


def worst_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the worst cases of each variant as lines of text, with the reasons."""
    for label, found in _by_variant(results).items():
        wrong = worst(found)
        yield from [f"\nWorst cases of {label}:"] if wrong else []
        for result in wrong:
            yield f"  {result.case.id}: {result.case.title}"
            for name, mark in result.marks.items():
                if not mark.passed:
                    yield f"      {name} {mark.score:.0%}: {clip(mark.reason, MAX_REASON_CHARS)}"


def report_data(run: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return the table and all results, as data that pydantic can write as JSON."""
    saved = ("variant", "case", "passed", "failure", "marks", "figures", "texts", "wine_ids")
    return {
        "run": run,
        "table": [*table_rows(results)],
        "results": [
            {name: getattr(result, name) for name in (*saved, "seconds")}
            | {"trace_ids": [trace.trace_id for trace in result.traces]}
            for result in results
        ],
    }

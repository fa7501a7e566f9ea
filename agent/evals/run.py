"""Answer the conversations of a dataset with every variant, mark the answers, and report them.

Results are yielded one by one, so that an interrupted run keeps its results so far.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil
from statistics import fmean
from typing import Any, Final

from agent.engine.errors import log_failure
from agent.engine.run import NOTHING_BILLED, Run
from agent.evals.dataset import EvalCase
from agent.evals.evaluators import METRICS, Mark, Observation, compute_marks
from agent.sommelier.queries import Catalogue
from agent.sommelier.service import Answerer
from agent.text import clip
from agent.tracing.records import ScoreRecord, TraceRecord, derive_trace_id
from agent.turn import Reply, StoredMessage, answer_turn

USER: Final = "eval"
MAX_WORST_CASES: Final = 10
"""The most cases that a report lists for each variant."""
MAX_REASON_CHARS: Final = 160
FIGURES: Final = {
    "by_model": "{:.0%} of turns",
    "seconds p50": "{:.1f} s",
    "seconds p95": "{:.1f} s",
    "requests": "{:.1f}",
    "tokens": "{:,.0f}",
    "cost_usd": "${:.4f}",
}
"""The formats of numbers that are reported in addition to marks: percentiles or averages."""
NOT_APPLICABLE: Final = "–"
"""What a table has instead of a number that no result has."""
PERCENTILES: Final = {"seconds p50": 0.50, "seconds p95": 0.95}


@dataclass(slots=True)
class Result:
    """The answers of a variant to a case (a conversation), with its marks and traces."""

    variant: str
    case: EvalCase
    marks: Mapping[str, Mark] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    """Numbers whose averages are reported in addition to the marks."""
    texts: tuple[str, ...] = ()
    wine_ids: tuple[str, ...] = ()
    traces: list[TraceRecord] = field(default_factory=list)
    failure: str = ""
    """The type of the exception that ended the conversation, or ""."""

    @property
    def has_passed(self) -> bool:
        """Return whether every metric that applies has a perfect score."""
        if self.failure:
            return False
        return all(mark.is_perfect for mark in self.marks.values())

    @property
    def cost_usd(self) -> float:
        """Return the cost of the conversation, or 0 if it failed."""
        return self.figures.get("cost_usd", 0.0)

    @property
    def seconds(self) -> list[float]:
        """Return the duration of every turn in seconds."""
        return [trace.root.seconds for trace in self.traces]


@dataclass(frozen=True, slots=True)
class Variant:
    """A sommelier with a model and a prompt. The label names both."""

    label: str
    answerer: Answerer
    catalogue: Catalogue
    run: Run

    async def attempt(self, case: EvalCase, title: str) -> Result:
        """Answer the messages of a case one after another, and mark the last answer.

        An exception makes only this case fail.
        """
        result = Result(self.label, case)
        try:
            await self._converse(result, title)
        except Exception as error:
            log_failure(f"case {case.id} failed", error)
            result.failure = type(error).__name__
            result.marks = {"answered": Mark(0, f"failed: {result.failure}")}
        if result.traces:
            last_trace = result.traces[-1]
            for score in _make_scores(result):
                last_trace.scores[score.name] = score
        return result

    async def _converse(self, result: Result, title: str) -> None:
        """Answer the messages of a case, and add the marks and figures to its result."""
        case = result.case
        history = list(case.history)
        replies = []
        billed = NOTHING_BILLED
        turns_by_model = 0
        for message in case.messages:
            reply = await self._answer(result, title, message, history)
            replies.append(reply)
            billed += reply.billed
            if _is_by_model(reply):
                turns_by_model += 1
            answer = StoredMessage(
                "assistant", reply.text, reply.wine_ids, answer=reply.stored_answer
            )
            history += [StoredMessage("user", message), answer]
        observation = await self._observe(case, replies)
        result.marks = compute_marks(observation, case)
        result.texts = observation.texts
        result.wine_ids = tuple(wine.id for wine in observation.wines)
        share_by_model = turns_by_model / len(replies)
        result.figures = {
            "by_model": share_by_model,
            "requests": billed.requests,
            "tokens": billed.tokens,
            "cost_usd": billed.cost_usd,
        }

    async def _answer(
        self,
        result: Result,
        title: str,
        message: str,
        history: Sequence[StoredMessage],
    ) -> Reply:
        """Answer one message, and add the trace of the turn to the result of its case."""
        case_id = result.case.id
        turn_number = len(result.traces)
        trace_id = derive_trace_id("eval", title, self.label, case_id, turn_number)
        trace = TraceRecord(trace_id, session=f"eval:{title}", user=USER)
        with trace.open_root(message) as span:
            span.update(metadata={"case": case_id, "variant": self.label})
            result.traces.append(trace)
            run_of_turn = replace(self.run.for_turn(), span=span)

            async def make_reply(run: Run) -> Reply:
                return await self.answerer.answer(message, run, history=history)

            reply = await answer_turn(run_of_turn, make_reply)
        # As the runner of the bot does, which is not used here.
        return replace(reply, billed=run_of_turn.usage.billed)

    async def _observe(self, case: EvalCase, replies: Sequence[Reply]) -> Observation:
        """Return what is marked: the last reply, its wines, and those of the reply before it."""
        *earlier_replies, last_reply = replies
        shown_before: list[tuple[str, ...]] = []  # the ids of the wines of each answer
        for message in case.history:
            if message.role == "assistant":
                shown_before.append(message.wine_ids)
        for reply in earlier_replies:
            shown_before.append(reply.wine_ids)
        previous_ids: tuple[str, ...] = ()
        if shown_before:
            previous_ids = shown_before[-1]
        wines = await self.catalogue.get(last_reply.wine_ids)
        previous_wines = await self.catalogue.get(previous_ids)
        unknown_ids = set(last_reply.wine_ids)
        unknown_ids.difference_update(wine.id for wine in wines)
        return Observation(
            reply=last_reply,
            texts=tuple(reply.full_text for reply in replies),
            wines=tuple(wines),
            unknown_ids=tuple(unknown_ids),
            previous_wines=tuple(previous_wines),
            earlier_ids=frozenset(chain(*shown_before)),
        )


def _is_by_model(reply: Reply) -> bool:
    """Return whether a model gave an answer that was shown, at least in part."""
    has_answered = reply.outcome in ("answered", "salvaged")
    return has_answered and reply.billed.requests > 0


def _make_scores(result: Result) -> Iterator[ScoreRecord]:
    """Yield the scores of a case, which are stored in the trace of its last turn."""
    for metric, mark in result.marks.items():
        yield ScoreRecord(f"eval_{metric}", mark.score, "NUMERIC", mark.reason)
    seconds_of_turn = fmean(result.seconds)
    yield ScoreRecord("eval_seconds", seconds_of_turn, "NUMERIC")
    yield ScoreRecord("eval_cost_usd", result.cost_usd, "NUMERIC")


async def evaluate(
    variants: Sequence[Variant],
    cases: Sequence[EvalCase],
    *,
    title: str,
    concurrency: int = 4,
) -> AsyncIterator[Result]:
    """Yield the results of all cases for all variants of the run with this `title`."""
    semaphore = asyncio.Semaphore(concurrency)

    async def attempt(variant: Variant, case: EvalCase) -> Result:
        async with semaphore:
            return await variant.attempt(case, title)

    tasks: list[asyncio.Task[Result]] = []
    for case in cases:
        for variant in variants:
            task = asyncio.create_task(attempt(variant, case))
            tasks.append(task)
    try:
        for completed in asyncio.as_completed(tasks):
            yield await completed
    finally:
        for task in tasks:
            task.cancel()


def _group_by_variant(results: Sequence[Result]) -> Mapping[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        group = groups.setdefault(result.variant, [])
        group.append(result)
    return groups


def build_table_rows(results: Sequence[Result]) -> Iterator[list[str]]:
    """Yield the rows of a table: a header, then a metric and its value for each variant."""
    by_variant = _group_by_variant(results)
    groups = by_variant.values()
    yield ["Metric", *by_variant]
    for name in (*METRICS, *FIGURES):
        cells = [_format_cell(name, group) for group in groups]
        is_applicable = any(cell != NOT_APPLICABLE for cell in cells)
        if is_applicable:
            yield [name, *cells]
    passed_cells = []
    failed_cells = []
    cost_cells = []
    for group in groups:
        passed_count = sum(result.has_passed for result in group)
        passed_cells.append(f"{passed_count} of {len(group)}")
        failed_count = sum(bool(result.failure) for result in group)
        failed_cells.append(str(failed_count))
        cost = sum(result.cost_usd for result in group)
        cost_cells.append(f"${cost:.2f}")
    yield ["all passed", *passed_cells]
    yield ["failed", *failed_cells]
    yield ["cost in all", *cost_cells]


def _format_cell(name: str, results: Sequence[Result]) -> str:
    """Return the mean or percentile of a metric or figure, or a dash if it never applied."""
    numbers = []
    for result in results:
        if name in PERCENTILES:
            numbers += result.seconds
        elif name in result.marks:
            numbers.append(result.marks[name].score)
        elif name in result.figures:
            numbers.append(result.figures[name])
    if not numbers:
        return NOT_APPLICABLE
    if name in METRICS:
        return f"{fmean(numbers):.0%} of {len(numbers)}"
    if name in PERCENTILES:
        rank = ceil(PERCENTILES[name] * len(numbers))
        figure = sorted(numbers)[rank - 1]
    else:
        figure = fmean(numbers)
    return FIGURES[name].format(figure)


def find_worst(results: Sequence[Result]) -> list[Result]:
    """Return the cases that did not pass: failures first, then the lowest scores."""

    def mean_score(result: Result) -> float:
        if result.failure or not result.marks:
            return 0.0
        scores = [mark.score for mark in result.marks.values()]
        return fmean(scores)

    def has_succeeded(result: Result) -> bool:
        return not result.failure

    not_passed = [result for result in results if not result.has_passed]
    not_passed.sort(key=mean_score)
    # Sorting is stable, so the order by scores stays among failures and among the others.
    not_passed.sort(key=has_succeeded)
    return not_passed[:MAX_WORST_CASES]


def describe_worst(results: Sequence[Result]) -> Iterator[str]:
    """Yield lines of text with the worst cases of each variant and the reasons."""
    for label, group in _group_by_variant(results).items():
        worst_results = find_worst(group)
        if worst_results:
            yield f"\nWorst cases of {label}:"
        for result in worst_results:
            messages = " / ".join(result.case.messages)
            yield f"  {result.case.id}: {messages}"
            for metric, mark in result.marks.items():
                if mark.is_perfect:
                    continue
                reason = clip(mark.reason, MAX_REASON_CHARS)
                yield f"      {metric} {mark.score:.0%}: {reason}"


def build_report_data(title: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return the table and all results as data for JSON."""
    return {
        "run": title,
        "table": list(build_table_rows(results)),
        "results": [_build_result_data(result) for result in results],
    }


def _build_result_data(result: Result) -> dict[str, Any]:
    return {
        "variant": result.variant,
        "case": result.case,
        "passed": result.has_passed,
        "failure": result.failure,
        "marks": result.marks,
        "figures": result.figures,
        "texts": result.texts,
        "wine_ids": result.wine_ids,
        "seconds": result.seconds,
        "trace_ids": [trace.trace_id for trace in result.traces],
    }

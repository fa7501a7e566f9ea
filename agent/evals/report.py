"""Report the results of a run: one table with a column for every variant, the worst cases, JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

from agent.engine.feedback import clip
from agent.evals.evaluators import METRICS
from agent.evals.quotes import THRESHOLDS
from agent.evals.run import Result
from agent.numbers import percentile

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
NAMES: Final = tuple(dict.fromkeys([*METRICS, *THRESHOLDS, *FIGURES]))


@dataclass(frozen=True, slots=True)
class Average:
    """The mean score of a metric, from 0 to 1, over the `items` that it applies to."""

    score: float
    items: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a variant; `below` are the thresholds for quotes that it does not reach."""

    label: str
    items: int
    passed: int
    failed: int
    metrics: Mapping[str, Average]
    figures: Mapping[str, float]
    below: Sequence[str]
    total_cost_usd: float

    def cell(self, name: str) -> str:
        """Return the value of a metric or figure as text; empty if it never applied."""
        if average := self.metrics.get(name):
            text = f"{average.score:.0%} of {average.items}"
        elif name in self.figures:
            text = FIGURES[name].format(self.figures[name])
        else:
            return ""
        return f"{text} ✗" if name in self.below else text


def summaries(results: Sequence[Result]) -> list[Summary]:
    """Sum up each variant, in the order they first came."""
    labels = dict.fromkeys(result.variant for result in results)
    return [
        _summary(label, [result for result in results if result.variant == label])
        for label in labels
    ]


def _summary(label: str, results: Sequence[Result]) -> Summary:
    outcomes = [result.outcome for result in results]
    seconds = [taken for outcome in outcomes for taken in outcome.seconds]
    metrics, figures = dict[str, Average](), dict[str, float]()
    for name in NAMES:
        if scores := [found.marks[name].score for found in outcomes if name in found.marks]:
            metrics[name] = Average(fmean(scores), len(scores))
        if numbers := [found.figures[name] for found in outcomes if name in found.figures]:
            figures[name] = fmean(numbers)
    figures |= {f"seconds p{share}": percentile(seconds, share / 100) for share in (50, 95)}
    values = figures | {name: average.score for name, average in metrics.items()}
    below = [
        name
        for name, (_, passes, limit) in THRESHOLDS.items()
        if not passes(values.get(name, 0.0), limit)
    ]
    return Summary(
        label=label,
        items=len(results),
        passed=sum(result.passed for result in results),
        failed=sum(bool(result.failure) for result in results),
        metrics=metrics,
        figures=figures,
        below=[] if THRESHOLDS.keys().isdisjoint(metrics) else below,
        total_cost_usd=sum(outcome.figures.get("cost_usd", 0.0) for outcome in outcomes),
    )


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """Yield the rows of the table: a metric or figure, then its value for each variant.

    The limit that a metric of quotes has to pass is told beside its name.
    """
    yield ["Metric", *(summary.label for summary in found)]
    is_quotes = any(not THRESHOLDS.keys().isdisjoint(summary.metrics) for summary in found)
    for name in NAMES:
        cells = [summary.cell(name) for summary in found]
        if any(cells):
            limit = f" {THRESHOLDS[name][0]}" if is_quotes and name in THRESHOLDS else ""
            yield [name + limit, *(cell or "–" for cell in cells)]
    yield ["all passed", *(f"{summary.passed} of {summary.items}" for summary in found)]
    yield ["failed", *(str(summary.failed) for summary in found)]
    yield ["cost in all", *(f"${summary.total_cost_usd:.2f}" for summary in found)]


def worst(results: Iterable[Result], variant: str) -> list[Result]:
    """Return the cases of a variant that did not pass, the lowest scores first."""

    def rank(result: Result) -> tuple[bool, float]:
        scores = [mark.score for mark in result.outcome.marks.values()]
        return not result.failure, fmean(scores) if scores else 0.0

    wrong = [result for result in results if result.variant == variant and not result.passed]
    return sorted(wrong, key=rank)[:MAX_WORST]


def worst_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the worst cases of each variant as lines of text, with the reasons."""
    for label in dict.fromkeys(result.variant for result in results):
        wrong = worst(results, label)
        yield from [f"\nWorst cases of {label}:"] if wrong else []
        for result in wrong:
            yield f"  {result.case.id}: {result.case.title}"
            for name, mark in result.outcome.marks.items():
                if not mark.passed:
                    yield f"      {name} {mark.score:.0%}: {clip(mark.reason, MAX_REASON_CHARS)}"


def as_json(run: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return all results, as plain data."""
    return {
        "run": run,
        "variants": [asdict(summary) for summary in summaries(results)],
        "results": [
            {
                "variant": result.variant,
                "case": result.case.model_dump(mode="json", exclude_defaults=True),
                "passed": result.passed,
                "failure": result.failure,
                "trace_ids": [trace.trace_id for trace in result.traces],
                **asdict(result.outcome),
            }
            for result in results
        ],
    }

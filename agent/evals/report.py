"""Report the results of a run: one table with a column for every variant, the worst cases, JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean
from typing import Any, Final

from agent.evals.evaluators import METRICS
from agent.evals.run import Result
from agent.text import clip

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


@dataclass(frozen=True, slots=True)
class Average:
    """The mean score of a metric, from 0 to 1, over the `items` that it applies to."""

    score: float
    items: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a variant."""

    label: str
    items: int
    passed: int
    failed: int
    metrics: Mapping[str, Average]
    figures: Mapping[str, float]
    total_cost_usd: float

    def cell(self, name: str) -> str:
        """Return the value of a metric or figure as text; a dash if it never applied."""
        if average := self.metrics.get(name):
            return f"{average.score:.0%} of {average.items}"
        return FIGURES[name].format(self.figures[name]) if name in self.figures else "–"


def summaries(results: Sequence[Result]) -> list[Summary]:
    """Sum up each variant, in the order they first came."""
    labels = dict.fromkeys(result.variant for result in results)
    return [
        _summary(label, [result for result in results if result.variant == label])
        for label in labels
    ]


def _summary(label: str, results: Sequence[Result]) -> Summary:
    seconds = sorted(taken for result in results for taken in result.seconds) or [0.0]
    metrics = dict[str, Average]()
    figures = {f"seconds p{p}": seconds[ceil(p * len(seconds) / 100) - 1] for p in (50, 95)}
    for name in METRICS:
        if scores := [result.marks[name].score for result in results if name in result.marks]:
            metrics[name] = Average(fmean(scores), len(scores))
    for name in FIGURES:
        if numbers := [result.figures[name] for result in results if name in result.figures]:
            figures[name] = fmean(numbers)
    return Summary(
        label=label,
        items=len(results),
        passed=sum(result.passed for result in results),
        failed=sum(bool(result.failure) for result in results),
        metrics=metrics,
        figures=figures,
        total_cost_usd=sum(result.figures.get("cost_usd", 0.0) for result in results),
    )


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """Yield the rows of the table: a metric or figure, then its value for each variant."""
    yield ["Metric", *(summary.label for summary in found)]
    for name in (*METRICS, *FIGURES):
        cells = [summary.cell(name) for summary in found]
        if {*cells} != {"–"}:
            yield [name, *cells]
    yield ["all passed", *(f"{summary.passed} of {summary.items}" for summary in found)]
    yield ["failed", *(str(summary.failed) for summary in found)]
    yield ["cost in all", *(f"${summary.total_cost_usd:.2f}" for summary in found)]


def worst(results: Iterable[Result], variant: str) -> list[Result]:
    """Return the cases of a variant that did not pass, the lowest scores first."""

    def rank(result: Result) -> tuple[bool, float]:
        scores = [mark.score for mark in result.marks.values()]
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
            for name, mark in result.marks.items():
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
                "marks": {name: asdict(mark) for name, mark in result.marks.items()},
                "figures": result.figures,
                "texts": result.texts,
                "wine_ids": result.wine_ids,
                "seconds": result.seconds,
            }
            for result in results
        ],
    }

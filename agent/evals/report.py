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
    """The results of a variant."""

    label: str
    items: int
    passed: int
    failed: int
    metrics: Mapping[str, Average]
    figures: Mapping[str, float]
    total_cost_usd: float

    @property
    def quotes(self) -> bool:
        """Return whether this is a model that quotes, which has thresholds to pass."""
        return not THRESHOLDS.keys().isdisjoint(self.metrics)

    @property
    def below(self) -> list[str]:
        """Return the metrics of quotes that do not pass, those that never applied included."""
        scores = {name: average.score for name, average in self.metrics.items()}
        values = {**self.figures, **scores}
        return [
            name
            for name, (_, passes, limit) in THRESHOLDS.items()
            if not passes(values.get(name, 0.0), limit)
        ]


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
    for share in (50, 95):
        figures[f"seconds p{share}"] = percentile(seconds, share / 100)
    return Summary(
        label=label,
        items=len(results),
        passed=sum(result.passed for result in results),
        failed=sum(bool(result.failure) for result in results),
        metrics=metrics,
        figures=figures,
        total_cost_usd=sum(outcome.figures.get("cost_usd", 0.0) for outcome in outcomes),
    )


def columns(found: Sequence[Summary]) -> list[str]:
    """Return the columns of the table; thresholds have one where there are any."""
    thresholds = ["Threshold"] if any(summary.quotes for summary in found) else []
    return ["Metric", *thresholds, *(summary.label for summary in found)]


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """Yield the rows of the table: a metric or figure, then its value for each variant."""
    has_thresholds = any(summary.quotes for summary in found)
    for name in NAMES:
        cells = [_cell(summary, name) for summary in found]
        if any(cells):
            threshold = [THRESHOLDS[name][0] if name in THRESHOLDS else ""]
            yield [name, *(threshold if has_thresholds else []), *(cell or "–" for cell in cells)]
    blank = [""] if has_thresholds else []
    yield ["all passed", *blank, *(f"{summary.passed} of {summary.items}" for summary in found)]
    yield ["failed", *blank, *(str(summary.failed) for summary in found)]
    yield ["cost in all", *blank, *(f"${summary.total_cost_usd:.2f}" for summary in found)]


def _cell(summary: Summary, name: str) -> str:
    if average := summary.metrics.get(name):
        text = f"{average.score:.0%} of {average.items}"
    elif name in summary.figures:
        text = FIGURES[name].format(summary.figures[name])
    else:
        return ""
    return f"{text} ✗" if summary.quotes and name in summary.below else text


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
        "variants": [
            asdict(summary) | ({"below": summary.below} if summary.quotes else {})
            for summary in summaries(results)
        ],
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

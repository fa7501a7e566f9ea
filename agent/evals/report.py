"""Report the results of a run: one table with a column for every variant, the worst cases, JSON."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
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
PERCENTILES: Final = {"seconds p50": 0.50, "seconds p95": 0.95}


def by_variant(results: Sequence[Result]) -> Mapping[str, list[Result]]:
    """Return the results of each variant, in the order the variants first came."""
    found = defaultdict[str, list[Result]](list)
    for result in results:
        found[result.variant].append(result)
    return found


def rows(results: Sequence[Result]) -> Iterator[list[str]]:
    """Yield the rows of the table: a metric or figure, then its value for each variant."""
    variants = by_variant(results)
    lists = variants.values()
    yield ["Metric", *variants]
    for name in (*METRICS, *FIGURES):
        cells = [_cell(name, found) for found in lists]
        if {*cells} != {"–"}:
            yield [name, *cells]
    yield [
        "all passed",
        *(f"{sum(one.passed for one in found)} of {len(found)}" for found in lists),
    ]
    yield ["failed", *(str(sum(bool(one.failure) for one in found)) for found in lists)]
    yield ["cost in all", *(f"${sum(map(_cost, found)):.2f}" for found in lists)]


def _cost(result: Result) -> float:
    return result.figures.get("cost_usd", 0.0)


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
    for label, found in by_variant(results).items():
        wrong = worst(found)
        yield from [f"\nWorst cases of {label}:"] if wrong else []
        for result in wrong:
            yield f"  {result.case.id}: {result.case.title}"
            for name, mark in result.marks.items():
                if not mark.passed:
                    yield f"      {name} {mark.score:.0%}: {clip(mark.reason, MAX_REASON_CHARS)}"


def as_json(run: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return the table and all results, as plain data."""
    return {
        "run": run,
        "table": [*rows(results)],
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

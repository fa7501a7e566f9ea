"""The evaluation of quotes as an operator reads it: Markdown, and JSON for machines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from agent.evals.quotes_run import Run, Score, mean

DAYS: Final = 30
UNPRICED: Final = "$0: a server of one's own, and no price for its model in `LLM_PRICES`."


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, and the threshold it must pass, as words and as a rule."""

    key: str
    name: str
    threshold: str
    passes: Callable[[float], bool]
    share: bool = True

    def shown(self, value: float) -> str:
        """A value as the table shows it: per cent, or seconds."""
        return f"{value:.0%}" if self.share else f"{value:.1f} s"


METRICS: Final = (
    Metric("json_parse", "JSON parse", "100%", lambda value: value >= 1),
    Metric("schema", "Schema compliance", "> 95%", lambda value: value > 0.95),
    Metric("verbatim", "Verbatim extraction", "> 80%", lambda value: value > 0.80),
    Metric("attribution", "Source attribution", "> 95%", lambda value: value > 0.95),
    Metric("negative", "Negative queries", "> 90%", lambda value: value > 0.90),
    Metric("latency_p50", "Latency p50", "< 5 s", lambda value: value < 5, share=False),
    Metric("latency_p95", "Latency p95", "< 10 s", lambda value: value < 10, share=False),
)
"""The seven metrics, with the thresholds of the research on structured snippets."""

SCENARIOS: Final = ((10, 5), (10, 20), (50, 20), (100, 20))
"""People, and queries a day of each: what a month is projected for."""


def failed_metrics(run: Run) -> list[str]:
    """The keys of the metrics that a run does not pass."""
    values = run.values
    return [metric.key for metric in METRICS if not metric.passes(values[metric.key])]


def monthly_cost(run: Run, people: int, queries_a_day: int) -> float:
    """US dollars for 30 days."""
    return run.cost_per_query * people * queries_a_day * DAYS


def as_json(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that was measured, as plain data."""
    return {
        "thresholds": {metric.key: metric.threshold for metric in METRICS},
        "runs": [_run_json(run) for run in runs],
    }


def _run_json(run: Run) -> dict[str, Any]:
    failed = failed_metrics(run)
    return {
        "label": run.label,
        "model": run.model,
        "metrics": run.values,
        "passed": len(METRICS) - len(failed),
        "failed": failed,
        "tokens": _tokens(run),
        "snippets_per_query": run.snippets_per_query,
        "cost_per_query_usd": run.cost_per_query,
        "monthly_cost_usd": {
            f"{people} x {queries}": monthly_cost(run, people, queries)
            for people, queries in SCENARIOS
        },
        "questions": [_score_json(score) for score in run.scores],
    }


def _score_json(score: Score) -> dict[str, Any]:
    data = asdict(score)
    return data | {"question": score.question.model_dump(mode="json")}


def _tokens(run: Run) -> dict[str, float]:
    asked = [score for score in run.scores if score.asked]
    return {
        "prompt": mean([score.usage.prompt_tokens for score in asked]),
        "completion": mean([score.usage.completion_tokens for score in asked]),
    }


def as_markdown(runs: Sequence[Run]) -> str:
    """The tables: metrics against thresholds, cost, projections, and what went wrong where."""
    labels = [run.label for run in runs]
    sections = [
        "# Evaluation of quotes",
        _table(["Metric", "Threshold", *labels], _metric_rows(runs)),
        "## Cost",
        _table(["Model", "Prompt tokens", "Completion tokens", "Cost per query"], _costs(runs)),
        *([UNPRICED] if any(run.cost_per_query == 0 for run in runs) else []),
        "## A month",
        _table(["Scenario", *labels], _projections(runs)),
        "## What went wrong",
        "\n".join(_problems(runs)) or "Nothing.",
    ]
    return "\n\n".join(sections) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _metric_rows(runs: Sequence[Run]) -> Iterable[list[str]]:
    values = [run.values for run in runs]
    for metric in METRICS:
        cells = [_marked(metric, each[metric.key]) for each in values]
        yield [metric.name, metric.threshold, *cells]
    kept = [mean([s.retrieved for s in run.scores if s.retrieved is not None]) for run in runs]
    yield ["Known sources retrieved", "", *(f"{share:.0%}" for share in kept)]
    yield ["Snippets per query", "", *(f"{run.snippets_per_query:.1f}" for run in runs)]
    passed = [len(METRICS) - len(failed_metrics(run)) for run in runs]
    yield ["Passed", "", *(f"{count}/{len(METRICS)}" for count in passed)]


def _marked(metric: Metric, value: float) -> str:
    shown = metric.shown(value)
    return shown if metric.passes(value) else f"**{shown} ✗**"


def _costs(runs: Sequence[Run]) -> Iterable[list[str]]:
    for run in runs:
        tokens = _tokens(run)
        yield [
            f"{run.label} ({run.model})",
            f"{tokens['prompt']:,.0f}",
            f"{tokens['completion']:,.0f}",
            f"${run.cost_per_query:.4f}",
        ]


def _projections(runs: Sequence[Run]) -> Iterable[list[str]]:
    for people, queries in SCENARIOS:
        costs = [f"${monthly_cost(run, people, queries):,.2f}" for run in runs]
        yield [f"{people} people × {queries} queries a day", *costs]


def _problems(runs: Sequence[Run]) -> Iterable[str]:
    for run in runs:
        for score in run.scores:
            if score.problem:
                yield f"- {run.label}, {score.question.id}: {score.problem}"

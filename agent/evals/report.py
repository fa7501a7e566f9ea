"""A run as an operator reads it: a table, bars, the worst conversations; Markdown, JSON, SVG."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from agent.evals.dataset import as_item
from agent.evals.evaluators import EVALUATORS
from agent.evals.quote_scores import mean, percentile
from agent.evals.run import Result

WORST: Final = 10
LONGEST_REASON: Final = 160
BAR: Final = 30


@dataclass(frozen=True, slots=True)
class Average:
    """The mean score of a metric, from 0 to 1, over the `items` that it applies to."""

    score: float
    items: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a variant came to. Times are seconds a turn, money is US dollars.

    `tokens` and `cost_usd` are averages a conversation, `retries` of a last turn.
    """

    label: str
    items: int
    passed: int
    failed: int
    metrics: Mapping[str, Average]
    outcomes: Mapping[str, int]
    retries: float
    seconds_p50: float
    seconds_p95: float
    tokens: float
    cost_usd: float

    @property
    def total_cost_usd(self) -> float:
        """What all conversations cost, in US dollars."""
        return self.cost_usd * self.items


def summaries(results: Iterable[Result]) -> list[Summary]:
    """One for each variant, in the order they first came."""
    by_variant: dict[str, list[Result]] = {}
    for result in results:
        by_variant.setdefault(result.variant, []).append(result)
    return [_summary(label, found) for label, found in by_variant.items()]


def _summary(label: str, results: Sequence[Result]) -> Summary:
    observed = [result.observed for result in results if result.observed]
    seconds = [each for one in observed for each in one.seconds]
    return Summary(
        label=label,
        items=len(results),
        passed=sum(result.passed for result in results),
        failed=sum(bool(result.failure) for result in results),
        metrics={name: each for name in EVALUATORS if (each := _average(name, results))},
        outcomes=dict(Counter(one.outcome for one in observed)),
        retries=mean([one.retries for one in observed]),
        seconds_p50=percentile(seconds, 0.50),
        seconds_p95=percentile(seconds, 0.95),
        tokens=sum(one.tokens for one in observed) / len(results),
        cost_usd=sum(one.cost_usd for one in observed) / len(results),
    )


def _average(name: str, results: Sequence[Result]) -> Average | None:
    scores = [result.marks[name].score for result in results if name in result.marks]
    return Average(mean(scores), len(scores)) if scores else None


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """The table: the name of a metric, then its value for each variant."""
    for name in EVALUATORS:
        averages = [summary.metrics.get(name) for summary in found]
        if any(averages):
            cells = [f"{each.score:.0%} of {each.items}" if each else "–" for each in averages]
            yield [name, *cells]
    yield ["all of these", *(f"{each.passed} of {each.items}" for each in found)]
    yield ["failed", *(str(each.failed) for each in found)]
    yield ["retries", *(f"{each.retries:.2f}" for each in found)]
    yield ["latency p50", *(_seconds(each.seconds_p50) for each in found)]
    yield ["latency p95", *(_seconds(each.seconds_p95) for each in found)]
    yield ["tokens", *(f"{each.tokens:,.0f}" for each in found)]
    yield ["cost", *(f"${each.cost_usd:.4f}" for each in found)]
    yield ["cost in all", *(f"${each.total_cost_usd:.2f}" for each in found)]


def bars(found: Sequence[Summary]) -> Iterator[str]:
    """The metrics as lines of text: a bar for each variant.

    Latency and cost of several variants stand below, each beside the highest.
    """
    width = max((len(each.label) for each in found), default=0)

    def drawn(
        title: str, values: Mapping[str, float], longest: float, said: Callable[[float], str]
    ) -> Iterator[str]:
        for position, (label, value) in enumerate(values.items()):
            filled = round(value / longest * BAR) if longest else 0
            bar = "█" * filled + "░" * (BAR - filled)
            yield f"{title if position == 0 else '':<10} {label:<{width}} {bar} {said(value)}"

    for name in EVALUATORS:
        averages = {each.label: each.metrics[name].score for each in found if name in each.metrics}
        yield from drawn(name, averages, 1.0, "{:.0%}".format)
    if len(found) > 1:
        latency = {each.label: each.seconds_p50 for each in found}
        yield from drawn("latency", latency, max(latency.values()), _seconds)
        cost = {each.label: each.cost_usd for each in found}
        yield from drawn("cost", cost, max(cost.values()), "${:.4f}".format)


def worst(results: Iterable[Result], variant: str, limit: int = WORST) -> list[Result]:
    """The conversations of a variant that did not pass, the lowest scores first."""
    wrong = [each for each in results if each.variant == variant and not each.passed]
    wrong.sort(key=lambda each: (not each.failure, _mean_mark(each), each.conversation.id))
    return wrong[:limit]


def reasons(result: Result) -> list[str]:
    """What kept a conversation from passing: a metric and its reason each."""
    return [
        f"{name} {mark.score:.0%}: {_cut(mark.reason)}"
        for name, mark in result.marks.items()
        if not mark.passed
    ]


def unanswered(results: Iterable[Result]) -> Iterator[str]:
    """Of each variant whose model gave no answer at all: what kept it from that, in a line."""
    by_variant: dict[str, list[str]] = {}
    for each in results:
        error = each.observed.model_error if each.observed else ""
        by_variant.setdefault(each.variant, []).append(error)
    for label, errors in by_variant.items():
        if all(errors):
            kinds = ", ".join(dict.fromkeys(errors))
            yield f"{label} never answered ({kinds}): check the model's name and OPENAI_BASE_URL."


def as_markdown(run: str, results: Sequence[Result], *, plot: str = "") -> str:
    """The table and what went wrong; `plot` is the name of the picture to show, if there is one."""
    found = summaries(results)
    lines = [f"# Evaluation {run}", "", *_table(["Metric", *(s.label for s in found)], rows(found))]
    if plot:
        lines += ["", f"![Scores by metric and variant]({plot})"]
    for summary in found:
        lines += ["", f"## What went wrong: {summary.label}", ""]
        wrong = worst(results, summary.label, limit=summary.items)
        lines += [f"- `{each.conversation.id}` {'; '.join(reasons(each))}" for each in wrong]
        lines += [] if wrong else ["Nothing."]
    return "\n".join(lines) + "\n"


def as_json(run: str, results: Sequence[Result]) -> dict[str, Any]:
    """Everything that was measured, as plain data."""
    return {
        "run": run,
        "variants": [asdict(summary) for summary in summaries(results)],
        "results": [_result_json(result) for result in results],
    }


def _result_json(result: Result) -> dict[str, Any]:
    seen = result.observed
    return {
        "variant": result.variant,
        "conversation": as_item(result.conversation),
        "passed": result.passed,
        "failure": result.failure,
        "marks": {name: asdict(mark) for name, mark in result.marks.items()},
        "trace_ids": [trace.trace_id for trace in result.traces],
        "answers": list(seen.texts) if seen else [],
        "wine_ids": [wine.id for wine in seen.wines] if seen else [],
        "outcome": seen.outcome if seen else None,
        "retries": seen.retries if seen else 0,
        "requests": seen.requests if seen else 0,
        "seconds": list(seen.seconds) if seen else [],
        "tokens": seen.tokens if seen else 0,
        "cost_usd": seen.cost_usd if seen else 0.0,
    }


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *body):
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _mean_mark(result: Result) -> float:
    return mean([mark.score for mark in result.marks.values()])


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _cut(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"

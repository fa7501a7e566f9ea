"""A run as an operator reads it: a table and the worst cases; Markdown, JSON, transcripts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import ge, gt, lt
from statistics import fmean
from typing import Any, Final

from agent.engine.feedback import clip
from agent.evals.dataset import Conversation, as_item
from agent.evals.evaluators import EVALUATORS
from agent.evals.run import Result
from agent.repositories import percentile

WORST: Final = 10
LONGEST_REASON: Final = 160
DAYS: Final = 30
SCENARIOS: Final = ((10, 5), (10, 20), (50, 20), (100, 20))
"""People, and queries a day of each: what a month is projected for."""
UNPRICED: Final = "$0 is what a model costs that is free, or whose price is not in `LLM_PRICES`."


QUOTES: Final[Mapping[str, tuple[str, Callable[[float, float], bool], float]]] = {
    "json_parse": ("100%", ge, 1),
    "schema": ("> 95%", gt, 0.95),
    "verbatim": ("> 80%", gt, 0.80),
    "attribution": ("> 95%", gt, 0.95),
    "negative": ("> 90%", gt, 0.90),
    "latency p50": ("< 5 s", lt, 5),
    "latency p95": ("< 10 s", lt, 10),
}
"""What a model that quotes must pass, by the research on structured snippets: as a table says it,
and as a rule over a share or over seconds."""

FIGURES: Final[Mapping[str, Callable[[float], str]]] = {
    "retries": "{:.2f}".format,
    "retrieved": "{:.0%}".format,
    "snippets": "{:.1f}".format,
    "tokens": "{:,.0f}".format,
    "prompt_tokens": "{:,.0f}".format,
    "completion_tokens": "{:,.0f}".format,
    "cost_usd": "${:.4f}".format,
}
"""How numbers that are no scores are shown."""


METRICS: Final = (*EVALUATORS, *QUOTES)


@dataclass(frozen=True, slots=True)
class Average:
    """The mean score of a metric, from 0 to 1, over the `items` that it applies to."""

    score: float
    items: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a variant came to; `latency` are seconds a turn, `figures` averages of no scores."""

    label: str
    items: int
    passed: int
    failed: int
    metrics: Mapping[str, Average]
    outcomes: Mapping[str, int]
    figures: Mapping[str, float]
    latency: Mapping[str, float]
    total_cost_usd: float

    @property
    def cost_usd(self) -> float:
        """US dollars a case."""
        return self.figures.get("cost_usd", 0.0)

    @property
    def is_of_quotes(self) -> bool:
        """Whether this is a model that was asked for quotes, which has thresholds to pass."""
        return not QUOTES.keys().isdisjoint(self.metrics)

    @property
    def below(self) -> list[str]:
        """The metrics of quotes that do not pass; what never applied does not."""
        shares = {name: each.score for name, each in self.metrics.items()}
        values = shares | dict(self.latency)
        return [
            name
            for name, (_, passes, limit) in QUOTES.items()
            if not passes(values.get(name, 0.0), limit)
        ]

    def monthly_cost_usd(self, people: int, queries_a_day: int) -> float:
        """Project US dollars for 30 days."""
        return self.cost_usd * people * queries_a_day * DAYS


def summaries(results: Iterable[Result]) -> list[Summary]:
    """Sum up each variant, in the order they first came."""
    by_variant: dict[str, list[Result]] = {}
    for result in results:
        by_variant.setdefault(result.variant, []).append(result)
    return [_summary(label, found) for label, found in by_variant.items()]


def _summary(label: str, results: Sequence[Result]) -> Summary:
    given = [result.outcome for result in results]
    seconds = [each for one in given for each in one.seconds]
    averages = {name: _average(name, results) for name in METRICS}
    figures = {
        name: [one.figures[name] for one in given if name in one.figures] for name in FIGURES
    }
    return Summary(
        label=label,
        items=len(results),
        passed=sum(result.passed for result in results),
        failed=sum(bool(result.failure) for result in results),
        metrics={name: each for name, each in averages.items() if each},
        outcomes=dict(Counter(one.outcome for one in given if one.outcome)),
        figures={name: fmean(values) for name, values in figures.items() if values},
        latency={f"latency p{each}": percentile(seconds, each / 100) for each in (50, 95)},
        total_cost_usd=sum(one.figures.get("cost_usd", 0.0) for one in given),
    )


def _average(name: str, results: Sequence[Result]) -> Average | None:
    scores = [result.marks[name].score for result in results if name in result.marks]
    return Average(fmean(scores), len(scores)) if scores else None


def head(found: Sequence[Summary]) -> list[str]:
    """Return the columns of the table; thresholds have one where there are any."""
    thresholds = ["Threshold"] if any(each.is_of_quotes for each in found) else []
    return ["Metric", *thresholds, *(each.label for each in found)]


def rows(found: Sequence[Summary]) -> Iterator[list[str]]:
    """Yield the table: the name of a metric or figure, then its value for each variant."""
    is_of_quotes = any(each.is_of_quotes for each in found)
    for name, cells in _values(found):
        if any(cells):
            threshold = [QUOTES[name][0] if name in QUOTES else ""] if is_of_quotes else []
            yield [name, *threshold, *(cell or "–" for cell in cells)]


def _values(found: Sequence[Summary]) -> Iterator[tuple[str, list[str]]]:
    for name in METRICS:
        averages = [(each, each.metrics.get(name)) for each in found]
        cells = [_marked(s, name, f"{a.score:.0%} of {a.items}") if a else "" for s, a in averages]
        yield name, cells
    yield "all of these", [f"{each.passed} of {each.items}" for each in found]
    yield "failed", [str(each.failed) for each in found]
    for name in ("latency p50", "latency p95"):
        yield name, [_marked(each, name, _seconds(each.latency[name])) for each in found]
    for name, shown in FIGURES.items():
        yield name, [shown(each.figures[name]) if name in each.figures else "" for each in found]
    yield "cost in all", [f"${each.total_cost_usd:.2f}" for each in found]
    if any(each.is_of_quotes for each in found):
        for scenario in SCENARIOS:
            cost = [f"${each.monthly_cost_usd(*scenario):,.2f}" for each in found]
            yield "a month: {} people × {} queries a day".format(*scenario), cost


def _marked(summary: Summary, name: str, value: str) -> str:
    return f"{value} ✗" if summary.is_of_quotes and name in summary.below else value


def worst(results: Iterable[Result], variant: str, limit: int = WORST) -> list[Result]:
    """Return the cases of a variant that did not pass, the lowest scores first."""
    wrong = [each for each in results if each.variant == variant and not each.passed]
    wrong.sort(key=lambda each: (not each.failure, _mean_mark(each), each.case.id))
    return wrong[:limit]


def worst_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the worst cases of each variant as lines of text, with what is wrong with them."""
    for label in dict.fromkeys(result.variant for result in results):
        wrong = worst(results, label)
        yield from [f"\nWorst cases of {label}:"] if wrong else []
        for result in wrong:
            yield f"  {result.case.id}: {result.case.title}"
            yield from (f"      {reason}" for reason in reasons(result))


def reasons(result: Result) -> list[str]:
    """Say what kept a case from passing: a metric and its reason each."""
    return [
        f"{name} {mark.score:.0%}: {clip(mark.reason, LONGEST_REASON)}"
        for name, mark in result.marks.items()
        if not mark.passed
    ]


def unanswered(results: Iterable[Result]) -> Iterator[str]:
    """Say of each variant whose model gave no answer at all what kept it from that, in a line."""
    by_variant: dict[str, list[str]] = {}
    for each in results:
        by_variant.setdefault(each.variant, []).append(each.outcome.error)
    for label, errors in by_variant.items():
        if all(errors):
            kinds = ", ".join(dict.fromkeys(errors))
            yield f"{label} never answered ({kinds}): check the model's name and OPENAI_BASE_URL."


def as_markdown(run: str, results: Sequence[Result]) -> str:
    """Write the table and what went wrong."""
    found = summaries(results)
    lines = [f"# Evaluation {run}", "", *_table(head(found), rows(found))]
    if any(each.is_of_quotes and not each.cost_usd for each in found):
        lines += ["", UNPRICED]
    for summary in found:
        lines += ["", f"## What went wrong: {summary.label}", ""]
        wrong = worst(results, summary.label, limit=summary.items)
        lines += [f"- `{each.case.id}` {'; '.join(reasons(each))}" for each in wrong]
        lines += [] if wrong else ["Nothing."]
    return "\n".join(lines) + "\n"


def as_json(run: str, results: Sequence[Result]) -> dict[str, Any]:
    """Return everything that was measured, as plain data."""
    return {
        "run": run,
        "variants": [_summary_json(summary) for summary in summaries(results)],
        "results": [_result_json(result) for result in results],
    }


def _summary_json(summary: Summary) -> dict[str, Any]:
    if not summary.is_of_quotes:
        return asdict(summary)
    monthly = {
        f"{people} x {queries}": summary.monthly_cost_usd(people, queries)
        for people, queries in SCENARIOS
    }
    return asdict(summary) | {"below": summary.below, "monthly_cost_usd": monthly}


def _result_json(result: Result) -> dict[str, Any]:
    return {
        "variant": result.variant,
        "case": as_item(result.case),
        "passed": result.passed,
        "failure": result.failure,
        "trace_ids": [trace.trace_id for trace in result.traces],
        **asdict(result.outcome),
    }


def transcripts(run: str, results: Iterable[Result]) -> str:
    """Write every conversation as a person judges it: messages, answers, what was wanted."""
    lines = [f"# Transcripts {run}"]
    for result in results:
        if isinstance(result.case, Conversation):
            lines += _transcript(result, result.case)
    return "\n\n".join(lines) + "\n"


def _transcript(result: Result, case: Conversation) -> Iterator[str]:
    kind = ", ".join(filter(None, [case.language, case.kind, result.variant]))
    yield f"## {case.id} ({kind})"
    for number, message in enumerate(case.messages):
        answer = result.outcome.texts[number : number + 1] or (result.failure or "No answer.",)
        yield f"**Guest:** {message}"
        yield "\n".join(f"> {line}" for line in answer[0].split("\n"))
        yield from (f"Wanted: {want}" for want in case.wants[number : number + 1])
    yield from (f"Wanted: {want}" for want in case.wants[len(case.messages) :])
    if case.harmful_if:
        yield f"Harmful if: {case.harmful_if}"
    yield from (f"Not met: {reason}" for reason in reasons(result))


def _table(columns: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (columns, ["---"] * len(columns), *body):
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _mean_mark(result: Result) -> float:
    return fmean(mark.score for mark in result.marks.values()) if result.marks else 0.0


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"

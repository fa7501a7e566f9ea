"""Statistics and traces as admins read them in the terminal, in Telegram and in a browser."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent.engine.messages import TokenUsage
from agent.engine.run import PromptRef
from agent.sommelier.wine import Wine
from agent.text import clip, to_one_line
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord
from db.repositories.clicks import ClickCount
from db.repositories.statistics import TurnStatistics, WeekStatistics
from db.traces import to_datetime

EMPTY_VALUES: Final[tuple[object, ...]] = (None, "", [], {})
MAX_VALUE_LINES: Final = 3
"""How many lines of an input or output are shown, unless all are wanted."""
MAX_VALUE_CHARS: Final = 160
"""How many characters of such a line are shown."""
CLICK_WEEKS: Final = 4
"""For how many weeks the presses of link buttons are shown, this week included."""
# Tables are at most 33 characters wide, because a phone shows no longer lines of code.
CLICKED_CHARS: Final = 26
"""The width of the names of wines in a table."""


def statistics_rows(columns: Sequence[TurnStatistics]) -> list[tuple[str, list[str]]]:
    """Return the rows of a table with a column for each period: a name and its values."""
    described_columns = [_describe(statistics) for statistics in columns]
    names = described_columns[0].keys()
    rows: list[tuple[str, list[str]]] = []
    for name in names:
        values = [column[name] for column in described_columns]
        rows.append((name, values))
    return rows


def statistics_table(week: WeekStatistics) -> str:
    """Return a table of the last day and of all days together, at most 33 characters wide."""
    all_days = f"{len(week.by_day)} days"
    heading = ("", ["today", all_days])
    rows = statistics_rows([week.by_day[-1], week.total])
    lines: list[str] = []
    for name, (last_value, total_value) in [heading, *rows]:
        line = f"{name:<13}{last_value:>10}{total_value:>10}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def clicks_table(clicks: Sequence[ClickCount], wines: Sequence[Wine]) -> str:
    """Return a table of how often the pages of wines were opened, or "" if there are no clicks.

    The table is at most 33 characters wide.
    """
    if not clicks:
        return ""
    labels = {wine.id: wine.label for wine in wines}
    lines = [f"opened pages, {CLICK_WEEKS} weeks"]
    for click in clicks:
        # A wine that is no longer in the catalogue has only its id.
        label = labels.get(click.wine_id, click.wine_id)
        shown_label = clip(label, CLICKED_CHARS)
        lines.append(f"{click.presses:>5}  {shown_label}")
    return "\n".join(lines)


def _describe(statistics: TurnStatistics) -> dict[str, str]:
    """Return the numbers as texts, by the names that admins read."""

    def with_share(count: int) -> str:
        """Return a number of turns with its share of all turns: `3  12%`."""
        if not statistics.turns:
            return "0"
        share = count / statistics.turns
        return f"{count} {share:4.0%}"

    return {
        "people": f"{statistics.people:,}",
        "turns": f"{statistics.turns:,}",
        "retried": with_share(statistics.retried),
        "failed": with_share(statistics.count("failed")),
        "salvaged": with_share(statistics.count("salvaged")),
        "fallback": with_share(statistics.count("fallback")),
        "refused": with_share(statistics.count("refused")),
        "cost": cost_text(statistics.cost_usd),
        "median": f"{statistics.median_seconds:.1f} s",
        "95 % within": f"{statistics.slow_seconds:.1f} s",
        "👍 / 👎": f"{statistics.liked} / {statistics.disliked}",
    }


def trace_text(trace: TraceRecord, *, full: bool = False) -> str:
    """Return a trace as text, with every span indented below its parent.

    Inputs and outputs are truncated unless `full`. The text has no control characters.
    """
    started_at = to_datetime(trace.root.started_ns)
    facts = [
        f"trace {trace.trace_id}",
        f"{started_at:%Y-%m-%d %H:%M:%S} UTC",
        f"session {trace.session}",
        f"user {trace.user}",
    ]
    lines = [" · ".join(facts)]
    for score in trace.scores.values():
        lines.append(_score_line(score))
    children_by_id: dict[str | None, list[SpanRecord]] = defaultdict(list)
    for span in trace.spans:
        children_by_id[span.parent_id].append(span)

    def add_lines(span: SpanRecord, indent: str) -> None:
        first, *details = _span_lines(span, full=full)
        lines.append(f"{indent}├ {first}")
        for detail in details:
            lines.append(f"{indent}│   {detail}")
        for child in children_by_id[span.span_id]:
            add_lines(child, f"{indent}│ ")

    add_lines(trace.root, "")
    # A line of a trace may contain line breaks and other control characters.
    return "\n".join(to_one_line(line) for line in lines)


def cost_text(cost_usd: float) -> str:
    """Return a cost with two decimals, or with four if it is below $0.10. No cost is a dash."""
    if not cost_usd:
        return "–"
    if cost_usd < 0.1:
        return f"${cost_usd:.4f}"
    return f"${cost_usd:.2f}"


def _score_line(score: ScoreRecord) -> str:
    """Return a score with its comment as a line of text."""
    value = score.value
    if isinstance(value, float):
        value = f"{value:g}"
    line = f"score {score.name} = {value}"
    if score.comment:
        line += f" ({score.comment})"
    return line


def _span_lines(span: SpanRecord, *, full: bool) -> Iterator[str]:
    """Yield the facts of a span, its metadata, its input and its output."""
    yield " · ".join(_span_facts(span))
    metadata = []
    for key, value in span.metadata.items():
        if value not in EMPTY_VALUES:
            entry = f"{key}={_to_text(value)}"
            metadata.append(clip(entry, MAX_VALUE_CHARS))
    if metadata:
        yield " · ".join(metadata)
    values = (("in  ", span.input), ("out ", span.output))
    for name, value in values:
        margin = name
        for line in value_lines(value, full=full):
            yield f"{margin}{line}"
            # Only the first line begins with the name.
            margin = "    "


def _span_facts(span: SpanRecord) -> Iterator[str]:
    """Yield what is known about a span: its name, times, model, usage, cost, prompt and level."""
    yield f"{span.name} [{span.kind}] {span.seconds:.2f} s"
    if span.model:
        yield span.model
    if span.usage:
        yield _usage_text(span.usage)
    if span.cost_usd:
        yield cost_text(span.cost_usd)
    if span.prompt:
        yield _prompt_text(span.prompt)
    if span.level != "DEFAULT":
        yield span.level


def _usage_text(usage: TokenUsage) -> str:
    prompt = f"{usage.prompt_tokens:,}"
    if usage.cached_tokens:
        prompt += f" ({usage.cached_tokens:,} cached)"
    return f"{prompt} + {usage.completion_tokens:,} tokens"


def _prompt_text(prompt: PromptRef) -> str:
    text = f"prompt {prompt.name} v{prompt.version}"
    if prompt.label:
        text += f" ({prompt.label})"
    return text


def value_lines(value: object, *, full: bool = False) -> list[str]:
    """Return the lines of an input or an output, which is a value of JSON or a list of messages.

    Unless `full`, return only the first lines of the value, or of the last message in the list.
    """
    if value in EMPTY_VALUES:
        return []
    texts = [_to_text(value)]
    if isinstance(value, list) and all(_is_message(item) for item in value):
        texts = [_format_message(message) for message in value]
    if full:
        return "\n".join(texts).splitlines()
    *earlier, last = texts
    lines = last.splitlines()
    shown: list[str] = []
    if earlier:
        shown.append(f"… {len(earlier)} earlier")
    for line in lines[:MAX_VALUE_LINES]:
        shown.append(clip(line, MAX_VALUE_CHARS))
    omitted_count = len(lines) - MAX_VALUE_LINES
    if omitted_count > 0:
        shown.append(f"… {omitted_count} more lines")
    return shown


def _is_message(item: object) -> bool:
    return isinstance(item, dict) and "role" in item


def _format_message(message: Mapping[str, Any]) -> str:
    role = message["role"]
    content = _to_text(message.get("content"))
    text = f"{role}: {content}"
    calls = message.get("tool_calls")
    if calls:
        text += f" {_to_text(calls)}"
    return text.rstrip()


def _to_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)

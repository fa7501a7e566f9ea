"""What admins read in the terminal, in Telegram and in a browser: statistics, and traces."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from math import ceil
from typing import Any, Final

from agent.text import clip, to_one_line
from agent.tracing.records import SpanRecord, TraceRecord
from db.models import TurnRow
from db.repositories.traces import to_datetime

EMPTY_VALUES: Final[tuple[object, ...]] = (None, "", [], {})
MAX_VALUE_LINES: Final = 3
MAX_VALUE_CHARS: Final = 160


def statistics_rows(columns: Sequence[Sequence[TurnRow]]) -> list[tuple[str, list[str]]]:
    """Return the rows of a table with a column for each group of turns: a name and its values."""
    groups = [_statistics(turns) for turns in columns]
    return [(name, [group[name] for group in groups]) for name in groups[0]]


def statistics_table(days: Mapping[date, Sequence[TurnRow]]) -> str:
    """Return a table of the last day and of all days together, at most 33 characters wide."""
    *_, today = days.values()
    rows = statistics_rows([today, [*chain(*days.values())]])
    rows.insert(0, ("", ["today", f"{len(days)} days"]))
    return "\n".join(f"{name:<13}{last:>10}{total:>10}".rstrip() for name, (last, total) in rows)


def _statistics(turns: Sequence[TurnRow]) -> dict[str, str]:
    """Return the statistics of turns by their names."""
    outcomes = Counter(turn.outcome for turn in turns)
    verdicts = Counter(turn.verdict for turn in turns)
    seconds = sorted(turn.seconds for turn in turns) or [0.0]

    def with_share(count: int) -> str:
        return f"{count} {count / len(turns):4.0%}" if turns else "0"

    outcome_names = ("failed", "salvaged", "fallback", "refused")
    return {
        # The id 0 stands for the HTTP API, which is not a person.
        "people": f"{len({turn.user_id for turn in turns} - {0}):,}",
        "turns": f"{len(turns):,}",
        "retried": with_share(sum(turn.retries > 0 for turn in turns)),
        **{name: with_share(outcomes[name]) for name in outcome_names},
        "cost": cost_text(sum(turn.cost_usd for turn in turns)),
        "median": f"{seconds[ceil(0.5 * len(seconds)) - 1]:.1f} s",
        "95 % within": f"{seconds[ceil(0.95 * len(seconds)) - 1]:.1f} s",
        "👍 / 👎": f"{verdicts['liked']} / {verdicts['disliked']}",
    }


def trace_text(trace: TraceRecord, *, full: bool = False) -> str:
    """Return a trace as text, with every span indented below its parent.

    Inputs and outputs are truncated unless `full`. The text has no control characters.
    """
    when = f"{to_datetime(trace.root.started_ns):%Y-%m-%d %H:%M:%S} UTC"
    lines = [f"trace {trace.trace_id} · {when} · session {trace.session} · user {trace.user}"]
    for score in trace.scores.values():
        comment = f" ({score.comment})" if score.comment else ""
        value = f"{score.value:g}" if isinstance(score.value, float) else score.value
        lines.append(f"score {score.name} = {value}{comment}")
    children_by_id: dict[str | None, list[SpanRecord]] = defaultdict(list)
    for span in trace.spans:
        children_by_id[span.parent_id].append(span)

    def add_lines(span: SpanRecord, indent: str) -> None:
        first, *details = _span_lines(span, full=full)
        lines.append(f"{indent}├ {first}")
        lines.extend(f"{indent}│   {detail}" for detail in details)
        for child in children_by_id[span.span_id]:
            add_lines(child, f"{indent}│ ")

    add_lines(trace.root, "")
    return "\n".join(map(to_one_line, lines))


def cost_text(cost_usd: float) -> str:
    """Format a cost with two digits, or four if it is below $0.10; a dash for no cost."""
    return f"${cost_usd:.{2 if cost_usd >= 0.1 else 4}f}" if cost_usd else "–"


def _span_lines(span: SpanRecord, *, full: bool) -> Iterator[str]:
    facts = [f"{span.name} [{span.kind}] {span.seconds:.2f} s", span.model]
    if usage := span.usage:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        facts.append(f"{usage.prompt_tokens:,}{cached} + {usage.completion_tokens:,} tokens")
    facts.append(cost_text(span.cost_usd) if span.cost_usd else None)
    if prompt := span.prompt:
        label = f" ({prompt.label})" if prompt.label else ""
        facts.append(f"prompt {prompt.name} v{prompt.version}{label}")
    facts.append(None if span.level == "DEFAULT" else span.level)
    yield " · ".join(filter(None, facts))
    metadata = [(key, value) for key, value in span.metadata.items() if value not in EMPTY_VALUES]
    if metadata:
        yield " · ".join(
            clip(f"{key}={_to_text(value)}", MAX_VALUE_CHARS) for key, value in metadata
        )
    for name, value in (("in ", span.input), ("out", span.output)):
        for number, line in enumerate(value_lines(value, full=full)):
            yield f"{'   ' if number else name} {line}"


def value_lines(value: object, *, full: bool = False) -> list[str]:
    """Return the lines of an input or output: a JSON text, or a list of messages.

    Unless `full`, only the first lines are returned, of messages those of the last one.
    """
    if value in EMPTY_VALUES:
        return []
    parts = [_to_text(value)]
    if isinstance(value, list) and all(isinstance(item, dict) and "role" in item for item in value):
        parts = [_format_message(message) for message in value]
    if full:
        return [line for part in parts for line in part.splitlines()]
    lines = parts[-1].splitlines()
    earlier = [f"… {len(parts) - 1} earlier"] if len(parts) > 1 else []
    more = [f"… {len(lines) - MAX_VALUE_LINES} more lines"] if len(lines) > MAX_VALUE_LINES else []
    return [*earlier, *(clip(line, MAX_VALUE_CHARS) for line in lines[:MAX_VALUE_LINES]), *more]


def _format_message(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    text = f"{_to_text(message.get('content'))} {_to_text(calls) if calls else ''}"
    return f"{message['role']}: {text.rstrip()}"


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

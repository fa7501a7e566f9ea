"""Traces for a terminal: a list, and the tree of one turn. What is shown obeys nobody.

Everything in a trace may have been written by anybody, so it is shown as text without markup and
without characters that a terminal would obey.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from agent.engine.messages import Usage
from agent.engine.trace_records import Level, ScoreRecord, SpanKind, SpanRecord, TraceRecord
from agent.repositories import TraceSummary
from bot.commands.output import printable

LEVELS: Final[dict[Level, str]] = {"ERROR": "bold red", "WARNING": "yellow", "DEFAULT": "green"}
KINDS: Final[dict[SpanKind, str]] = {
    "agent": "bold",
    "generation": "magenta",
    "tool": "cyan",
    "retriever": "blue",
    "guardrail": "dim",
    "span": "dim",
}
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
ERRORS: Final = frozenset({"error_type", "error_types", "validation_path"})
SHOWN_ID: Final = 8  # digits of an id in the list; enough to be the only one
SHOWN_QUESTION: Final = 60
SHOWN_LINES: Final = 3
SHOWN_WIDTH: Final = 160
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def trace_table(traces: Iterable[TraceSummary]) -> Table:
    """One trace a row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("When (UTC)", "Id", "Level", "Outcome"):
        table.add_column(name, no_wrap=True)
    for name in ("Retries", "Seconds", "Cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("What went wrong", overflow="fold")
    table.add_column("Question", overflow="fold")
    for each in traces:
        table.add_row(
            f"{each.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            each.trace_id[:SHOWN_ID],
            Text(each.level, LEVELS.get(each.level, "")),
            _line(each.outcome),
            str(each.retry_count),
            f"{each.seconds:.2f}",
            cost_text(each.cost_usd),
            _line(", ".join(each.error_types)),
            _line(_cut(each.question, SHOWN_QUESTION)),
        )
    return table


def trace_page(trace: TraceRecord, *, full: bool = False) -> Table:
    """A trace as a page: what it is, and its tree; inputs and outputs are cut unless `full`."""
    page = Table.grid()
    page.add_column(overflow="fold")
    page.add_row(trace_head(trace))
    page.add_row(trace_tree(trace, full=full))
    return page


def trace_head(trace: TraceRecord) -> Text:
    """Which trace this is, of whom, and its scores."""
    when = EPOCH + timedelta(microseconds=trace.root.started_ns // 1000)
    head = Text().append(f"trace {_one_line(trace.trace_id)}", "bold")
    head.append(f"\n{when:%Y-%m-%d %H:%M:%S} UTC", "dim")
    head.append(f" · session {_one_line(trace.session)} · user {_one_line(trace.user)}", "dim")
    for score in trace.scores.values():
        head.append(f"\nscore {_one_line(_score(score))}")
    return head


def trace_tree(trace: TraceRecord, *, full: bool = False) -> Tree:
    """The spans of a trace, each below its parent; inputs and outputs are cut unless `full`."""
    tree = Tree(_label(trace.root, full=full), guide_style="dim")
    nodes = {trace.root.span_id: tree}
    for span in trace.spans[1:]:
        above = nodes.get(span.parent_id or "", tree)
        nodes[span.span_id] = above.add(_label(span, full=full))
    return tree


def cost_text(cost_usd: float) -> str:
    """An amount, to the digits that say something; a dash for nothing."""
    if not cost_usd:
        return "–"
    return f"${cost_usd:.2f}" if cost_usd >= 1 else f"${cost_usd:.4f}"


def duration_text(span: SpanRecord) -> str:
    """How long a span took."""
    if span.ended_ns is None:
        return "not ended"
    milliseconds = (span.ended_ns - span.started_ns) / 1_000_000
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def usage_text(usage: Usage) -> str:
    """The tokens of a request."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,}{cached} + {usage.completion_tokens:,} tokens"


def value_lines(value: object) -> list[str]:
    """An input or an output in lines: messages one below the other, data as JSON."""
    if value in NOTHING:
        return []
    if isinstance(value, str):
        return value.splitlines()
    if _are_messages(value):
        return [line for message in value for line in _message_lines(message)]
    return json.dumps(value, ensure_ascii=False, indent=2, default=str).splitlines()


def cut_lines(value: object) -> list[str]:
    """The first lines of an input or an output; of messages the last one, which is new."""
    if _are_messages(value) and len(value) > 1:
        return [f"… {len(value) - 1} earlier", *cut_lines([value[-1]])]
    if value not in NOTHING and not isinstance(value, str) and not _are_messages(value):
        value = json.dumps(value, ensure_ascii=False, default=str)
    lines = value_lines(value)
    shown = [_cut(line, SHOWN_WIDTH) for line in lines[:SHOWN_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"… {more} more lines"] if more else shown


def failing(span: SpanRecord) -> bool:
    """Whether a span failed, or worked in part."""
    return span.level != "DEFAULT"


def _label(span: SpanRecord, *, full: bool) -> Text:
    label = Text().append(_one_line(span.name), LEVELS[span.level] if failing(span) else "bold")
    label.append(f" [{span.kind}]", KINDS.get(span.kind, ""))
    label.append(f" {duration_text(span)}", "dim")
    if failing(span):
        label.append(f" {span.level}", LEVELS[span.level])
    for part in _generation_parts(span):
        label.append(f" · {_one_line(part)}", "dim")
    _append_metadata(label, span.metadata)
    for name, value in (("in ", span.input), ("out", span.output)):
        for number, line in enumerate(value_lines(value) if full else cut_lines(value)):
            label.append(f"\n{name if number == 0 else '   '} ", "dim")
            label.append(_one_line(line))
    return label


def _generation_parts(span: SpanRecord) -> Iterable[str]:
    if span.model:
        yield span.model
    if span.usage is not None:
        yield usage_text(span.usage)
    if span.cost_usd:
        yield cost_text(span.cost_usd)
    if span.prompt is not None:
        yield f"prompt {span.prompt.name} v{span.prompt.version}" + (
            f" ({span.prompt.label})" if span.prompt.label else ""
        )


def _append_metadata(label: Text, metadata: Mapping[str, Any]) -> None:
    said = {key: value for key, value in metadata.items() if value not in NOTHING}
    for number, (key, value) in enumerate(said.items()):
        label.append("\n" if number == 0 else " · ", "dim")
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        style = "red" if key in ERRORS else "dim"
        label.append(_one_line(f"{key}={_cut(text, SHOWN_WIDTH)}"), style)


def _score(score: ScoreRecord) -> str:
    value = f"{score.value:g}" if isinstance(score.value, float | int) else score.value
    return f"{score.name} = {value}" + (f" ({score.comment})" if score.comment else "")


def _are_messages(value: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(each, Mapping) and "role" in each for each in value)
    )


def _message_lines(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    said = content if isinstance(content, str) else json.dumps(content, default=str)
    calls = message.get("tool_calls")
    text = said if not calls else f"{said} {json.dumps(calls, ensure_ascii=False, default=str)}"
    return f"{message['role']}: {text}".splitlines()


def _line(text: str) -> Text:
    return Text(_one_line(text))


def _one_line(text: str) -> str:
    """A text without characters that a terminal would obey, nor line breaks."""
    return printable(" ".join(text.splitlines())).replace("\t", " ")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"

"""`sommelier traces`: show what happened in each turn, without Langfuse.

Everything in a trace may have been written by anybody, so it is shown as text without markup and
without characters that a terminal would obey.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, TypeGuard

import typer
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from agent.engine.feedback import clip
from agent.tracing.masking import Masking
from agent.tracing.records import ScoreRecord, SpanRecord, TraceRecord
from bot.commands.output import (
    AsJson,
    fail,
    one_line,
    open_settings,
    print_json,
    printable,
    show,
    table,
    with_database,
    write_file,
)
from db.engine import Sessions
from db.records import TraceFilter, TraceSummary
from db.repositories.traces import SqlTraceStore, plain
from db.repositories.turns import exported_turns

MAX_AGO_DIGITS: Final = 4
UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LAST: Final = "last"
NO_TRACES: Final = (
    "No turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier run` "
    "for Telegram), and its turns are kept here."
)
COLUMNS: Final = ("name", "outcome", "session", "user")

LEVELS: Final[Mapping[str, str]] = {"ERROR": "bold red", "WARNING": "yellow", "DEFAULT": "green"}
KINDS: Final[Mapping[str, str]] = {
    "agent": "bold",
    "generation": "magenta",
    "tool": "cyan",
    "retriever": "blue",
    "guardrail": "dim",
    "span": "dim",
}
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
ERRORS: Final = frozenset({"error_type", "error_types", "validation_path"})
ID_DIGITS: Final = 8  # in the list; enough to be the only one
QUESTION_CHARS: Final = 60
VALUE_LINES: Final = 3
VALUE_CHARS: Final = 160
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Since = Annotated[
    str | None,
    typer.Option(help="Only turns since then: 30m, 24h, 7d, 2w ago, or a date like 2026-05-31."),
]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("list")
def list_traces(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many traces at most.")] = 20,
    since: Since = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only those that failed, or fell back.")
    ] = False,
    error: Annotated[bool, typer.Option("--error", help="Only those that failed.")] = False,
    disliked: Annotated[bool, typer.Option("--disliked", help="Only those with a 👎.")] = False,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="Only those with this tag: retried, error:grounding ...; repeatable."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only those with this name, outcome, session or user: outcome=failed."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the turns: first those that failed, then those that fell back, then the newest."""
    columns = dict(_column(condition) for condition in where or ())
    which = TraceFilter(
        since=since_moment(since),
        level="ERROR" if error else "WARNING" if failed else None,
        tags=tuple(tag or ()),
        disliked=disliked,
        **columns,
    )
    found = with_database(
        open_settings(), lambda sessions: SqlTraceStore(sessions).summaries(limit, which)
    )
    if as_json:
        print_json(found)
    elif found:
        show(trace_table(found))
        typer.echo("\n`sommelier traces show ID` draws one of them, `show last` the newest.")
    else:
        typer.echo(NO_TRACES if which == TraceFilter() else "No such turn.")


def _column(condition: str) -> tuple[str, str]:
    """Return a column and its value; end the command if the condition is none."""
    column, equals, value = condition.partition("=")
    if column not in COLUMNS or not equals:
        fail(f"--where is {condition!r}; write one of {', '.join(COLUMNS)}, like name=find", 2)
    return column, value


@app.command("show")
def show_trace(
    trace_id: Annotated[
        str, typer.Argument(help="An id that `traces list` shows, its beginning, or `last`.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Show inputs and outputs whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a turn as a tree: every request to the model, every tool, its time and cost."""

    async def read(sessions: Sessions) -> TraceRecord | None:
        store, wanted = SqlTraceStore(sessions), trace_id
        if wanted == LAST:
            newest = await store.summaries(1, failing_first=False)
            if not newest:
                return None
            wanted = newest[0].trace_id
        return await store.get(wanted)

    try:
        trace = with_database(open_settings(), read)
    except LookupError as error:
        fail(f"{error}; see `sommelier traces list`")
    if trace is None:
        fail(NO_TRACES)
    if as_json:
        print_json(plain(trace))
    else:
        show(trace_page(trace, full=full))


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write it: one JSON object a line.")],
    disliked: Annotated[bool, typer.Option("--disliked", help="Only turns with a 👎.")] = False,
    retried: Annotated[
        bool, typer.Option("--retried", help="Only turns that needed another attempt.")
    ] = False,
    since: Since = None,
) -> None:
    """Save turns as a dataset for `sommelier eval run`: the question, and what came before it."""
    settings, moment = open_settings(), since_moment(since)
    content: Any = "full" if settings.trace_content == "full" else "masked"
    hide = Masking(content, (), settings.secrets).text
    turns = with_database(
        settings,
        lambda sessions: exported_turns(
            sessions, hide, since=moment, disliked=disliked, retried=retried
        ),
    )
    if not turns:
        typer.echo("No such turn whose words are still remembered; nothing was written.")
        return
    lines = (json.dumps(turn, ensure_ascii=False) for turn in turns)
    write_file(file, "".join(f"{line}\n" for line in lines))
    typer.echo(printable(f"{len(turns)} turn{'s' * (len(turns) > 1)} written to {file}."))


def since_moment(text: str | None, now: datetime | None = None) -> datetime | None:
    """Return the moment that `7d` or `2026-05-31` means; end the command if it means none."""
    if text is None:
        return None
    now, text = now or datetime.now(UTC), text.strip()
    count, unit = text[:-1], UNITS.get(text[-1:])
    if unit and count.isdecimal() and len(count) <= MAX_AGO_DIGITS:
        return now - timedelta(**{unit: int(count)})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(f"--since is {text!r}; write 30m, 24h, 7d, 2w, or a date like 2026-05-31", 2)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def trace_table(traces: Iterable[TraceSummary]) -> Table:
    """Return a table with a trace in each row."""
    columns = [Column(name, no_wrap=True) for name in ("When (UTC)", "Id", "Level", "Outcome")]
    columns += [
        Column(name, justify="right", no_wrap=True) for name in ("Retries", "Seconds", "Cost")
    ]
    rows = (
        (
            f"{trace.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            trace.trace_id[:ID_DIGITS],
            Text(trace.level, LEVELS.get(trace.level, "")),
            trace.outcome,
            str(trace.retry_count),
            f"{trace.seconds:.2f}",
            cost_text(trace.cost_usd),
            trace.name,
            ", ".join(trace.error_types),
            clip(trace.question, QUESTION_CHARS),
        )
        for trace in traces
    )
    return table([*columns, "What", "What went wrong", "Question"], rows)


def trace_page(trace: TraceRecord, *, full: bool = False) -> Group:
    """Return the head of a trace and its tree; inputs and outputs are cut unless `full`."""
    tree = Tree(_label(trace.root, full=full), guide_style="dim")
    nodes = {trace.root.span_id: tree}
    for span in trace.spans[1:]:
        parent = nodes.get(span.parent_id or "", tree)
        nodes[span.span_id] = parent.add(_label(span, full=full))
    return Group(_head(trace), tree)


def tree_text(trace: TraceRecord, width: int) -> str:
    """Return a trace as plain text with at most `width` characters a line."""
    written = StringIO()
    console = Console(file=written, width=width, color_system=None, emoji=False)
    console.print(trace_page(trace))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def cost_text(cost_usd: float) -> str:
    """Return an amount with the digits that matter; a dash for nothing."""
    if not cost_usd:
        return "–"
    return f"${cost_usd:.2f}" if cost_usd >= 1 else f"${cost_usd:.4f}"


def value_lines(value: object, *, full: bool = False) -> list[str]:
    """Return an input or an output in lines: data as JSON, messages one below the other.

    Unless `full` they are the first lines, cut; of messages those of the last, which is new.
    """
    if value in NOTHING:
        return []
    if isinstance(value, str):
        lines = value.splitlines()
    elif not _are_messages(value):
        indent = 2 if full else None
        lines = json.dumps(value, ensure_ascii=False, indent=indent, default=str).splitlines()
    elif full or len(value) == 1:
        lines = [line for message in value for line in _message_lines(message)]
    else:
        return [f"… {len(value) - 1} earlier", *value_lines(value[-1:])]
    if full:
        return lines
    more = len(lines) - VALUE_LINES
    cut = [clip(line, VALUE_CHARS) for line in lines[:VALUE_LINES]]
    return [*cut, f"… {more} more lines"] if more > 0 else cut


def _head(trace: TraceRecord) -> Text:
    when = EPOCH + timedelta(microseconds=trace.root.started_ns // 1000)
    head = Text().append(f"trace {one_line(trace.trace_id)}", "bold")
    head.append(f"\n{when:%Y-%m-%d %H:%M:%S} UTC", "dim")
    head.append(f" · session {one_line(trace.session)} · user {one_line(trace.user)}", "dim")
    for score in trace.scores.values():
        head.append(f"\nscore {one_line(_score(score))}")
    return head


def _score(score: ScoreRecord) -> str:
    value = f"{score.value:g}" if isinstance(score.value, float | int) else score.value
    return f"{score.name} = {value}" + (f" ({score.comment})" if score.comment else "")


def _label(span: SpanRecord, *, full: bool) -> Text:
    style = "bold" if span.level == "DEFAULT" else LEVELS[span.level]
    label = Text().append(one_line(span.name), style)
    label.append(f" [{span.kind}]", KINDS.get(span.kind, ""))
    label.append(f" {_duration(span)}", "dim")
    if span.level != "DEFAULT":
        label.append(f" {span.level}", style)
    for part in _generation_parts(span):
        label.append(f" · {one_line(part)}", "dim")
    known = [(key, value) for key, value in span.metadata.items() if value not in NOTHING]
    for number, (key, value) in enumerate(known):
        label.append(" · " if number else "\n", "dim")
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        style = "red" if key in ERRORS else "dim"
        label.append(one_line(f"{key}={clip(text, VALUE_CHARS)}"), style)
    for name, value in (("in ", span.input), ("out", span.output)):
        for number, line in enumerate(value_lines(value, full=full)):
            label.append(f"\n{'   ' if number else name} ", "dim")
            label.append(one_line(line))
    return label


def _duration(span: SpanRecord) -> str:
    if span.ended_ns is None:
        return "not ended"
    seconds = span.seconds
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _generation_parts(span: SpanRecord) -> Iterator[str]:
    if span.model:
        yield span.model
    if usage := span.usage:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        yield f"{usage.prompt_tokens:,}{cached} + {usage.completion_tokens:,} tokens"
    if span.cost_usd:
        yield cost_text(span.cost_usd)
    if prompt := span.prompt:
        label = f" ({prompt.label})" if prompt.label else ""
        yield f"prompt {prompt.name} v{prompt.version}{label}"


def _are_messages(value: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(message, Mapping) and "role" in message for message in value)
    )


def _message_lines(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, default=str)
    if calls := message.get("tool_calls"):
        text = f"{text} {json.dumps(calls, ensure_ascii=False, default=str)}"
    return f"{message['role']}: {text}".splitlines()

"""`sommelier traces`: show what happened in each turn, without Langfuse.

Everything in a trace may have been written by anybody, so it is shown as text without markup and
without characters that a terminal would obey.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from agent.engine.feedback import clip
from agent.tracing.records import SpanRecord, TraceRecord
from bot.commands.output import (
    fail,
    one_line,
    open_settings,
    printable,
    show,
    table,
    with_database,
    write_file,
)
from bot.tracing import masking_of
from db.models import TraceRow
from db.repositories.traces import SqlTraceStore, moment
from db.repositories.turns import exported_turns

NO_TRACES: Final = (
    "No such turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier "
    "run` for Telegram), and its turns are kept here."
)
LEVELS: Final[Mapping[str, str]] = {"ERROR": "bold red", "WARNING": "yellow", "DEFAULT": "green"}
NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
ID_DIGITS: Final = 8  # in the list; enough to be the only one
QUESTION_CHARS: Final = 60
VALUE_LINES: Final = 3
VALUE_CHARS: Final = 160

Days = Annotated[
    float | None, typer.Option(min=0, max=36500, help="Only turns of the last so many days.")
]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("list")
def list_traces(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many traces at most.")] = 20,
    days: Days = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only those that failed, or fell back.")
    ] = False,
    outcome: Annotated[str | None, typer.Option(help="Only this outcome: salvaged ...")] = None,
    name: Annotated[str | None, typer.Option(help="Only this kind: chat, ask, find ...")] = None,
    user: Annotated[str | None, typer.Option(help="Only this user, by their hash.")] = None,
) -> None:
    """Show the turns: first those that failed, then those that fell back, then the newest."""
    wanted = {"outcome": outcome, "name": name, "user": user}
    columns = {column: value for column, value in wanted.items() if value is not None}
    found = with_database(
        open_settings(),
        lambda sessions: SqlTraceStore(sessions).summaries(
            limit, columns, since=_days_ago(days), failed=failed
        ),
    )
    if not found:
        typer.echo(NO_TRACES)
        return
    show(trace_table(found))
    typer.echo("\n`sommelier traces show ID` draws one of them, `show last` the newest.")


@app.command("show")
def show_trace(
    trace_id: Annotated[
        str, typer.Argument(help="An id that `traces list` shows, its beginning, or `last`.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Show inputs and outputs whole.")] = False,
) -> None:
    """Draw a turn as a tree: every request to the model, every tool, its time and cost."""
    settings = open_settings()
    try:
        trace = with_database(settings, lambda sessions: SqlTraceStore(sessions).get(trace_id))
    except LookupError as error:
        fail(f"{error}; see `sommelier traces list`")
    show(trace_page(trace, full=full))


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write it: one JSON object a line.")],
    disliked: Annotated[bool, typer.Option("--disliked", help="Only turns with a 👎.")] = False,
    days: Days = None,
) -> None:
    """Save turns as a dataset for `sommelier eval run`, with their history."""
    settings = open_settings()
    hide, since = masking_of(settings).text, _days_ago(days)
    turns = with_database(
        settings, lambda sessions: exported_turns(sessions, hide, since, disliked=disliked)
    )
    if not turns:
        typer.echo("No such turn whose words are still remembered; nothing was written.")
        return
    lines = (json.dumps(turn, ensure_ascii=False) for turn in turns)
    write_file(file, "".join(f"{line}\n" for line in lines))
    typer.echo(printable(f"{len(turns)} turn{'s' * (len(turns) > 1)} written to {file}."))


def _days_ago(days: float | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) - timedelta(days=days)


def trace_table(traces: Iterable[TraceRow]) -> Table:
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
            f"{(trace.ended_at - trace.started_at).total_seconds():.2f}",
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
    head = Text(f"trace {trace.trace_id}", "bold")
    when = f"{moment(trace.root.started_ns):%Y-%m-%d %H:%M:%S} UTC"
    head.append(one_line(f" · {when} · session {trace.session} · user {trace.user}"), "dim")
    for score in trace.scores.values():
        comment = f" ({score.comment})" if score.comment else ""
        value = f"{score.value:g}" if isinstance(score.value, float) else score.value
        head.append(f"\nscore {one_line(f'{score.name} = {value}{comment}')}")
    tree = Tree(_label(trace.root, full=full), guide_style="dim")
    nodes = {trace.root.span_id: tree}
    for span in trace.spans[1:]:
        parent = nodes.get(span.parent_id or "", tree)
        nodes[span.span_id] = parent.add(_label(span, full=full))
    return Group(head, tree)


def tree_text(trace: TraceRecord, width: int) -> str:
    """Return a trace as plain text with at most `width` characters a line."""
    written = StringIO()
    console = Console(file=written, width=width, color_system=None, emoji=False)
    console.print(trace_page(trace))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def cost_text(cost_usd: float) -> str:
    """Return an amount with the digits that matter; a dash for nothing."""
    return f"${cost_usd:.{2 if cost_usd >= 0.1 else 4}f}" if cost_usd else "–"


def _label(span: SpanRecord, *, full: bool) -> Text:
    style = "bold" if span.level == "DEFAULT" else LEVELS[span.level]
    label = Text(one_line(span.name), style)
    facts = [f" [{span.kind}] {span.seconds:.2f} s", *_facts(span)]
    label.append(one_line(" · ".join(facts)), "dim")
    if span.level != "DEFAULT":
        label.append(f" {span.level}", style)
    known = [(key, value) for key, value in span.metadata.items() if value not in NOTHING]
    if known:
        shown = " · ".join(clip(f"{key}={_text(value)}", VALUE_CHARS) for key, value in known)
        label.append(f"\n{one_line(shown)}", "dim")
    for name, value in (("in ", span.input), ("out", span.output)):
        for number, part in enumerate(value_lines(value, full=full)):
            label.append(f"\n{'   ' if number else name} {one_line(part)}")
    return label


def _facts(span: SpanRecord) -> Iterator[str]:
    """Return what is known of a request to a model."""
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


def value_lines(value: object, *, full: bool = False) -> list[str]:
    """Return an input or an output in lines: data as JSON, messages one below the other.

    Unless `full` they are the first lines, cut; of messages those of the last, which is new.
    """
    if value in NOTHING:
        return []
    if isinstance(value, list) and all(isinstance(item, dict) and "role" in item for item in value):
        shown = value if full else value[-1:]
        lines = [line for message in shown for line in _message_lines(message)]
        before = [f"… {len(value) - 1} earlier"] if len(value) > len(shown) else []
    else:
        lines, before = _text(value).splitlines(), []
    if full:
        return lines
    more = len(lines) - VALUE_LINES
    cut = [clip(line, VALUE_CHARS) for line in lines[:VALUE_LINES]]
    return [*before, *cut, *([f"… {more} more lines"] if more > 0 else [])]


def _message_lines(message: Mapping[str, Any]) -> Sequence[str]:
    calls = message.get("tool_calls")
    text = f"{_text(message.get('content'))} {_text(calls) if calls else ''}"
    return f"{message['role']}: {text.rstrip()}".splitlines()


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

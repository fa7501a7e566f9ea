"""`sommelier traces`: show the traces of turns, without Langfuse.

Traces contain untrusted text, so they are shown without markup and control characters.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Column, Table

from agent.text import clip
from agent.tracing.records import SpanRecord, TraceRecord
from bot.commands.output import (
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    run_with_database,
    to_one_line,
    write_file,
)
from bot.tracing import Exporter, export_queues, masking_of, trace_backend
from config import Settings
from db.engine import Sessions
from db.models import TraceRow
from db.repositories.traces import REFUSED, SqlTraceStore, to_datetime
from db.repositories.turns import export_turns

if TYPE_CHECKING:
    from agent.tracing.delivery import Backend

NO_TRACES: Final = (
    "No such turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier "
    "run` for Telegram), and its turns are kept here."
)
EMPTY_VALUES: Final[tuple[object, ...]] = (None, "", [], {})
ID_DIGITS: Final = 8  # shown in lists; usually unique
MAX_QUESTION_CHARS: Final = 60
MAX_VALUE_LINES: Final = 3
MAX_VALUE_CHARS: Final = 160

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
) -> None:
    """Show the turns: first those that failed, then those that fell back, then the newest."""
    settings, since = open_settings(), _days_ago(days)
    traces = run_with_database(
        settings,
        lambda sessions: SqlTraceStore(sessions).list_summaries(limit, since=since, failed=failed),
    )
    if not traces:
        typer.echo(NO_TRACES)
        return
    print_table(trace_table(traces))
    typer.echo("\n`sommelier traces show ID` draws one of them, `show last` the newest.")
    if refusals := run_with_database(settings, describe_refusals):
        print_text(refusals)


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
        trace = run_with_database(settings, lambda sessions: SqlTraceStore(sessions).get(trace_id))
    except LookupError as error:
        fail(f"{error}; see `sommelier traces list`")
    typer.echo(trace_text(trace, full=full))


@app.command("resend")
def resend() -> None:
    """Send again what the server refused, for example after an update of the server."""
    settings = open_settings()
    if not settings.sends_traces:
        fail("there is no server for traces: see `sommelier doctor`", 2)
    print_text(run_with_database(settings, lambda sessions: _resend(settings, sessions)))


async def _resend(settings: Settings, sessions: Sessions) -> str:
    """Send refused rows, and return what became of them."""
    queues = export_queues(sessions)
    count = sum([await queue.resend() for queue in queues])
    async with aclosing(await trace_backend(settings)) as backend:

        async def open_backend() -> "Backend":
            return backend

        if await Exporter(open_backend, *queues).send_due():
            return f"{count} wait, and are sent when the server takes them."
    return await describe_refusals(sessions) or f"{count} sent again."


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write it: one JSON object a line.")],
    disliked: Annotated[bool, typer.Option("--disliked", help="Only turns with a 👎.")] = False,
    days: Days = None,
) -> None:
    """Save turns as a dataset for `sommelier eval run`, with their history."""
    settings = open_settings()
    mask, since = masking_of(settings).text, _days_ago(days)
    turns = run_with_database(
        settings, lambda sessions: export_turns(sessions, mask, since, disliked=disliked)
    )
    if not turns:
        typer.echo("No such turn whose words are still remembered; nothing was written.")
        return
    lines = (json.dumps(turn, ensure_ascii=False) for turn in turns)
    write_file(file, "".join(f"{line}\n" for line in lines))
    print_text(f"{len(turns)} turn{'s' * (len(turns) > 1)} written to {file}.")


async def describe_refusals(sessions: Sessions) -> str:
    """Return how many rows a server refused, with its last words; "" if it refused none."""
    lines = list[str]()
    for name, queue in zip(("traces", "scores"), export_queues(sessions), strict=True):
        if count := (await queue.count_by_state()).get(REFUSED):
            words = await queue.find_refusal() or "its words were not kept"
            lines.append(f"{count} of the {name} were refused: {words}")
    return "; ".join([*lines, "`sommelier traces resend` sends them again"] if lines else [])


def _days_ago(days: float | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) - timedelta(days=days)


def trace_table(traces: Iterable[TraceRow]) -> Table:
    """Return a table with one row for each trace."""
    names = "When (UTC)", "Id", "Level", "Outcome", "Seconds", "Cost"
    columns = [Column(name, no_wrap=True) for name in names]
    rows = (
        (
            f"{trace.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            trace.trace_id[:ID_DIGITS],
            trace.level,
            trace.outcome,
            f"{(trace.ended_at - trace.started_at).total_seconds():.2f}",
            cost_text(trace.cost_usd),
            trace.name,
            ", ".join(trace.error_types),
            clip(trace.question, MAX_QUESTION_CHARS),
        )
        for trace in traces
    )
    return build_table([*columns, "What", "What went wrong", "Question"], rows)


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

"""`sommelier traces`: what happened in each turn, without Langfuse.

Everything in a trace may have been written by anybody, so it is shown as text without markup and
without characters that a terminal would obey.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
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
from agent.engine.messages import Usage
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
from bot.tracing import hide
from config import Settings
from db.engine import Sessions
from db.records import TraceFilter, TraceSummary
from db.repositories.traces import SqlTraceStore, plain
from db.repositories.turns import TurnRepository, exported_turns

LONGEST_AGO: Final = 4  # digits
UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LAST: Final = "last"
NO_TRACES: Final = (
    "No turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier run` "
    "for Telegram) and each turn is kept here."
)

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
SHOWN_ID: Final = 8  # digits of an id in the list; enough to be the only one
SHOWN_QUESTION: Final = 60
SHOWN_LINES: Final = 3
SHOWN_WIDTH: Final = 160
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
    name: Annotated[str, typer.Option(help="Only these: chat, ask, quotes, find ...")] = "",
    outcome: Annotated[str, typer.Option(help="Only these: answered, failed, refused ...")] = "",
    session: Annotated[str, typer.Option(help="Only those of this chat, by its hash.")] = "",
    user: Annotated[str, typer.Option(help="Only those of this person, by their hash.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the turns: first those that failed, then those that fell back, then the newest."""
    settings = open_settings()
    which = TraceFilter(
        since=since_moment(since),
        level="ERROR" if error else "WARNING" if failed else None,
        name=name,
        outcome=outcome,
        session=session,
        user=user,
        tags=tuple(tag or ()),
        disliked=disliked,
    )

    found = with_database(
        settings, lambda sessions: SqlTraceStore(sessions).summaries(limit, which)
    )
    if as_json:
        print_json(found)
    elif found:
        show(trace_table(found))
        typer.echo("\n`sommelier traces show ID` draws one of them, `show last` the newest.")
    else:
        typer.echo(NO_TRACES if which == TraceFilter() else "No such turn.")


@app.command("show")
def show_trace(
    trace_id: Annotated[
        str, typer.Argument(help="An id that `traces list` shows, its beginning, or `last`.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Show inputs and outputs whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a turn as a tree: every request to the model, every tool, what it took and cost."""
    settings = open_settings()
    try:
        trace = with_database(settings, lambda sessions: _read_trace(settings, sessions, trace_id))
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
    """Save turns as a dataset for `sommelier eval run`: question, what stood before, what for."""
    settings, moment = open_settings(), since_moment(since)

    content: Any = "full" if settings.tracing.content == "full" else "masked"
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
    """The moment that a person means by `7d` or `2026-05-31`; ends the command if it is none."""
    if text is None:
        return None
    now = now or datetime.now(UTC)
    count, unit = text.strip()[:-1], UNITS.get(text.strip()[-1:])
    if unit and count.isdecimal() and len(count) <= LONGEST_AGO:
        return now - timedelta(**{unit: int(count)})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        fail(f"--since is {text!r}; write 30m, 24h, 7d, 2w, or a date like 2026-05-31", 2)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


async def _read_trace(settings: Settings, sessions: Sessions, trace_id: str) -> TraceRecord | None:
    """The trace, with what the person thought of it; None if `last` is asked for and none is."""
    store = SqlTraceStore(sessions)
    if trace_id == LAST:
        newest = await store.summaries(1, failing_first=False)
        if not newest:
            return None
        trace_id = newest[0].trace_id
    trace = await store.get(trace_id)
    turn = await TurnRepository(sessions).of_trace(trace.trace_id)
    if turn is not None and turn.verdict is not None:
        liked, comment = float(turn.verdict == "liked"), hide(settings)(turn.comment)
        said = ": ".join(str(part) for part in (turn.reason, comment) if part)
        trace.scores["user_feedback"] = ScoreRecord("user_feedback", liked, "BOOLEAN", said)
    return trace


def trace_table(traces: Iterable[TraceSummary]) -> Table:
    """One trace a row."""
    columns = [Column(name, no_wrap=True) for name in ("When (UTC)", "Id", "Level", "Outcome")]
    columns += [
        Column(name, justify="right", no_wrap=True) for name in ("Retries", "Seconds", "Cost")
    ]
    rows = (
        (
            f"{each.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            each.trace_id[:SHOWN_ID],
            Text(each.level, LEVELS.get(each.level, "")),
            each.outcome,
            str(each.retry_count),
            f"{each.seconds:.2f}",
            cost_text(each.cost_usd),
            each.name,
            ", ".join(each.error_types),
            clip(each.question, SHOWN_QUESTION),
        )
        for each in traces
    )
    return table([*columns, "What", "What went wrong", "Question"], rows)


def trace_page(trace: TraceRecord, *, full: bool = False) -> Group:
    """A trace as a page: what it is, and its tree; inputs and outputs are cut unless `full`."""
    return Group(_head(trace), _tree(trace, full=full))


def tree_text(trace: TraceRecord, width: int) -> str:
    """A trace as plain text, of so many characters a line."""
    plain = StringIO()
    console = Console(file=plain, width=width, color_system=None, emoji=False)
    console.print(trace_page(trace))
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines())


def _head(trace: TraceRecord) -> Text:
    when = EPOCH + timedelta(microseconds=trace.root.started_ns // 1000)
    head = Text().append(f"trace {one_line(trace.trace_id)}", "bold")
    head.append(f"\n{when:%Y-%m-%d %H:%M:%S} UTC", "dim")
    head.append(f" · session {one_line(trace.session)} · user {one_line(trace.user)}", "dim")
    for score in trace.scores.values():
        head.append(f"\nscore {one_line(_score(score))}")
    return head


def _tree(trace: TraceRecord, *, full: bool) -> Tree:
    """The spans of a trace, each below its parent."""
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


def _duration(span: SpanRecord) -> str:
    """How long a span took."""
    if span.ended_ns is None:
        return "not ended"
    milliseconds = (span.ended_ns - span.started_ns) / 1_000_000
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def usage_text(usage: Usage) -> str:
    """The tokens of a request."""
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,}{cached} + {usage.completion_tokens:,} tokens"


def value_lines(value: object, *, full: bool = False) -> list[str]:
    """An input or an output in lines: messages one below the other, data as JSON.

    Unless `full` they are the first ones, cut; of messages those of the last, which is new.
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
    more = len(lines) - SHOWN_LINES
    shown = [clip(line, SHOWN_WIDTH) for line in lines[:SHOWN_LINES]]
    return [*shown, f"… {more} more lines"] if more > 0 else shown


def _failing(span: SpanRecord) -> bool:
    """Whether a span failed, or worked in part."""
    return span.level != "DEFAULT"


def _label(span: SpanRecord, *, full: bool) -> Text:
    label = Text().append(one_line(span.name), LEVELS[span.level] if _failing(span) else "bold")
    label.append(f" [{span.kind}]", KINDS.get(span.kind, ""))
    label.append(f" {_duration(span)}", "dim")
    if _failing(span):
        label.append(f" {span.level}", LEVELS[span.level])
    for part in _generation_parts(span):
        label.append(f" · {one_line(part)}", "dim")
    _append_metadata(label, span.metadata)
    for name, value in (("in ", span.input), ("out", span.output)):
        for number, line in enumerate(value_lines(value, full=full)):
            label.append(f"\n{name if number == 0 else '   '} ", "dim")
            label.append(one_line(line))
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
        label.append(one_line(f"{key}={clip(text, SHOWN_WIDTH)}"), style)


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

"""`sommelier traces`: show the traces of turns, without Langfuse.

Traces contain texts of users and models. So they are shown without markup and control characters.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Column, Table

from agent.text import clip
from agent.tracing.records import TraceRecord
from bot.commands.output import (
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    run_with_database,
    write_file,
)
from bot.reports import cost_text, trace_text
from bot.tracing import Exporter, masking_of, trace_server
from bot.wanted import group_wishes, to_csv
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import ExportState, ScoreRow, TraceRow
from db.repositories.turns import export_turns
from db.repositories.unmet import UnmetWish, UnmetWishes
from db.traces import SqlTraceStore

NO_TRACES: Final = (
    "No such turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier "
    "run` for Telegram), and its turns are kept here."
)
ID_DIGITS: Final = 8
"""How many digits of an id a list shows. Usually no other id begins with them."""
MAX_QUESTION_CHARS: Final = 60

Days = Annotated[
    float | None,
    typer.Option(min=0, max=36500, help="Only turns of the last so many days."),
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
    """List turns: first those that failed, then those without a model's answer, then the newest."""
    settings = open_settings()
    since = _find_start(days)

    async def read(sessions: Sessions) -> tuple[Sequence[TraceRow], str]:
        store = SqlTraceStore(sessions)
        traces = await store.list_summaries(limit, since=since, failed=failed)
        return traces, await describe_problems(sessions)

    traces, problems = run_with_database(settings, read)
    if not traces:
        typer.echo(NO_TRACES)
        return
    print_table(trace_table(traces))
    typer.echo(
        "\n`sommelier traces show ID` draws one of them, `show last` the newest."
    )
    if problems:
        print_text(problems)


@app.command("show")
def show_trace(
    trace_id: Annotated[
        str,
        typer.Argument(
            help="An id that `traces list` shows, its beginning, or `last`."
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Show inputs and outputs whole.")
    ] = False,
) -> None:
    """Draw a turn as a tree, with every request to the model and every tool, its time and cost."""
    settings = open_settings()

    async def read(sessions: Sessions) -> TraceRecord:
        return await SqlTraceStore(sessions).get(trace_id)

    try:
        trace = run_with_database(settings, read)
    except LookupError as error:
        fail(f"{error}; see `sommelier traces list`")
    typer.echo(trace_text(trace, full=full))


@app.command("resend")
def resend() -> None:
    """Send again what was refused or set aside, for example after an update of the server."""
    settings = open_settings()
    if not settings.sends_traces:
        fail("there is no server for traces: see `sommelier doctor`", 2)

    async def send(sessions: Sessions) -> str:
        exporter = Exporter(lambda: trace_server(settings), sessions)
        async with aclosing(exporter):
            return await _resend(exporter, sessions)

    print_text(run_with_database(settings, send))


async def _resend(exporter: Exporter, sessions: Sessions) -> str:
    """Send what was refused or set aside. Return a sentence that says what became of it."""
    count = await exporter.traces.resend()
    count += await exporter.scores.resend()
    seconds_to_wait = await exporter.send_due()
    if seconds_to_wait:
        return f"{count} wait, and are sent when the server takes them."
    problems = await describe_problems(sessions)
    if problems:
        return problems
    return f"{count} sent again."


@app.command("export")
def export(
    file: Annotated[
        Path, typer.Argument(help="Where to write it: one JSON object a line.")
    ],
    disliked: Annotated[
        bool, typer.Option("--disliked", help="Only turns with a 👎.")
    ] = False,
    days: Days = None,
) -> None:
    """Save turns as a dataset for `sommelier eval run`, with their history."""
    settings = open_settings()
    mask = masking_of(settings).mask_text
    since = _find_start(days)

    async def read(sessions: Sessions) -> list[dict[str, object]]:
        return await export_turns(sessions, mask, since, disliked=disliked)

    turns = run_with_database(settings, read)
    if not turns:
        typer.echo("No such turn has texts that are still stored; nothing was written.")
        return
    lines = []
    for turn in turns:
        line = json.dumps(turn, ensure_ascii=False)
        lines.append(f"{line}\n")
    write_file(file, "".join(lines))
    if len(turns) == 1:
        print_text(f"1 turn written to {file}.")
    else:
        print_text(f"{len(turns)} turns written to {file}.")


@app.command("wanted")
def export_wanted(
    file: Annotated[Path, typer.Argument(help="Where to write it: CSV.")],
    days: Annotated[
        float, typer.Option(min=0, max=36500, help="Of the last so many days.")
    ] = 7,
) -> None:
    """Save what guests wanted and did not get, by week, and by the words that wishes share."""
    settings = open_settings()
    mask = masking_of(settings).mask_words
    end = datetime.now(UTC)
    start = end - timedelta(days=days)

    async def read(sessions: Sessions) -> list[UnmetWish]:
        return await UnmetWishes(sessions).list_between(start, end, mask)

    wishes = run_with_database(settings, read)
    content = to_csv(group_wishes(wishes))
    write_file(file, content.decode())
    print_text(f"{len(wishes)} wishes written to {file}.")


async def describe_problems(sessions: Sessions) -> str:
    """Return how many traces and scores were refused or set aside, and why.

    Return "" if there are none.
    """
    lines: list[str] = []
    for name, table in (("traces", TraceRow), ("scores", ScoreRow)):
        for problem in await RowQueue(sessions, table).list_problems():
            state = "set aside"
            if problem.state == ExportState.REFUSED:
                state = "refused"
            reason = problem.reason or "the reason was not kept"
            lines.append(f"{problem.rows} of the {name} were {state}: {reason}")
    if not lines:
        return ""
    lines.append("`sommelier traces resend` sends them again")
    return "; ".join(lines)


def _find_start(days: float | None) -> datetime | None:
    """Return the time this number of days ago, or None if no number is given."""
    if days is None:
        return None
    return datetime.now(UTC) - timedelta(days=days)


def trace_table(traces: Iterable[TraceRow]) -> Table:
    """Return a table with one row for each trace."""
    columns: list[Column | str] = []
    for name in ("When (UTC)", "Id", "Level", "Outcome", "Seconds", "Cost"):
        columns.append(Column(name, no_wrap=True))
    columns += ["What", "What went wrong", "Question"]
    rows = [_table_row(trace) for trace in traces]
    return build_table(columns, rows)


def _table_row(trace: TraceRow) -> Sequence[str]:
    """Return the cells of a trace in the table of traces."""
    started_at = trace.started_at.astimezone(UTC)
    duration = trace.ended_at - trace.started_at
    return (
        f"{started_at:%Y-%m-%d %H:%M:%S}",
        trace.trace_id[:ID_DIGITS],
        trace.level,
        trace.outcome,
        f"{duration.total_seconds():.2f}",
        cost_text(trace.cost_usd),
        trace.name,
        ", ".join(trace.error_types),
        clip(trace.question, MAX_QUESTION_CHARS),
    )

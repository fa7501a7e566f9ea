"""`sommelier traces`: show the traces of turns, without Langfuse.

Traces contain untrusted text, so they are shown without markup and control characters.
"""

import json
from collections.abc import Iterable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Column, Table

from agent.text import clip
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
from bot.tracing import Exporter, export_queues, masking_of, trace_backend
from config import Settings
from db.engine import Sessions
from db.models import TraceRow
from db.repositories.traces import REFUSED, SqlTraceStore
from db.repositories.turns import export_turns

if TYPE_CHECKING:
    from agent.tracing.delivery import Backend

NO_TRACES: Final = (
    "No such turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier "
    "run` for Telegram), and its turns are kept here."
)
ID_DIGITS: Final = 8  # shown in lists; usually unique
MAX_QUESTION_CHARS: Final = 60

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

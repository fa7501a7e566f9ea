"""`sommelier traces`: what happened in each turn, without Langfuse."""

# ruff: noqa: PLC0415

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bot.commands.output import fail, printable, show
from bot.commands.settings import open_settings

if TYPE_CHECKING:
    from agent.engine.trace_records import TraceRecord
    from agent.repositories import TraceSummary
    from config import Settings
    from db.engine import Sessions
    from db.repositories.turns import ExportedTurn

AGO: Final = re.compile(r"(\d{1,4})([mhdw])")
UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LAST: Final = "last"
NO_TRACES: Final = (
    "No turn is in the local store. Talk to the sommelier (`sommelier chat`, or `sommelier run` "
    "for Telegram) and each turn is kept here."
)
IN_LANGFUSE: Final = "No turn is in the local store: new ones are traced in Langfuse, at {}."

Since = Annotated[
    str | None,
    typer.Option(help="Only turns since then: 30m, 24h, 7d, 2w ago, or a date like 2026-05-31."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

app = typer.Typer(help="See what happened in each turn, and why.", no_args_is_help=True)


@app.command("list")
def list_traces(
    limit: Annotated[int, typer.Option(min=1, help="How many traces at most.")] = 20,
    since: Since = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the turns: first those that failed, then those that fell back, then the newest."""
    settings = open_settings("WARNING")
    moment = since_moment(since)
    from db.repositories.traces import SqlTraceStore

    async def read() -> "list[TraceSummary]":
        async with _open(settings) as sessions:
            level: Any = "WARNING" if failed else None
            return await SqlTraceStore(sessions).summaries(limit, since=moment, level=level)

    found = asyncio.run(read())
    if as_json:
        typer.echo(json.dumps([_summary_json(each) for each in found], indent=2))
    elif found:
        from bot.commands.trace_text import trace_table

        show(trace_table(found))
        typer.echo("\n`sommelier traces show ID` draws one of them, `show last` the newest.")
    else:
        typer.echo("No such turn." if failed or since else _how_to_fill(settings))


@app.command("show")
def show_trace(
    trace_id: Annotated[
        str, typer.Argument(help="An id that `traces list` shows, its beginning, or `last`.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Show inputs and outputs whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a turn as a tree: every request to the model, every tool, what it took and cost."""
    settings = open_settings("WARNING")
    try:
        trace = asyncio.run(_read_trace(settings, trace_id))
    except LookupError as error:
        fail(f"{error}; see `sommelier traces list`")
    if trace is None:
        fail(_how_to_fill(settings))
    if as_json:
        from db.repositories.traces import to_json

        typer.echo(json.dumps(to_json(trace), indent=2))
        return
    from bot.commands.trace_text import trace_page

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
    settings = open_settings("WARNING")
    moment = since_moment(since)
    from db.repositories.turns import exported_turns

    async def read() -> "list[ExportedTurn]":
        async with _open(settings) as sessions:
            return await exported_turns(sessions, since=moment, disliked=disliked, retried=retried)

    turns = [turn for turn in asyncio.run(read()) if turn.question.strip()]
    if not turns:
        typer.echo("No such turn whose words are still remembered; nothing was written.")
        return
    from agent.tracing.masking import Masking

    content: Any = "full" if settings.tracing.content == "full" else "masked"
    hide = Masking(content, (), settings.secrets).text
    _write(file, [dataset_item(turn, hide) for turn in turns])
    typer.echo(printable(f"{len(turns)} turn{'s' * (len(turns) > 1)} written to {file}."))


def since_moment(text: str | None, now: datetime | None = None) -> datetime | None:
    """The moment that a person means by `7d` or `2026-05-31`; ends the command if it is none."""
    if text is None:
        return None
    now = now or datetime.now(UTC)
    if ago := AGO.fullmatch(text.strip()):
        return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        fail(f"--since is {text!r}; write 30m, 24h, 7d, 2w, or a date like 2026-05-31", 2)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def dataset_item(turn: "ExportedTurn", hide: Callable[[str], str] = str) -> dict[str, Any]:
    """A turn as a line of a dataset: not who wrote it, and of the words what `hide` leaves."""
    kind = "disliked" if turn.verdict == "disliked" else "retried" if turn.retries else "turn"
    return {
        "id": f"turn-{turn.turn_id}",
        "kind": kind,
        "messages": [hide(turn.question)],
        "history": [
            {"role": said.role, "content": hide(said.content), "wine_ids": list(said.wine_ids)}
            for said in turn.history
        ],
        "expect": {},
        "note": ": ".join(part for part in (turn.reason, hide(turn.comment)) if part),
        "answer": hide(turn.answer),
        "outcome": turn.outcome,
        "trace_id": turn.trace_id,
    }


@asynccontextmanager
async def _open(settings: "Settings") -> AsyncIterator["Sessions"]:
    from bot.resources import open_database

    async with open_database(settings) as sessions:
        yield sessions


async def _read_trace(settings: "Settings", trace_id: str) -> "TraceRecord | None":
    """The trace, with what the person thought of it; None if `last` is asked for and none is."""
    from db.repositories.feedback import SqlFeedbackRepository
    from db.repositories.traces import SqlTraceStore

    async with _open(settings) as sessions:
        store = SqlTraceStore(sessions)
        if trace_id == LAST:
            newest = await store.summaries(1, failing_first=False)
            if not newest:
                return None
            trace_id = newest[0].trace_id
        trace = await store.get(trace_id)
        feedback = await SqlFeedbackRepository(sessions).of_trace(trace.trace_id)
    if feedback is not None and feedback.verdict is not None:
        from agent.engine.trace_records import ScoreRecord

        liked = float(feedback.verdict == "liked")
        from bot.resources import hide

        comment = hide(settings)(feedback.comment)
        said = ": ".join(str(part) for part in (feedback.reason, comment) if part)
        trace.scores["user_feedback"] = ScoreRecord("user_feedback", liked, "BOOLEAN", said)
    return trace


def _summary_json(trace: "TraceSummary") -> dict[str, Any]:
    times = {"started_at": trace.started_at.isoformat(), "ended_at": trace.ended_at.isoformat()}
    return asdict(trace) | times


def _how_to_fill(settings: "Settings") -> str:
    if settings.tracing.langfuse_keys:
        return IN_LANGFUSE.format(settings.tracing.base_url)
    return NO_TRACES


def _write(file: Path, items: Sequence[dict[str, Any]]) -> None:
    lines = (json.dumps(item, ensure_ascii=False) for item in items)
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        fail(f"the turns cannot be written to {file}: {error.strerror or error}")

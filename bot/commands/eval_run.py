"""`sommelier eval run`: conversations through the real loop, models and prompts side by side."""

# ruff: noqa: PLC0415

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bot.commands.eval_data import STARTER, Plan, Wanted, read_plan
from bot.commands.eval_rooms import open_experiments, open_rooms, open_starter_rooms
from bot.commands.eval_variants import Named, open_variants, wanted_variants
from bot.commands.output import fail, open_settings, printable, progress_bar, show

if TYPE_CHECKING:
    from agent.evals.recording import Recording
    from agent.evals.run import Result
    from agent.tracing.langfuse.experiments import Experiments
    from config import Settings

FILE_NAME: Final = "evaluation"
INTERRUPTED: Final = 130


def run(
    dataset: Annotated[
        str, typer.Argument(help="`starter`, a JSONL file, or `langfuse:` and a data set's name.")
    ] = STARTER,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model of the configured server, or house-sommelier; repeatable."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="A file with a system prompt, one in Langfuse (`sommelier@3`, "
            "`sommelier@staging`), or `repository`; repeatable."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many conversations.")] = None,
    language: Annotated[
        str | None, typer.Option(help="Only these: en, de, fr, es, it, nl.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only these: pairing, budget …")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Conversations at a time.")] = 4,
    name: Annotated[
        str | None, typer.Option(help="The name of the run; the time unless given.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="A folder for the report: Markdown, JSON and a picture.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run conversations through each variant and score the answers.

    Works with no model configured: the house sommelier is evaluated then.
    """
    settings = open_settings("WARNING")
    results: list[Result] = []
    title = name or f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    stopped = False
    named = wanted_variants(settings, model, prompt)
    wanted = Wanted(dataset, title, language, kind, limit, concurrency)
    try:
        asyncio.run(_evaluate(settings, wanted, named, results))
    except KeyboardInterrupt:
        stopped = True
    if not results:
        fail("nothing was evaluated", INTERRUPTED if stopped else 1)
    order = [each.label for each in named]
    results.sort(key=lambda result: order.index(result.variant))
    _report(title, results, save, as_json=as_json)
    if stopped:
        raise typer.Exit(INTERRUPTED)


async def _evaluate(
    settings: "Settings", wanted: Wanted, named: Sequence[Named], results: "list[Result]"
) -> None:
    from agent.evals.run import evaluate

    opened = open_starter_rooms if wanted.dataset == STARTER else open_rooms
    async with open_experiments(settings) as experiments:
        plan = await read_plan(wanted, experiments)
        async with opened(settings) as rooms, open_variants(settings, named, rooms) as variants:
            recording = await _open_recording(experiments, plan)
            total = len(plan.conversations) * len(variants)
            with progress_bar("Asking") as progress:

                async def done(result: "Result") -> None:
                    results.append(result)
                    progress(len(results), total)
                    if recording is not None:
                        item = result.conversation.id
                        await recording.add(result.variant, item, result.traces)

                await evaluate(
                    variants,
                    plan.conversations,
                    run=plan.run,
                    catalogue=rooms.catalogue,
                    done=done,
                    concurrency=plan.concurrency,
                )
            if recording is not None:
                typer.echo(f"Langfuse: {recording.summary}", err=True)


async def _open_recording(experiments: "Experiments | None", plan: Plan) -> "Recording | None":
    if experiments is None:
        return None
    from agent.evals.recording import open_recording

    return await open_recording(experiments, plan.dataset, plan.run, plan.items, stored=plan.stored)


def _report(title: str, results: "list[Result]", save: Path | None, *, as_json: bool) -> None:
    from agent.evals import report

    if as_json:
        typer.echo(json.dumps(report.as_json(title, results), indent=2, ensure_ascii=False))
    else:
        _print(title, results)
    for line in report.unanswered(results):
        typer.echo(line, err=True)
    if save is not None:
        _save(save, title, results)


def _print(title: str, results: "list[Result]") -> None:
    """The table, the bars, and the worst conversations of each variant."""
    from rich.markup import escape
    from rich.table import Table

    from agent.evals import report

    found = report.summaries(results)
    table = Table(title=f"Evaluation {escape(title)}", title_justify="left")
    table.add_column("metric")
    for summary in found:
        table.add_column(escape(summary.label), justify="right")
    for cells in report.rows(found):
        table.add_row(*cells)
    show(table)
    typer.echo("")
    for line in report.bars(found):
        typer.echo(line)
    for summary in found:
        _print_worst(summary.label, report.worst(results, summary.label))


def _print_worst(label: str, wrong: "Sequence[Result]") -> None:
    from agent.evals.report import reasons

    if wrong:
        typer.echo(f"\nWorst conversations of {label}:")
    for result in wrong:
        said = " / ".join(result.conversation.messages)
        typer.echo(printable(f"  {result.conversation.id}: {said}"))
        for reason in reasons(result):
            typer.echo(printable(f"      {reason}"))


def _save(folder: Path, title: str, results: "list[Result]") -> None:
    from agent.evals import report
    from agent.evals.plot import svg

    data = json.dumps(report.as_json(title, results), indent=2, ensure_ascii=False)
    files = {
        f"{FILE_NAME}.md": report.as_markdown(title, results, plot=f"{FILE_NAME}.svg"),
        f"{FILE_NAME}.json": f"{data}\n",
        f"{FILE_NAME}.svg": svg(report.summaries(results)),
    }
    write_files(folder, files)


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts into a folder, which is made; a failure ends the command."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"the report cannot be written to {folder}: {error.strerror or error}")
    typer.echo(f"Saved {', '.join(files)} to {folder}.", err=True)
